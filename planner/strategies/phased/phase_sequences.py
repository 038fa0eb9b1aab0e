"""The two orders of a pair of columns."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.phased.phase_columns import PhaseColumns

Ints = NDArray[np.int64]


def in_order(columns: PhaseColumns, rank: Ints, pairs: Ints) -> Ints:
    """Each pair of columns in both orders, the order by rank first. A column that is up comes first or not at all."""
    by_rank = np.take_along_axis(pairs, np.argsort(rank[pairs], axis=1), axis=1)
    sequences = np.concatenate((by_rank, by_rank[:, ::-1]))
    return sequences[~columns.up[sequences[:, 1]]]
