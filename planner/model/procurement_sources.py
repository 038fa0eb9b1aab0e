"""What serves a forecast of jobs: what is there already, what to buy, to commit to and to rent."""

from dataclasses import dataclass

from gpuplan.planner.model.shared import Configuration, Moment, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """How many runs of a job a year something serves, on average. `job` is its place in the forecast, from 0."""

    job: int
    name: str
    runs_per_year: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingCapacity:
    """What is there already: `units` machines, nodes, or USD per hour of a savings plan, and the share of them that works."""

    name: str
    units: float
    busy_share: float
    runs_per_year: tuple[JobRuns, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """When a purchase has earned its price."""

    years: float
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePurchase:
    """Machines to buy. `busy_share` is the share of the hours that they work.

    `break_even` is None where only the resale pays; `saves_usd` is what the best answer without this machine costs more,
    None where there is no such answer. `price_as_of` is None where the price has no date.
    """

    name: str
    accelerator: str
    accelerators: int
    machines: int
    usd_each: Usd
    upfront_usd: Usd
    power_watts_each: float
    life_years: float
    residual_usd_each: Usd
    busy_share: float
    runs_per_year: tuple[JobRuns, ...]
    break_even: BreakEven | None
    saves_usd: Usd | None
    modelled: tuple[str, ...]
    price_source: str
    price_as_of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCommitment:
    """Nodes to commit to. `total_obligation_usd` is what must be paid for all of them, used or not, in dollars of the day."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    price_kind: str
    nodes: int
    usd_per_node_hour: Usd
    from_year: float
    until_year: float
    total_obligation_usd: Usd
    busy_share: float
    runs_per_year: tuple[JobRuns, ...]
    modelled: tuple[str, ...]
    price_source: str
    price_observed_at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRate:
    """The rate of one job under a commitment to spend."""

    job: int
    name: str
    instance_type: str
    region: str
    usd_per_node_hour: Usd
    price_source: str
    price_observed_at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingCommitment:
    """US dollars per hour to commit to. `region` and `family` are None where the commitment is not limited to one."""

    provider: str
    price_kind: str
    region: str | None
    family: str | None
    usd_per_hour: Usd
    from_year: float
    until_year: float
    total_obligation_usd: Usd
    busy_share: float
    runs_per_year: tuple[JobRuns, ...]
    on: tuple[SpendingRate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedRuns:
    """What one job rents for the runs that nothing else serves; `on` is None where there are none."""

    job: int
    name: str
    share_of_runs: float
    runs_per_year: float
    on: Configuration | None
