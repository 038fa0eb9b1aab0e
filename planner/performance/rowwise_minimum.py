"""Arrays sorted by row: the start and the minimum of each row; and a key by which equal rows are found."""

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


def combined_key(*columns: Ints) -> Ints:
    """One number per row, equal for rows that are equal in all columns of numbers >= 0."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    return key
