"""The answer of `estimate`: time and memory of a job on one configuration."""

from dataclasses import dataclass
from typing import TypedDict

from gpuplan.planner.model.shared import Figure, Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedThroughput(Figure):
    """Work per second, in all and per accelerator."""

    per_accelerator: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Per accelerator, in GiB."""

    fits: bool
    peak_gib: float
    capacity_gib: float
    states_gib: float
    activations_gib: float
    other_gib: float
    largest_micro_batch: int | None
    least_accelerators: int | None
    loading_gib: float | None


class Terms(TypedDict):
    """Seconds of a step by cause. They overlap, so their sum exceeds the step."""

    matmul: float
    attention: float
    memory_bound: float
    communication: float
    bubble: float
    optimizer: float
    data: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """80 % of runs are expected inside."""

    low_hours: float
    high_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A doubt about the hours: they may be `effect_low` to `effect_high` times as many; `state` is what settles it."""

    what: str
    effect_low: float
    effect_high: float
    state: str

    @property
    def sentence(self) -> str:
        """The doubt in words, with its factors on the hours and what settles it."""
        return f"{self.what} (hours x {self.effect_low:.2f} to {self.effect_high:.2f}; to settle it: {self.state})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedField:
    """A field that the user did not state, with the value taken and its reason."""

    field: str
    value: str | float
    why: str


class Assumed(TypedDict):
    """A value, and whether it was assumed or given."""

    value: int | float
    assumed: bool


class EstimatedOn(TypedDict):
    """The configuration as it was understood."""

    accelerator: str
    gpus: int
    gpus_per_node: Assumed
    nodes: int
    internode_gbps: Assumed


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Time and memory. Of a job that does not fit, they are those of the layout that needs least, as if it fitted."""

    hours: float
    hours_with_goodput: float
    step_seconds: float
    throughput: EstimatedThroughput
    tflops_per_accelerator: float
    mfu: float
    memory: Memory
    layout: Layout
    terms: Terms
    band: Band
    precision: str
    warnings: tuple[str, ...]
    on: EstimatedOn
    assumptions: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    assumed: tuple[AssumedField, ...]
