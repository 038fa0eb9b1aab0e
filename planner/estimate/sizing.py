"""How far one configuration is from the limits of memory: the largest micro-batch, the fewest accelerators, loading."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from planner.estimate.clusters import GIB
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.estimate.memory import MARGIN
from planner.workload.work import Work

#: Nodes up to which the least number of accelerators is looked for.
MOST_NODES = 4096
#: Parts of a layout that a user fixes for any number of accelerators.
_KEPT = ("zero_stage", "micro_batch", "checkpointing")


def largest_micro_batch(work: Work, found: Estimates, capacity_gib: float) -> int | None:
    """Samples per pass that fit with the usual margin at the layout of the first row of `found`, 0 if not one does.

    Memory is states + other + samples x activations, so this is a division. None where the job does not tell what
    a sample takes (explicit work).
    """
    each = float(found.activations_gib[0]) / max(1.0, float(found.micro_batch[0]))
    if work.fixed_state_gib is not None or each <= 0:
        return None
    room = capacity_gib * (1.0 - MARGIN) - float(found.states_gib[0]) - float(found.other_gib[0])
    return max(0, math.floor(room / each + 1e-9))


def loading_gib(work: Work, found: Estimates, element_bytes: float) -> float | None:
    """What a stack needs while it loads that builds its whole share of the model before it shards it (ZeRO-3), GiB.

    The unsharded weights stand beside the shard (LitGPT's runs with FSDP, which peak there). None where nothing is
    sharded that way or the job does not tell its parameters.
    """
    ranks = int(found.data[0]) * int(found.context[0])
    if work.fixed_state_gib is not None or int(found.zero_stage[0]) < 3 or ranks <= 1:
        return None
    ways = int(found.tensor[0]) * int(found.pipeline[0])
    weights = element_bytes * work.trainable_parameters + work.frozen_parameter_bytes
    return float(weights / ways * (1.0 + 1.0 / ranks) / GIB)


#: The one row of so many accelerators, and the estimate of rows under a request.
RowOf = Callable[[int], Machines]
Ask = Callable[[Machines, LayoutRequest], Estimates]


def least_accelerators(ask: Ask, row_of: RowOf, per_node: int, request: LayoutRequest) -> int | None:
    """The fewest accelerators that can run the job at any layout with the micro-batch and recomputation asked for.

    Parts of one node come before whole nodes. Every whole number of nodes is tried in order, in blocks that double, since
    what fits on some number need not fit on the next. None where no number up to `MOST_NODES` nodes does.
    """
    asked = LayoutRequest(**{part: getattr(request, part) for part in _KEPT})
    first, beyond = _first_able(ask, row_of, range(1, per_node + 1), asked), 2
    while first is None and beyond <= MOST_NODES:
        nodes = range(beyond, min(2 * beyond, MOST_NODES + 1))
        first, beyond = _first_able(ask, row_of, [per_node * count for count in nodes], asked), 2 * beyond
    return first


def _first_able(ask: Ask, row_of: RowOf, counts: Sequence[int], request: LayoutRequest) -> int | None:
    """The first of `counts` that can run the job; None if none can."""
    able = ask(_joined([row_of(count) for count in counts]), request).reason == 0
    return counts[int(np.argmax(able))] if able.any() else None


def _joined(rows: list[Machines]) -> Machines:
    """One-row machines of the same accelerator as columns."""
    columns = [name for name in Machines.__slots__ if name != "accelerators"]
    parts = {name: np.concatenate([getattr(row, name) for row in rows]) for name in columns}
    return Machines(accelerators=rows[0].accelerators, **parts)
