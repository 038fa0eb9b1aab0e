"""The two orders of a pair of columns, and the batches in which pairs are compared."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns

Ints = NDArray[np.int64]

#: Pairs compared in the first batch, the growth factor of the following ones, and the largest batch. A good plan from the
#: first batch excludes most of the others; larger batches take more memory and save nothing.
_TOGETHER, _LARGER, _LARGEST = 256, 4, 2_048


def offer_groups(order: Ints) -> Iterator[Ints]:
    """The elements in this order, a small batch first, then larger ones."""
    count = _TOGETHER
    while len(order):
        yield order[:count]
        order, count = order[count:], min(count * _LARGER, _LARGEST)


def in_order(columns: PhaseColumns, rank: Ints, pairs: Ints) -> Ints:
    """Each pair of columns in both orders, the order by rank first. A column that is up comes first or not at all."""
    by_rank = np.take_along_axis(pairs, np.argsort(rank[pairs], axis=1), axis=1)
    sequences = np.concatenate((by_rank, by_rank[:, ::-1]))
    return sequences[~columns.up[sequences[:, 1]]]
