"""Memory headroom of one configuration: the largest micro-batch, the fewest accelerators, memory while loading."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from gpuplan.planner.performance.accelerator_memory import MARGIN
from gpuplan.planner.performance.cluster_rates import GIB
from gpuplan.planner.performance.estimator_request import Estimates, Ints, LayoutRequest, Machines
from gpuplan.planner.workload.step_work import Work

#: Largest number of nodes in the search for the fewest accelerators.
MOST_NODES = 4096
#: Parts of a requested layout that apply to any number of accelerators.
_INDEPENDENT_OF_COUNT = ("zero_stage", "micro_batch", "checkpointing")


def largest_micro_batch(work: Work, estimates: Estimates, capacity_gib: float) -> int | None:
    """Samples per micro-batch that fit with the usual margin at the layout of the first row of `estimates`, 0 if none fits.

    Memory is states + other + samples x activations, so this is a division. None if the memory of a sample is unknown
    (explicit work).
    """
    gib_per_sample = float(estimates.activations_gib[0]) / max(1.0, float(estimates.micro_batch[0]))
    if work.fixed_state_gib is not None or gib_per_sample <= 0:
        return None
    room = capacity_gib * (1.0 - MARGIN) - float(estimates.states_gib[0]) - float(estimates.other_gib[0])
    return max(0, math.floor(room / gib_per_sample + 1e-9))


def loading_gib(work: Work, estimates: Estimates, element_bytes: float) -> float | None:
    """GiB that a stack needs while loading if it builds the unsharded model before it shards it (ZeRO-3).

    The unsharded weights are in memory together with the shard, which is where LitGPT's runs with FSDP peak. None if
    the layout does not shard weights or the job does not state its parameters.
    """
    ranks = int(estimates.data[0]) * int(estimates.context[0])
    if work.fixed_state_gib is not None or int(estimates.zero_stage[0]) < 3 or ranks <= 1:
        return None
    ways = int(estimates.tensor[0]) * int(estimates.pipeline[0])
    weights = element_bytes * work.trainable_parameters + work.frozen_parameter_bytes
    return float(weights / ways * (1.0 + 1.0 / ranks) / GIB)


#: Returns the machine row with a given number of accelerators.
RowOf = Callable[[int], Machines]
#: Returns the reason why each machine row cannot run the job under a layout request; 0 where it can.
ReasonsOf = Callable[[Machines, LayoutRequest], Ints]


def least_accelerators(reasons_of: ReasonsOf, row_of: RowOf, per_node: int, request: LayoutRequest) -> int | None:
    """The fewest accelerators that can run the job at any layout with the requested micro-batch and recomputation.

    Parts of one node are tried before whole nodes. Every number of nodes is tried in order, in blocks of doubling size,
    because a job that fits on some number of nodes need not fit on the next. None if it fits on no number up to
    `MOST_NODES`.
    """
    asked = LayoutRequest(**{part: getattr(request, part) for part in _INDEPENDENT_OF_COUNT})
    first, beyond = _first_able(reasons_of, row_of, range(1, per_node + 1), asked), 2
    while first is None and beyond <= MOST_NODES:
        nodes = range(beyond, min(2 * beyond, MOST_NODES + 1))
        first, beyond = _first_able(reasons_of, row_of, [per_node * count for count in nodes], asked), 2 * beyond
    return first


def _first_able(reasons_of: ReasonsOf, row_of: RowOf, counts: Sequence[int], request: LayoutRequest) -> int | None:
    """The first of `counts` that can run the job; None if none can."""
    able = reasons_of(_joined([row_of(count) for count in counts]), request) == 0
    return counts[int(np.argmax(able))] if able.any() else None


def _joined(rows: list[Machines]) -> Machines:
    """One-row machines of the same accelerator as columns."""
    columns = [name for name in Machines.__slots__ if name != "accelerators"]
    parts = {name: np.concatenate([getattr(row, name) for row in rows]) for name in columns}
    return Machines(accelerators=rows[0].accelerators, **parts)
