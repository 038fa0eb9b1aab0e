"""The minimum per row in arrays sorted by row."""

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats, Ints


def row_starts(row: Ints) -> Ints:
    """The index of the first element of every row; `row` must be sorted."""
    begins = np.ones(len(row), np.bool_)
    np.not_equal(row[1:], row[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def first_least(values: Floats, row: Ints) -> tuple[Ints, Ints]:
    """(index, row) of the least value of every row, the first of equal ones; `row` must be sorted."""
    if not len(row):
        return row, row
    starts = row_starts(row)
    least = np.minimum.reduceat(values, starts)
    sizes = np.diff(np.append(starts, len(row)))
    hits = np.flatnonzero(values == np.repeat(least, sizes))
    return hits[np.searchsorted(hits, starts)], row[starts]
