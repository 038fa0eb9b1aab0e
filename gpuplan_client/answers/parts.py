"""What several answers have in common: machines, money by part, layouts, and what changes by the clock."""

from typing import Any, Literal, NotRequired, TypedDict

type JsonObject = dict[str, Any]

#: US dollars as a decimal string.
type Usd = str
#: ISO 8601 with its zone.
type Moment = str


class Meta(TypedDict):
    """What changes by the clock; everything else in an answer is the same for the same question."""

    created_at: Moment
    milliseconds: float
    """How long the service took."""
    version: str
    price_age_days: NotRequired[float | None]
    """Since the oldest price of the plan was observed; null where there is no such price."""
    snapshot_age_days: NotRequired[float]
    solver_milliseconds: NotRequired[float | None]
    search_seconds: NotRequired[float]


class Breakdown(TypedDict):
    """Expected cost by part, decimal strings of US dollars."""

    compute: Usd
    storage: Usd
    egress: Usd
    power: Usd
    setup: Usd


class ExpectedCost(TypedDict):
    """What is expected to be paid, and for what."""

    expected: Usd
    breakdown: Breakdown


class PlanCost(ExpectedCost):
    """The expected cost, which is the mean, and what is not exceeded in half and in 95 % of runs."""

    median: Usd
    p95: Usd


class Hours(TypedDict):
    """From the start: expected, which is the mean, in half of the runs, with the job's confidence, and in 95 % of runs."""

    expected: float
    median: float
    confident: float
    p95: float


class Figure(TypedDict):
    """A figure with its unit."""

    value: float
    unit: str


class Place(TypedDict):
    """Where something runs, and on what."""

    provider: str
    region: str
    zone: str
    """Empty where the price is that of a whole region."""
    instance_type: str


class Machines(Place):
    """Nodes of one type in one place at one price."""

    accelerator: str
    accelerators_per_node: float
    """A fraction where a node has a part of a card."""
    nodes: int
    slice_hosts: int | None
    """Hosts of one TPU slice, which is bought whole."""
    price_kind: str
    usd_per_node_hour: Usd


class Configuration(Machines):
    """Machines with what the whole job would cost on them and how long it would take."""

    cost_usd: Usd
    cost_p95_usd: Usd
    hours: float
    hours_confident: float


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


class ObjectiveName(TypedDict):
    """What was made least, and its unit."""

    of: Literal["cost", "time", "carbon"]
    unit: str


class Objective(ObjectiveName):
    """What was made least: its value, and the bound that no plan can be below."""

    value: float
    bound: float


class Correction(TypedDict):
    """What past runs teach of estimates of one task, on one accelerator or (null) on all others."""

    accelerator: str | None
    hours_factor: float
    hours_runs: int
    memory_factor: float
    memory_runs: int
    variance_removed: NotRequired[float]


class Learned(TypedDict):
    """What past runs teach of this class of work."""

    task: str
    corrections: list[Correction]
