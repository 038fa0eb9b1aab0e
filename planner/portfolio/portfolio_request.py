"""A portfolio request: jobs with dates and values, quotas, and one horizon in equal slots."""

from dataclasses import dataclass
from datetime import datetime

from gpuplan.planner.model.job import TrainingJob
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
class Quota:
    """A limit on concurrent accelerators or vCPUs of the matching machines; empty properties match everything.

    `family` is the beginning of an instance type's name up to a separator, or a glob.
    """

    provider: str
    region: str = ""
    family: str = ""
    accelerator: str = ""
    instance_type: str = ""
    accelerators: float | None = None
    vcpus: float | None = None

    @property
    def name(self) -> str:
        """The quota as text."""
        what = self.family or self.accelerator or self.instance_type or "all machines"
        unit = "accelerators" if self.accelerators is not None else "vCPUs"
        return f"{unit} of {what} on {self.provider}{f' in {self.region}' if self.region else ''}"


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
