"""The Pareto frontier of points in three measures (cost, time, carbon), exact in O(n log n).

In order of the first measure, a point is dominated exactly if an earlier one is no worse in the other two. The best
earlier points form a staircase (second measure rising, third falling), in which one bisection finds the only point to
compare with (Kung, Luccio and Preparata, On finding the maxima of a set of vectors, JACM 1975).
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def nondominated(first: Floats, second: Floats, third: Floats, *, group: Ints | None = None) -> Ints:
    """Indices of the nondominated elements: no other is at most equal in all three measures and less in one.

    With a `group` per element, elements are compared within their group only. Of points equal in all three measures the
    first stays. All values must be finite. The result is sorted by group, first measure, then second.
    """
    groups = np.zeros(len(first), np.int64) if group is None else group
    if len(third) and _is_constant_by_group(third, groups):
        return _nondominated_in_two(first, second, groups)
    left = np.lexsort((third, second, first, groups))
    heights: list[float] = []
    depths: list[float] = []
    front, now = [], None
    sorted_points = zip(left.tolist(), groups[left].tolist(), second[left].tolist(), third[left].tolist(), strict=True)
    for at, mine, b, c in sorted_points:
        if mine != now:
            now, heights, depths = mine, [], []
        place = bisect_right(heights, b)
        if place and depths[place - 1] <= c:
            continue
        front.append(at)
        end = place
        while end < len(depths) and depths[end] >= c:
            end += 1
        # A step of equal height is worse in depth, else it would dominate this point.
        start = place - 1 if place and heights[place - 1] == b else place
        heights[start:end], depths[start:end] = [b], [c]
    return np.array(front, np.int64)


def group_of(*columns: Floats | Ints) -> Ints:
    """A group number per element, equal for elements that are equal in all columns."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            distinct, number = np.unique(column, return_inverse=True)
            group = group * len(distinct) + number
    return group


def _is_constant_by_group(values: Floats, groups: Ints) -> bool:
    """Whether elements of one group have the same value."""
    if (values == values[0]).all():
        return True
    distinct, number = np.unique(groups, return_inverse=True)
    of_group = np.empty(len(distinct))
    of_group[number] = values
    return bool((of_group[number] == values).all())


def _nondominated_in_two(first: Floats, second: Floats, groups: Ints) -> Ints:
    """`nondominated` if the third measure is constant within each group: one pass over each sorted group."""
    order = np.lexsort((second, first, groups))
    begins = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    fronts = []
    for part in np.split(order, begins[1:]):
        least = np.minimum.accumulate(second[part])
        fronts.append(part[np.append(True, second[part[1:]] < least[:-1])])
    return np.concatenate(fronts)
