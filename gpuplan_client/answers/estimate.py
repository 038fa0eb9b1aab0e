"""The answer of `POST /v1/estimates`: time and memory on one given configuration."""

from typing import TypedDict

from gpuplan_client.answers.parts import Layout


class EstimatedThroughput(TypedDict):
    """Units of work per second, in all and per accelerator."""

    value: float
    unit: str
    per_accelerator: float


class Memory(TypedDict):
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
    """Seconds of a step by cause; they overlap as the estimate's notes say."""

    matmul: float
    attention: float
    memory_bound: float
    communication: float
    bubble: float
    optimizer: float
    data: float


class Band(TypedDict):
    """80 % of runs are expected inside."""

    low_hours: float
    high_hours: float


class Assumed(TypedDict):
    """A value, and whether it was assumed or given."""

    value: float | None
    assumed: bool


class On(TypedDict):
    """The configuration as it was understood."""

    accelerator: str
    gpus: float
    gpus_per_node: Assumed
    nodes: int
    internode_gbps: Assumed


class Estimate(TypedDict):
    """Time and memory; the figures of time are null where the job does not fit."""

    hours: float | None
    hours_with_goodput: float | None
    step_seconds: float | None
    throughput: EstimatedThroughput | None
    tflops_per_accelerator: float | None
    mfu: float | None
    memory: Memory
    layout: Layout | None
    terms: Terms | None
    band: Band | None
    precision: str
    warnings: list[str]
    on: On
    assumptions: list[str]
