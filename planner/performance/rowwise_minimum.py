"""The minimum per row in arrays sorted by row."""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats, Ints


def first_least(values: Floats, row: Ints) -> tuple[Ints, Ints]:
    """(index, row) of the least value of every row, the first of equal ones; `row` must be sorted."""
    if not len(row):
        return row, row
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    least = np.minimum.reduceat(values, starts)
    sizes = np.diff(np.append(starts, len(row)))
    hits = np.flatnonzero(values == np.repeat(least, sizes))
    return hits[np.searchsorted(hits, starts)], row[starts]
