"""The answer of `POST /v1/portfolios`: many jobs over shared machines, quotas and budget."""

from typing import Literal, TypedDict

from gpuplan_client.answers.parts import Configuration, JsonObject, Meta, Moment, Usd


class DrawnOn(TypedDict):
    """How much of a pool a job takes."""

    pool: str
    units: float


class PortfolioJob(Configuration):
    """One job: on what, and when."""

    job: int
    """Its place in the list that was asked about, from 0."""
    name: str
    starts_at: Moment
    finishes_at: Moment
    finishes_by: Moment
    confidence: float
    slots: int
    pools: list[DrawnOn]


class WayIn(TypedDict):
    """What would let a job in, and what it would cost to run."""

    change: str
    run_usd: Usd


class LeftOut(TypedDict):
    """A job without a place, and why."""

    job: int
    name: str
    value_usd: Usd | None
    reason: str
    would_let_it_in: list[WayIn]


class Pool(TypedDict):
    """What is shared: machines, a quota."""

    pool: str
    units: str
    most_available: float
    most_used: float
    utilisation: float | None
    worth_usd_per_unit_hour: float


class PortfolioCertificate(TypedDict):
    """How far from the best the plan can be."""

    objective_usd: Usd
    left_out_usd: Usd
    bound_usd: Usd
    gap: float
    proven: bool
    jobs_not_looked_at: int
    columns: int
    configurations: int


class Search(TypedDict):
    """How long was looked."""

    time_limit_s: float | None
    iterations: int | None
    seed: int
    iterations_done: dict[str, int]


class Portfolio(TypedDict):
    """Many jobs planned together."""

    name: str
    snapshot_id: str
    currency: Literal["USD"]
    start: Moment
    slot_hours: float
    horizon_hours: float
    settings: JsonObject
    cost_usd: Usd
    budget_usd: Usd | None
    certificate: PortfolioCertificate
    search: Search
    jobs: list[PortfolioJob]
    left_out: list[LeftOut]
    pools: list[Pool]
    assumptions: list[str]
    warnings: list[str]


class PortfolioAnswer(TypedDict):
    """The best plan found for all jobs together."""

    portfolio: Portfolio
    meta: Meta
