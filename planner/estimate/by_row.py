"""Least of every run of equal rows, in arrays that are sorted by row."""

import numpy as np

from planner.estimate.machines import Floats, Ints


def first_least(values: Floats, row: Ints) -> tuple[Ints, Ints]:
    """(index, row) of the least value of every row; `row` is sorted, the first of equals wins."""
    if not len(row):
        return row, row
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    least = np.minimum.reduceat(values, starts)
    sizes = np.diff(np.append(starts, len(row)))
    hits = np.flatnonzero(values == np.repeat(least, sizes))
    return hits[np.searchsorted(hits, starts)], row[starts]
