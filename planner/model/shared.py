"""Types that several answers share: a configuration with its price, cost and hours."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Literal, TypedDict

#: Metadata of a field that is omitted on the wire if it is None.
MAY_BE_ABSENT = {"absent": True}
#: Metadata of a field of a plan with prose, which verification takes on trust. It recomputes every other field.
PROSE = {"prose": True}
#: An amount of dollars exactly as on the wire: a decimal string of at least two and at most six decimals.
type Usd = Decimal
#: A time with its zone, on the wire ISO 8601 in UTC.
type Moment = datetime
#: What a plan minimises.
type ObjectiveOf = Literal["cost", "time", "carbon"]


def wire_name(name: str) -> str:
    """The key of a field on the wire: `from_` is `from`, which Python reserves."""
    return name.rstrip("_")


#: Pydantic configuration of a class with a field whose key Python reserves.
RENAMED: Mapping[str, object] = {"alias_generator": wire_name, "use_attribute_docstrings": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What changes by the clock; everything else in an answer is the same for the same question."""

    created_at: Moment
    milliseconds: float
    """How long the service took."""
    price_age_days: float | None
    """Since the oldest price of the plan was observed; null where there is no such price."""
    snapshot_age_days: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Expected cost in USD by part; the parts sum to the whole."""

    compute: Usd
    storage: Usd
    egress: Usd
    power: Usd
    setup: Usd

    def parts(self) -> dict[str, Usd]:
        """The cost of each part, by its name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCost:
    """Expected cost in USD, whole and by part."""

    expected: Usd
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(ExpectedCost):
    """Cost in USD: the mean, its parts, and what half and 95 % of runs stay within, over hours and estimated prices."""

    median: Usd
    p95: Usd
    price_low: Usd | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The mean with every price at the low end of its band, within which 80 % of prices lie; absent if all are as observed."""
    price_high: Usd | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The mean with every price at the high end of its band."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Hours from start to finish: the mean, and the quantiles at one half, the requested confidence and 95 %."""

    expected: float
    median: float
    confident: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What is rented or owned, where, and at which price."""

    provider: str
    region: str
    zone: str
    """Empty where the price is that of a whole region."""
    instance_type: str
    accelerator: str
    accelerators_per_node: int | float
    """A fraction where a node has a part of a card."""
    nodes: int
    slice_hosts: int | None
    """Hosts of one TPU slice, which is bought whole; null where nodes are rented one by one."""
    price_kind: str
    usd_per_node_hour: Usd
    """The effective price over the term of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration(Machines):
    """Machines for the whole job, with the mean and the quantiles of cost and hours."""

    cost_usd: Usd
    cost_p95_usd: Usd
    hours: float
    hours_confident: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedRequirements:
    """Requirements that have to be relaxed together: names joined by ` + `, their values before and after by `; `."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    requirement: str
    from_: str
    to: str

    def one_by_one(self) -> tuple[tuple[str, str, str], ...]:
        """Name, value asked and value needed of every requirement."""
        return tuple(zip(self.requirement.split(" + "), self.from_.split("; "), self.to.split("; "), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of an earlier phase's machines."""

    provider: str
    region: str
    zone: str
    instance_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The data that a phase transfers from the place of the one before, and the cost of that."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = RENAMED

    from_: Place
    checkpoint_gb: float
    data_gb: float
    egress_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its unit, such as `tokens/s` or `hours`."""

    value: float
    unit: str


class Layout(TypedDict):
    """How the model and the batch are laid over the accelerators."""

    data: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    interleave: int
    zero_stage: int
    micro_batch: int
    checkpointing: Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveName:
    """What was minimised, and its unit."""

    of: ObjectiveOf
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLearned:
    """The correction factors from past runs in the figures of a phase, and its spread without them."""

    hours_factor: float
    memory_factor: float
    log_sigma_before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLimit:
    """Hours after which an export stops the machines of a phase, and the cost of the phase by then."""

    hours: int
    cost_usd: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What past runs teach of estimates of one task, on one accelerator or (null) on all those without runs."""

    accelerator: str | None
    hours_factor: float
    hours_runs: int
    memory_factor: float
    memory_runs: int
    variance_removed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The corrections from past runs for one class of work."""

    task: str
    corrections: tuple[Correction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceEstimate:
    """How the price of a phase was expected from an observed one: its age at the start, and the band of 80 % of prices."""

    observed_usd_per_node_hour: Usd
    low_usd_per_node_hour: Usd
    high_usd_per_node_hour: Usd
    age_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Machines):
    """Machines while they run a share of the work: at which price, how fast, and their part of the cost."""

    role: Literal["planned", "standby"]
    """A standby is taken only if a run on interruptible machines falls behind."""
    starts_at: Moment
    share: float
    """Of the job's work; the planned phases sum to 1."""
    cost_usd: ExpectedCost
    moved: Move | None
    """What is brought from the machines of the phase before."""
    probability: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Of being used; of standbys."""
    switch_by: Moment | None = field(default=None, metadata=MAY_BE_ABSENT)
    """The latest moment to switch to a standby."""
    switch_by_hours: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    switch_share: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Switch if less of the work is saved by then."""
    price_observed_at: Moment
    price_observed_approximately: bool
    price_source: str
    price_estimate: PriceEstimate | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Absent where the price is as it was observed."""
    hours: float
    training_hours: float
    hours_with_goodput: float
    precision: str
    layout: Layout
    throughput: Figure
    """In steady training, in the unit of the workload."""
    mfu: float
    """(6 N_active + causal 6 L h s) x tokens per second / dense peak of the precision; adapters count what they compute."""
    memory_gib_per_accelerator: float
    capacity_gib_per_accelerator: float
    log_sigma: float
    """Standard deviation of the logarithm of the hours."""
    interruptions_per_node_hour: float
    checkpoint_interval_hours: float | None
    expected_preemptions: float
    modelled: tuple[str, ...]
    """Which figures of the offer are modelled and not observed."""
    preemption_wait_hours: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Unpaid hours without machines after a preemption. Absent where there is none, and from plans of older releases."""
    setup_hours: float | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Paid hours before the first step. Absent from plans of older releases, which state them in their settings."""
    learned: PhaseLearned | None = field(default=None, metadata=MAY_BE_ABSENT)
    """What past runs changed about the estimate."""
    run_limit: PhaseLimit | None = field(default=None, metadata=MAY_BE_ABSENT)
    """Absent from plans of older releases."""

    @property
    def is_standby(self) -> bool:
        """Whether these machines run only if the previous phase falls behind."""
        return self.role == "standby"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContingencyStandby(Machines):
    """The standby of a plan on interruptible machines: when it takes over, and with which probability."""

    hours_with_goodput: float
    ready_hours: float
    switch_by: Moment
    switch_by_hours: float
    switch_share: float
    probability: float
    deadline_probability: float
    extra_usd: Usd
