"""Hours that preempted machines are away: as the settings state, else typical of public traces (`spot_waits.csv`)."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.capacity_prior import AGE_CLASSES, capacity_prior
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.snapshot_cache import cached_per_snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def waits_of(columns: Columns, type_: NDArray[np.intp], zones: Ints, nodes: Ints, year: int) -> Floats:
    """The typical wait after a preemption, for an instance type, the zones of a region that sell it, and a node count.

    All arrays have one element per configuration; `year` is that of the start, which decides the age of the accelerators.
    """
    table = spot_waits()
    age, of_one_node = _by_type(columns, year)
    at = type_ * of_one_node.shape[1] + np.minimum(zones, table.most_zones)
    counts = np.arange(1, nodes.max(initial=0) + 1)
    rises = np.concatenate([counts ** table.wait_node_exponent[name] for name in AGE_CLASSES])
    return np.asarray(of_one_node.ravel().take(at) * rises.take(age.take(type_) * len(counts) + nodes - 1))


def powers(nodes: Ints, exponent: float) -> Floats:
    """nodes ** exponent, from a table: there are few node counts."""
    return np.asarray((np.arange(1, nodes.max(initial=0) + 1) ** exponent).take(nodes - 1))


@cached_per_snapshot(4)
def _by_type(columns: Columns, year: int) -> tuple[Ints, Floats]:
    """The age class of each instance type, and typical waits of one node: [instance types], [instance types, zones + 1]."""
    prior, table = capacity_prior(), spot_waits()
    introduced = [accelerators()[machine.accelerator].year for machine in columns.instance_types]
    ages = [prior.age_class(introduced=at, year=year) for at in introduced]
    rows = [[table.of_one_node(age, max(1, zones)) for zones in range(table.most_zones + 1)] for age in AGE_CLASSES]
    age = np.array([AGE_CLASSES.index(age) for age in ages], np.int64)
    return age, np.array(rows, np.float64)[age]
