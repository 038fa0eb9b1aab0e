"""Points that no other beats in cost, time and carbon at once: exact, in O(n log n).

In order of the first measure a point is beaten exactly if some earlier one is no worse in the other two. The best of the
earlier ones form a staircase (second measure rising, third falling), in which one bisection finds the only rival that
matters (Kung, Luccio and Preparata, On finding the maxima of a set of vectors, JACM 1975). Before that, arrays drop what
a few good points beat, which is most.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Points that all others are held against first; each costs one pass over what is left.
_PROBES = 48


def nondominated(first: Floats, second: Floats, third: Floats, *, group: Ints | None = None) -> Ints:
    """Elements that no other beats: none is as good in all three (less is better) and better in one.

    With a `group` of each element, those that no other of its group beats. Of points equal in all three the first stays.
    All values are finite. Sorted by the group, the first measure, then the second.
    """
    points = np.stack((first, second, third))
    groups = np.zeros(points.shape[1], np.int64) if group is None else group
    left = _unbeaten_by_probes(points, groups)
    left = left[np.lexsort((*points[::-1, left], groups[left]))]
    heights: list[float] = []
    depths: list[float] = []
    kept, now = [], None
    sorted_points = zip(left.tolist(), groups[left].tolist(), second[left].tolist(), third[left].tolist(), strict=True)
    for at, mine, b, c in sorted_points:
        if mine != now:
            now, heights, depths = mine, [], []
        place = bisect_right(heights, b)
        if place and depths[place - 1] <= c:
            continue
        kept.append(at)
        end = place
        while end < len(depths) and depths[end] >= c:
            end += 1
        # A step of equal height is worse in depth, or this point would be beaten by it.
        start = place - 1 if place and heights[place - 1] == b else place
        heights[start:end], depths[start:end] = [b], [c]
    return np.array(kept, np.int64)


def group_of(*columns: Floats | Ints) -> Ints:
    """A number per element, the same for elements that are alike in all columns."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            distinct, number = np.unique(column, return_inverse=True)
            group = group * len(distinct) + number
    return group


def _unbeaten_by_probes(points: Floats, groups: Ints) -> Ints:
    """Elements that none of a few good points of their group beats."""
    count = points.shape[1]
    if count <= 4 * _PROBES:
        return np.arange(count)
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return np.concatenate([part[_unbeaten_in_one(points[:, part])] for part in parts])


def _unbeaten_in_one(points: Floats) -> Ints:
    """Elements that none of the points with the least sums of ranks beats, which lie near the front."""
    count = points.shape[1]
    left = np.arange(count)
    if count <= 4 * _PROBES:
        return left
    ranks = np.argsort(np.argsort(points, axis=1), axis=1).sum(axis=0)
    for probe in np.argpartition(ranks, _PROBES)[:_PROBES].tolist():
        here, point = points[:, left], points[:, probe : probe + 1]
        left = left[~((here >= point).all(axis=0) & (here > point).any(axis=0))]
    return left
