"""A portfolio request: jobs with dates and values, quotas, and one horizon in equal slots."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.performance.past_runs import PastRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioJob:
    """A job that may start from `release_hours` after the portfolio's start; its `deadline_hours` count from there.

    `value_usd` is the cost of leaving it out. None: it must run if possible, jobs of higher `priority` first.
    """

    job: TrainingJob
    release_hours: float = 0.0
    priority: int = 0
    value_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Jobs, quotas, slots of `slot_hours` from `start` on, `slots` of them, and a budget over all in USD.

    `past_runs` of the user shift and narrow the estimates, as in a plan of one job.
    """

    name: str
    start: datetime
    slot_hours: float
    slots: int
    jobs: tuple[PortfolioJob, ...]
    quotas: tuple[Quota, ...] = ()
    past_runs: tuple[PastRun, ...] = ()
    budget_usd: float | None = None
