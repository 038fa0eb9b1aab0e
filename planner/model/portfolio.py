"""The answer of `portfolio`: many jobs planned together over shared machines, quotas and budget.

Field names and their order are those of the JSON object.
"""

from dataclasses import dataclass
from typing import Literal

from gpuplan.planner.model.shared import Configuration, Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShare:
    """How many units of a pool a job takes while it runs."""

    pool: str
    units: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob(Configuration):
    """One job: on what, and when. `job` is its place in the list of jobs, from 0; `slots` is how long its machines are taken.

    It ends at `finishes_at` on average and at `finishes_by` with its `confidence`.
    """

    job: int
    name: str
    starts_at: Moment
    finishes_at: Moment
    finishes_by: Moment
    confidence: float
    slots: int
    pools: tuple[PoolShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The smallest single change that admits a job which was left out, and what its run then costs."""

    change: str
    run_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedJob:
    """A job without a place, why, and what would admit it."""

    job: int
    name: str
    value_usd: Usd | None
    reason: str
    would_let_it_in: tuple[Admission, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """What jobs share: machines, a quota, a commitment. `worth_usd_per_unit_hour` is the value of one more unit.

    `utilisation` is None for a pool without capacity.
    """

    pool: str
    units: str
    most_available: float
    most_used: float
    utilisation: float | None
    worth_usd_per_unit_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioCertificate:
    """Objective and lower bound. The objective adds the penalties of jobs left out, `left_out_usd`, to the cost.

    `gap` is (objective - bound) / objective. Nothing is proven about `jobs_not_looked_at`.
    """

    objective_usd: Usd
    left_out_usd: Usd
    bound_usd: Usd
    gap: float
    proven: bool
    jobs_not_looked_at: int
    columns: int
    configurations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEffort:
    """The limits of the search, and how often each of its steps was done."""

    time_limit_s: float | None
    iterations: int | None
    seed: int
    iterations_done: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioSettings:
    """The settings on which the costs rest."""

    cost_basis: str
    goodput: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioPlan:
    """Many jobs planned together. Time is counted in slots of `slot_hours` from `start`."""

    name: str
    snapshot_id: str
    currency: Literal["USD"]
    start: Moment
    slot_hours: float
    horizon_hours: float
    settings: PortfolioSettings
    cost_usd: Usd
    budget_usd: Usd | None
    certificate: PortfolioCertificate
    search: SearchEffort
    jobs: tuple[ScheduledJob, ...]
    left_out: tuple[RejectedJob, ...]
    pools: tuple[PoolUse, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioMeta:
    """What changes by the clock."""

    created_at: Moment
    milliseconds: float
    search_seconds: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioAnswer:
    """The best plan for all jobs together; `meta` holds what changes by the clock."""

    portfolio: PortfolioPlan
    meta: PortfolioMeta
