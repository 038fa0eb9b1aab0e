"""The answer of `buy`: what to use, buy, commit to and rent for a forecast of jobs, or why nothing serves it.

Field names and their order are those of the JSON object. Money is at present value unless a name says otherwise.
"""

from dataclasses import dataclass, field
from typing import Literal

from gpuplan.planner.model.procurement_sources import (
    ExistingCapacity,
    MachinePurchase,
    NodeCommitment,
    RentedRuns,
    SpendingCommitment,
)
from gpuplan.planner.model.shared import MAY_BE_ABSENT, Meta, Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A possible course of demand, and its probability."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconsideredMachine:
    """A machine that was not considered, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementBreakdown:
    """Present cost in USD by part; the parts sum to the whole."""

    machines: Usd
    commitments: Usd
    running: Usd
    renting: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementCost:
    """Present cost over the horizon, and beside it that of renting everything and of deciding nothing.

    `rent_only` is None where a job cannot be rented; `without_buying` and `saves` are None where what there is does not
    serve every job.
    """

    total: Usd
    breakdown: ProcurementBreakdown
    rent_only: Usd | None
    without_buying: Usd | None
    saves: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioCost(Scenario):
    """What the decision costs in a scenario, and what it saves against buying nothing."""

    cost_usd: Usd
    saves_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementRisk:
    """The probability that the decision costs more than buying nothing, and its cost in each scenario."""

    loses_probability: float
    scenarios: tuple[ScenarioCost, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class YearlyCost:
    """Cost a year from `from_year` to `until_year` in dollars of the day: own machines, commitments with what running on
    them costs, and renting.

    What is paid at once is spread evenly over the years that it serves, less what the machines are sold for.
    """

    from_year: float
    until_year: float
    own_usd_per_year: Usd
    commitments_usd_per_year: Usd
    renting_usd_per_year: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioYears(Scenario):
    """The cost of the decision over the years of a scenario. Discounted, the years add up to its present cost."""

    years: tuple[YearlyCost, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingLimit:
    """A limit that raises the cost, what does not fit into it, and the decision without it."""

    limit: str
    used: float
    available: float
    short: str
    without_it: str
    would_save_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboughtMachine:
    """A machine that comes close to paying, and what the best answer with it costs more."""

    name: str
    machines: int
    usd_each: Usd
    extra_cost_usd: Usd
    electricity_alone_costs_more_than_renting: bool
    price_source: str
    price_as_of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomLimits:
    """The limits of the forecast; those that it does not state are absent."""

    slots: int | None = field(default=None, metadata=MAY_BE_ABSENT)
    power_watts: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    cooling_watts: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    machines: int | None = field(default=None, metadata=MAY_BE_ABSENT)
    upfront_usd: Usd | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Slots and power that the machines to buy take, and the limits."""

    slots: int
    watts: float
    limits: RoomLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStep:
    """The decision at this multiple of the forecast's runs, or of its price of electricity, proven to within `gap`."""

    times_the_runs: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    times_the_price: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    answer: str
    cost_usd: Usd | None
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSweep:
    """The decision as one figure of the forecast moves, and where its kinds of machines or terms change.

    `precision` is that of the multiples of a change, relatively; 0 where they are exact.
    """

    precision: float
    steps: tuple[SweepStep, ...]
    changes_below: SweepStep | None
    changes_above: SweepStep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementSensitivity:
    """How the decision moves with the number of runs and with the price of electricity, None where that changes nothing."""

    utilisation: ForecastSweep
    electricity: ForecastSweep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementCertificate:
    """The proof: objective and lower bound, and the size of the model. `gap` is (objective - bound) / objective."""

    objective_usd: Usd
    bound_usd: Usd
    gap: float
    machines_considered: int
    commitments_considered: int
    blocks_of_load: int
    variables: int
    solver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcurementPlan:
    """What to use, buy, commit to and rent, after the forecast as it was read."""

    id: str
    name: str
    start: Moment
    currency: Literal["USD"]
    horizon_years: float
    discount_rate: float
    electricity_usd_per_kwh: float | None
    scenarios: tuple[Scenario, ...]
    turned_down: tuple[UnconsideredMachine, ...]
    snapshot_id: str
    version: str
    use: tuple[ExistingCapacity, ...]
    buy: tuple[MachinePurchase, ...]
    commit: tuple[NodeCommitment, ...]
    commit_spend: tuple[SpendingCommitment, ...]
    rent: tuple[RentedRuns, ...]
    cost_usd: ProcurementCost
    risk: ProcurementRisk | None
    over_years: tuple[ScenarioYears, ...]
    binding: tuple[BindingLimit, ...]
    not_bought: tuple[UnboughtMachine, ...]
    upfront_usd: Usd
    room: Room
    sensitivity: ProcurementSensitivity
    certificate: ProcurementCertificate
    cost_basis: Literal["full", "marginal"]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedJob:
    """A job that nothing can run."""

    job: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedForecast:
    """Why no decision serves the forecast, after the forecast as it was read."""

    name: str
    start: Moment
    currency: Literal["USD"]
    horizon_years: float
    discount_rate: float
    electricity_usd_per_kwh: float | None
    scenarios: tuple[Scenario, ...]
    turned_down: tuple[UnconsideredMachine, ...]
    snapshot_id: str
    version: str
    jobs: tuple[UnservedJob, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedAnswer:
    """There is a decision."""

    outcome: Literal["decided"]
    decision: ProcurementPlan
    meta: Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedAnswer:
    """No decision serves the forecast: an answer, not an error."""

    outcome: Literal["infeasible"]
    infeasible: UnservedForecast
    meta: Meta


type DecisionAnswer = DecidedAnswer | UndecidedAnswer
