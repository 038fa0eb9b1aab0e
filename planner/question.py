"""One job put to some markets: what every step from candidates to explanation works on."""

from dataclasses import dataclass
from datetime import datetime

from planner.candidates.market import Market
from planner.estimate.learned import NOTHING, Learned
from planner.job import TrainingJob
from planner.origin import Origin
from planner.settings import PlannerSettings
from planner.workload.work import Work


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A job, the work it comes to, where it may run, when it starts, what is taken for granted, and what past runs teach.

    `origin` is where a job that is under way goes on from; None for one that starts.
    """

    job: TrainingJob
    work: Work
    markets: tuple[Market, ...]
    start: datetime
    settings: PlannerSettings
    learned: Learned = NOTHING
    origin: Origin | None = None
