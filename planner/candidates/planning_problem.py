"""The planning problem of one job, shared by all steps from candidates to explanation."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.planner.candidates.live_chances import NOT_ASKED, LiveChances
from gpuplan.planner.candidates.markets import Market
from gpuplan.planner.model.current_placement import Origin
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.learned import NOTHING, LearnedCorrections
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.workload.step_work import Work


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A job, its work, the markets it may use, its start, the settings, and the corrections from past runs.

    `origin` is the current placement of a running job; None for a job that has not started. `live` are the clouds' answers
    about capacity.
    """

    job: TrainingJob
    work: Work
    markets: tuple[Market, ...]
    start: datetime
    settings: PlannerSettings
    learned: LearnedCorrections = NOTHING
    origin: Origin | None = None
    live: LiveChances = NOT_ASKED
