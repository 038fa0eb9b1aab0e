"""The layouts that the estimator times: the ways to split a model over a cluster.

A plan is the cheapest over these layouts, so they are part of the time model. Tensor parallelism is 1, 2, 4 or 8 ways
within the devices that share the fast link. A pipeline has any number of stages up to `MAX_PIPELINE` that divides the
cluster. Context parallelism is for long sequences: the widest within the fast link, or half of that. Expert parallelism
is the widest within the fast link, or the widest possible. Data parallelism uses the remaining devices.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.performance.estimator_request import Floats, Ints, LayoutRequest
from gpuplan.planner.workload.step_work import Work

#: Beyond eight ways the slices of a matmul are too thin to be faster (Narayanan 2021, fig. 14; Megatron uses <= 8).
MAX_TENSOR = 8
MAX_CONTEXT = 8
#: The longest pipelines that published runs use (Narayanan 2021, table 1: 64 stages for a trillion parameters).
MAX_PIPELINE = 64
#: Pipeline stages tried together with context parallelism; longer pipelines are tried for short sequences only.
PIPELINES_WITH_CONTEXT = (1, 2, 4, 8)
#: Tokens from which splitting along the sequence is considered; below, the activations of one sequence fit.
LONG_SEQUENCE = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Properties of a model that limit its layouts."""

    heads: int
    layers: int
    experts: int
    splits_sequence: bool


def limits_of(work: Work) -> Limits:
    """The limits of `work`; a model without transformer blocks uses data parallelism only."""
    shape = work.shape
    if shape is None:
        return Limits(heads=1, layers=1, experts=1, splits_sequence=False)
    return Limits(
        heads=shape.attention_heads,
        layers=shape.layers,
        experts=max(1, shape.experts),
        splits_sequence=shape.sequence_length >= LONG_SEQUENCE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Splits sorted by machine row: `row` indexes the machines. Ways are whole numbers, stored as floats for arithmetic."""

    row: Ints
    data: Floats
    tensor: Floats
    pipeline: Floats
    context: Floats
    expert: Floats

    def of_rows(self, row: Ints, split: Ints) -> "Splits":
        """The splits at the indices `split`, for the machine rows at the same positions of `row`."""
        ways = ("data", "tensor", "pipeline", "context", "expert")
        return Splits(row=row, **{name: getattr(self, name).take(split) for name in ways})


def splits_of(limits: Limits, devices: Ints, nodes: Ints, domain: Ints, request: LayoutRequest) -> Splits:
    """Every split of clusters of `nodes` x `devices` with `domain` devices on a fast link.

    Arrays have one element per cluster. Splits of one cluster are in order of tensor, pipeline, context and expert ways.
    """
    if len(nodes) == 1:
        return _of_one(limits, int(devices[0]), int(nodes[0]), int(domain[0]), request)
    return _of_all(limits, devices, nodes, domain, request)


@lru_cache(maxsize=256)
def _of_one(limits: Limits, devices: int, nodes: int, domain: int, request: LayoutRequest) -> Splits:
    """The splits of one cluster, which an estimate asks for several times under different assumptions."""
    return _of_all(limits, np.array([devices]), np.array([nodes]), np.array([domain]), request)


def _of_all(limits: Limits, devices: Ints, nodes: Ints, domain: Ints, request: LayoutRequest) -> Splits:
    gpus = devices * nodes
    tensors = np.array([request.tensor] if request.tensor else _powers(MAX_TENSOR), np.int64)
    tensors = tensors[limits.heads % tensors == 0]
    able = gpus[:, None] % tensors == 0
    if not request.tensor:
        able &= domain[:, None] >= tensors
    row, which = np.nonzero(able)
    tensor = tensors[which]
    # A cluster has `per_tensor` tensor groups, `room` of them on a fast link.
    per_tensor, room = gpus[row] // tensor, domain[row] // tensor
    longest = min(limits.layers, MAX_PIPELINE)
    stages = np.array([request.pipeline] if request.pipeline else range(1, longest + 1), np.int64)
    stages = stages[stages <= limits.layers]
    piped, stage = np.nonzero(per_tensor[:, None] % stages == 0)
    pipeline, room = stages[stage], room[piped]
    ranks = per_tensor[piped] // pipeline
    parts = [np.zeros((3, 0), np.int64)]
    for wide in _contexts(limits, request):
        of = np.flatnonzero(_divides(request, wide, ranks=ranks, room=room, pipeline=pipeline))
        for experts, some in _experts(limits, ranks[of], room[of], request.expert):
            parts.append(np.stack((of[some], np.full(len(some), wide), experts)))
    columns = np.concatenate(parts, axis=1)
    split, context, expert = columns[:, np.argsort(columns[0], kind="stable")]
    of_cluster = piped[split]
    ways = {
        "data": ranks[split] // context,
        "tensor": tensor[of_cluster],
        "pipeline": pipeline[split],
        "context": context,
        "expert": expert,
    }
    return Splits(row=row[of_cluster], **{name: way.astype(np.float64) for name, way in ways.items()})


def _divides(request: LayoutRequest, context: int, *, ranks: Ints, room: Ints, pipeline: Ints) -> NDArray[np.bool_]:
    """Whether `context` ways are tried for each pipeline, which leaves `ranks` ranks, `room` of them on a fast link."""
    able: NDArray[np.bool_] = ranks % context == 0
    if not request.context and context > 1:
        widest = np.minimum(room, MAX_CONTEXT)
        able &= (context <= widest) & (4 * context > widest)
        if not request.pipeline:
            able &= np.isin(pipeline, PIPELINES_WITH_CONTEXT)
    if request.data:
        able &= ranks == request.data * context
    return able


def _powers(limit: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range(limit.bit_length()))


def _contexts(limits: Limits, request: LayoutRequest) -> tuple[int, ...]:
    """Context ways to try: as requested; for long sequences all powers up to `MAX_CONTEXT`; else 1."""
    if request.context:
        return (request.context,)
    return _powers(MAX_CONTEXT) if limits.splits_sequence else (1,)


def _experts(limits: Limits, ranks: Ints, room: Ints, fixed: int | None) -> list[tuple[Ints, Ints]]:
    """(ways, indices) of expert parallelism: the widest within the fast link, and the widest possible if wider.

    `ranks` has the data x context ranks of each split, `room` the tensor groups on its fast link.
    """
    everywhere = np.arange(len(ranks))
    if fixed:
        some = everywhere[ranks % fixed == 0] if limits.experts % fixed == 0 else everywhere[:0]
        return [(np.full(len(some), fixed), some)]
    near, far = np.ones((2, len(ranks)), np.int64)
    for ways in range(2, limits.experts + 1):
        if limits.experts % ways == 0:
            able = ranks % ways == 0
            far[able] = ways
            near[able & (ways <= room)] = ways
    apart = np.flatnonzero(far > near)
    return [(near, everywhere), (far[apart], apart)]
