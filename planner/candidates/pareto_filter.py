"""The Pareto frontier of points in three measures (cost, time, carbon), exact in O(n log n).

In order of the first measure, a point is dominated exactly if an earlier one is no worse in the other two. The best
earlier points form a staircase (second measure rising, third falling), in which one bisection finds the only point to
compare with (Kung, Luccio and Preparata, On finding the maxima of a set of vectors, JACM 1975). Before that, array
operations drop the points that a few good points dominate, which are most.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Number of good points that all others are compared with first; each costs one pass over the remaining points.
_PROBES = 48


def nondominated(first: Floats, second: Floats, third: Floats, *, group: Ints | None = None) -> Ints:
    """Indices of the nondominated elements: no other is at most equal in all three measures and less in one.

    With a `group` per element, elements are compared within their group only. Of points equal in all three measures the
    first stays. All values must be finite. The result is sorted by group, first measure, then second.
    """
    points = np.stack((first, second, third))
    groups = np.zeros(points.shape[1], np.int64) if group is None else group
    if len(third) and _is_constant_by_group(third, groups):
        return _nondominated_in_two(first, second, groups)
    left = _unbeaten_by_probes(points, groups)
    left = left[np.lexsort((*points[::-1, left], groups[left]))]
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


def _unbeaten_by_probes(points: Floats, groups: Ints) -> Ints:
    """Elements that none of a few good points of their group dominates."""
    count = points.shape[1]
    if count <= 4 * _PROBES:
        return np.arange(count)
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return np.concatenate([part[_unbeaten_in_one(points[:, part])] for part in parts])


def _unbeaten_in_one(points: Floats) -> Ints:
    """Elements that none of the points with the least sums of ranks dominates; such points are near the frontier."""
    count = points.shape[1]
    left = np.arange(count)
    if count <= 4 * _PROBES:
        return left
    ranks = np.argsort(np.argsort(points, axis=1), axis=1).sum(axis=0)
    for probe in np.argpartition(ranks, _PROBES)[:_PROBES].tolist():
        rest, point = points[:, left], points[:, probe : probe + 1]
        left = left[~((rest >= point).all(axis=0) & (rest > point).any(axis=0))]
    return left
