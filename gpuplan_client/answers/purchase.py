"""The answer of `POST /v1/buy`: own, commit or rent for a forecast of jobs."""

from typing import Literal, NotRequired, TypedDict

from gpuplan_client.answers.parts import Configuration, JsonObject, Meta, Moment, Usd


class Scenario(TypedDict):
    """One course that demand may take."""

    name: str
    probability: float


class TurnedDown(TypedDict):
    """A machine that was not considered, and why."""

    name: str
    reason: str


class JobRuns(TypedDict):
    """How often a job runs on something."""

    job: int
    name: str
    runs_per_year: float


class Use(TypedDict):
    """What is there already, and what runs on it."""

    name: str
    units: float
    busy_share: float
    runs_per_year: list[JobRuns]


class PaysBack(TypedDict):
    """When a purchase has earned its price."""

    years: float
    date: str


class Purchase(TypedDict):
    """Machines to buy."""

    name: str
    accelerator: str
    accelerators: float
    machines: int
    usd_each: Usd
    upfront_usd: Usd
    power_watts_each: float
    life_years: float
    residual_usd_each: Usd
    busy_share: float
    runs_per_year: list[JobRuns]
    break_even: PaysBack | None
    saves_usd: Usd | None
    modelled: list[str]
    price_source: str
    price_as_of: str | None


class Commit(TypedDict):
    """Nodes to commit to."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    price_kind: str
    nodes: float
    usd_per_node_hour: Usd
    from_year: float
    until_year: float
    total_obligation_usd: Usd
    busy_share: float
    runs_per_year: list[JobRuns]
    modelled: list[str]
    price_source: str
    price_observed_at: Moment


class SpendOn(TypedDict):
    """What a commitment to spend is spent on."""

    job: int
    name: str
    instance_type: str
    region: str
    usd_per_node_hour: Usd
    price_source: str
    price_observed_at: Moment


class CommitSpend(TypedDict):
    """US dollars per hour to commit to."""

    provider: str
    price_kind: str
    region: str | None
    family: str | None
    usd_per_hour: Usd
    from_year: float
    until_year: float
    total_obligation_usd: Usd
    busy_share: float
    runs_per_year: list[JobRuns]
    on: list[SpendOn]


class Rent(TypedDict):
    """What one job rents for its runs that nothing else serves."""

    job: int
    name: str
    share_of_runs: float
    runs_per_year: float
    on: Configuration | None


class DecisionBreakdown(TypedDict):
    """Present cost by part, decimal strings of US dollars."""

    machines: Usd
    commitments: Usd
    running: Usd
    renting: Usd


class DecisionCost(TypedDict):
    """Present cost over the horizon, and beside it what doing less would cost."""

    total: Usd
    breakdown: DecisionBreakdown
    rent_only: Usd | None
    without_buying: Usd | None
    saves: Usd | None


class ScenarioOutcome(Scenario):
    """What the decision costs if demand takes this course."""

    cost_usd: Usd
    saves_usd: Usd


class Risk(TypedDict):
    """The chance that buying was wrong."""

    loses_probability: float
    scenarios: list[ScenarioOutcome]


class BindingLimit(TypedDict):
    """A limit that stands in the way."""

    limit: str
    used: float
    available: float
    short: bool
    without_it: str
    would_save_usd: Usd


class NotBought(TypedDict):
    """The purchase that comes nearest to paying."""

    name: str
    machines: int
    usd_each: Usd
    extra_cost_usd: Usd
    electricity_alone_costs_more_than_renting: bool
    price_source: str
    price_as_of: str | None


class Room(TypedDict):
    """What the machines take of the room that there is."""

    slots: int
    watts: float
    limits: JsonObject


class SweepStep(TypedDict):
    """The decision at so many times the runs, or the price of electricity."""

    times_the_runs: NotRequired[float]
    times_the_price: NotRequired[float]
    answer: str
    cost_usd: Usd | None
    gap: float


class Sweep(TypedDict):
    """Where the decision changes."""

    precision: float
    steps: list[SweepStep]
    changes_below: SweepStep | None
    changes_above: SweepStep | None


class DecisionSensitivity(TypedDict):
    """What use and electricity change."""

    utilisation: Sweep
    electricity: Sweep | None


class DecisionCertificate(TypedDict):
    """How far from the best the decision can be."""

    objective_usd: Usd
    bound_usd: Usd
    gap: float
    machines_considered: int
    commitments_considered: int
    blocks_of_load: int
    variables: int
    solver: str


class Forecast(TypedDict):
    """The forecast as it was understood."""

    name: str
    start: Moment
    currency: Literal["USD"]
    horizon_years: float
    discount_rate: float
    electricity_usd_per_kwh: float | None
    scenarios: list[Scenario]
    turned_down: list[TurnedDown]
    snapshot_id: str
    version: str


class Decision(Forecast):
    """What to use, buy, commit to and rent."""

    id: str
    use: list[Use]
    buy: list[Purchase]
    commit: list[Commit]
    commit_spend: list[CommitSpend]
    rent: list[Rent]
    cost_usd: DecisionCost
    risk: Risk | None
    binding: list[BindingLimit]
    not_bought: list[NotBought]
    upfront_usd: Usd
    room: Room
    sensitivity: DecisionSensitivity
    certificate: DecisionCertificate
    cost_basis: Literal["full", "marginal"]
    assumptions: list[str]
    warnings: list[str]


class ImpossibleJob(TypedDict):
    """A job that nothing can run."""

    job: int
    name: str


class ImpossibleForecast(Forecast):
    """Why no decision serves the forecast."""

    jobs: list[ImpossibleJob]
    reason: str


class Decided(TypedDict):
    """There is a decision."""

    outcome: Literal["decided"]
    decision: Decision
    meta: Meta


class Undecided(TypedDict):
    """No decision serves the forecast."""

    outcome: Literal["infeasible"]
    infeasible: ImpossibleForecast
    meta: Meta


type DecisionAnswer = Decided | Undecided
