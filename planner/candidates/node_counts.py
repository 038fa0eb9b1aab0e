"""Node counts: every distinct (machine shape, node count) that a job can run on, as the rows to estimate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.machine_shapes import Shapes
from gpuplan.planner.performance.estimator_request import Machines

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineCandidates:
    """Machines to estimate, and the row of each (shape, node count) among them.

    Pair p is (`shape[p]`, `nodes[p]`) and is estimated in row `row[p]`. Pairs are sorted by shape: shape s has the pairs
    `first[s]:first[s + 1]`. Shapes that differ only in their network share one row for a single node.
    """

    machines: Machines
    shape: Ints
    nodes: Ints
    row: Ints
    first: Ints


def machine_candidates(shapes: Shapes, wanted: tuple[int, ...], max_nodes: int) -> MachineCandidates:
    """Rows for the shapes whose indices are `wanted`: every whole number of nodes up to `max_nodes`.

    Machines that do not cluster have one row with one node. A slice that is sold as a whole has one row with all its
    hosts.
    """
    shape, nodes, first = pairs_of(shapes, wanted, max_nodes)
    representative, row = _distinct(shapes, shape, nodes)
    return MachineCandidates(
        machines=_machines(shapes, shape[representative], nodes[representative]),
        shape=shape,
        nodes=nodes,
        row=row,
        first=first,
    )


def pairs_of(shapes: Shapes, wanted: tuple[int, ...], max_nodes: int) -> tuple[Ints, Ints, Ints]:
    """`shape`, `nodes` and `first` of the rows for these shapes."""
    every = np.array(wanted, dtype=np.int64)
    fixed = shapes.fixed_nodes[every].astype(np.int64)
    least = np.maximum(fixed, 1)
    most = np.where(fixed > 0, fixed, np.where(shapes.clusters[every], max_nodes, 1))
    count = np.where(least <= max_nodes, most - least + 1, 0)
    shape = np.repeat(every, count)
    nodes = np.repeat(least - (np.cumsum(count) - count), count) + np.arange(len(shape))
    return shape, nodes, np.searchsorted(shape, np.arange(len(shapes) + 1))


def _distinct(shapes: Shapes, shape: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """First pair of each distinct row, and the row of every pair."""
    machine = np.where(nodes == 1, shapes.alone[shape], len(shapes) + shape)
    key = machine * (int(nodes.max(initial=0)) + 1) + nodes
    _, representative, row = np.unique(key, return_index=True, return_inverse=True)
    return representative.astype(np.int64), row.reshape(-1).astype(np.int64)


def _machines(shapes: Shapes, shape: Ints, nodes: Ints) -> Machines:
    return Machines(
        accelerators=shapes.accelerators,
        accelerator=shapes.accelerator[shape].astype(np.int64),
        devices=shapes.devices[shape].astype(np.int64),
        fraction=shapes.fraction[shape],
        device_memory_mib=shapes.device_memory_mib[shape],
        intranode_gbs=shapes.intranode_gbs[shape],
        scaleup_domain=shapes.scaleup_domain[shape].astype(np.int64),
        internode_gbps=shapes.internode_gbps[shape],
        clusters=shapes.clusters[shape],
        nodes=nodes,
    )
