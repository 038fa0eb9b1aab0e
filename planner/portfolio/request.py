"""A portfolio as it is asked for: jobs with dates and worth, quotas, one horizon in equal slots."""

from dataclasses import dataclass
from datetime import datetime

from planner.job import TrainingJob
from planner.past_runs import PastRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioJob:
    """A job that may run from `release_hours` after the portfolio's start on.

    The job starts there: its `deadline_hours` are those from its release to its deadline.

    `value_usd` is what leaving it out costs; None: it must run if it can, the more so the higher its `priority`.
    """

    job: TrainingJob
    release_hours: float = 0.0
    priority: int = 0
    value_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """At most so many accelerators or vCPUs at once of what matches; empty `region` and words match everything.

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
        """The quota in words."""
        what = self.family or self.accelerator or self.instance_type or "all machines"
        unit = "accelerators" if self.accelerators is not None else "vCPUs"
        return f"{unit} of {what} on {self.provider}{f' in {self.region}' if self.region else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Jobs, quotas, slots of `slot_hours` from `start` on, `slots` of them, and a budget over all in USD.

    `past_runs`, the user's own, shift and narrow the estimates as in a plan of one job.
    """

    name: str
    start: datetime
    slot_hours: float
    slots: int
    jobs: tuple[PortfolioJob, ...]
    quotas: tuple[Quota, ...] = ()
    past_runs: tuple[PastRun, ...] = ()
    budget_usd: float | None = None
