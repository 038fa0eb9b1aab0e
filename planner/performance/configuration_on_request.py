"""One configuration as a user names it: accelerator, number, network and layout, checked against the model."""

import math
from dataclasses import dataclass, field, replace

from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.performance.estimator_request import CHECKPOINTING, LayoutRequest
from gpuplan.planner.workload.step_work import Work

#: More devices than any cluster has; a larger count is a mistake.
MOST_GPUS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class On:
    """One configuration. None lets the estimator choose: the accelerator's usual machine and fabric, the best layout.

    `accelerator` may name a MIG slice, which works alone.
    """

    accelerator: str
    gpus: int
    gpus_per_node: int | None = None
    internode_gbps: float | None = None
    micro_batch: int | None = None
    layout: LayoutRequest = field(default_factory=LayoutRequest)


def request_of(on: On) -> LayoutRequest:
    """The requested layout; the micro-batch may be stated in it or next to it."""
    inside = on.layout.micro_batch
    if on.micro_batch and inside and on.micro_batch != inside:
        raise UnusableInput.at(
            "on", "micro_batch", message=f"{on.micro_batch} contradicts layout.micro_batch {inside}; give one of them"
        )
    return replace(on.layout, micro_batch=on.micro_batch or inside)


def check(work: Work, on: On, request: LayoutRequest) -> None:
    """Raise one `UnusableInput` with every fault of the counts and the layout."""
    faults = [*_count_faults(on), *_split_faults(on, request), *_model_faults(work, request)]
    if request.micro_batch and request.micro_batch > work.samples_per_step:
        most = f"more than the {work.samples_per_step:g} samples of a step"
        faults.append(Fault(("on", "micro_batch"), f"{request.micro_batch} is {most}; give fewer or batch more"))
    if faults:
        raise UnusableInput(*faults)


def _count_faults(on: On) -> list[Fault]:
    faults = []
    if not 1 <= on.gpus <= MOST_GPUS:
        faults.append(Fault(("on", "gpus"), f"{on.gpus} is not a number of accelerators from 1 to {MOST_GPUS:,}"))
    elif on.gpus_per_node is not None and (on.gpus_per_node < 1 or on.gpus % on.gpus_per_node):
        faults.append(Fault(("on", "gpus_per_node"), f"{on.gpus_per_node} does not divide the {on.gpus} accelerators"))
    if on.internode_gbps is not None and not (math.isfinite(on.internode_gbps) and on.internode_gbps > 0):
        faults.append(Fault(("on", "internode_gbps"), "not a positive number of Gbit/s per node"))
    return faults


def _split_faults(on: On, request: LayoutRequest) -> list[Fault]:
    """Faults of the layout alone: data x tensor x pipeline x context must be the number of accelerators."""
    ways = {name: getattr(request, name) for name in ("data", "tensor", "pipeline", "context")}
    counts = ways | {name: getattr(request, name) for name in ("expert", "interleave", "micro_batch")}
    faults = [
        Fault(("on", "layout", name), f"{value} is not a whole number of at least 1")
        for name, value in counts.items()
        if value is not None and value < 1
    ]
    product = math.prod(value for value in ways.values() if value)
    complete = all(value is not None for value in ways.values())
    if not faults and on.gpus >= 1 and (product != on.gpus if complete else on.gpus % product):
        text = " x ".join(f"{name} {value}" for name, value in ways.items() if value)
        want = "is" if complete else "must divide"
        faults.append(
            Fault(("on", "layout", "data"), f"{text} = {product}; data x tensor x pipeline x context {want} {on.gpus}")
        )
    if request.zero_stage is not None and request.zero_stage not in range(4):
        faults.append(Fault(("on", "layout", "zero_stage"), f"{request.zero_stage} is not one of 0, 1, 2, 3"))
    if request.checkpointing is not None and request.checkpointing not in CHECKPOINTING:
        accepted = ", ".join(CHECKPOINTING)
        faults.append(Fault(("on", "layout", "checkpointing"), f"{request.checkpointing!r} is not one of {accepted}"))
    return faults


def _model_faults(work: Work, request: LayoutRequest) -> list[Fault]:
    """Faults of the layout with the model: heads, blocks or experts that it does not divide."""
    shape = work.shape
    heads, layers, experts = (shape.attention_heads, shape.layers, max(1, shape.experts)) if shape else (1, 1, 1)
    stages = (request.pipeline or 1) * (request.interleave or 1)
    checks = (
        ("tensor", request.tensor and heads % request.tensor, f"must divide the {heads} attention heads"),
        (
            "pipeline",
            request.pipeline and request.pipeline > layers,
            f"must be at most the {layers} blocks of the model",
        ),
        ("interleave", request.interleave and stages > layers, f"x pipeline must be at most the {layers} blocks"),
        ("expert", request.expert and experts % request.expert, f"must divide the {experts} experts"),
        (
            "context",
            request.context and not shape and request.context > 1,
            "must be 1: the model has no sequence to split",
        ),
    )
    return [Fault(("on", "layout", name), f"{getattr(request, name)} {why}") for name, wrong, why in checks if wrong]
