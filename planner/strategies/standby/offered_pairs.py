"""Spots and standbys that may form pairs, and the pairs whose cost may be below a limit.

Blocks of like standbys are bounded first, by one standby that is the best of each in every figure: of tens of thousands of
pairs most are excluded in blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.normal_cells import COARSE
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, Spots, StandbyTerms
from gpuplan.planner.strategies.standby.standby_bound import least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pairs bounded at once: few enough that arrays over them stay in the cache of a core.
_CELLS = 4_000
#: Sizes of the blocks of standbys that are bounded as one, each a multiple of the next, where there are enough.
_BLOCKS = (64, 16, 4)
_FEWEST_BLOCKS = 8
#: With more blocks left than these, a first price is looked for among so many blocks and pairs.
_MANY_BLOCKS, _FIRST_BLOCKS, _FIRST_PAIRS = 32, 8, 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standbys:
    """Configurations without preemption; the fields are those of `Pairs`, `changeover_hours` last until the first step."""

    work_hours: Floats
    log_sigma: Floats
    usd_per_hour: Floats
    storage_usd_per_hour: Floats
    fixed_usd: Floats
    step_hours: Floats
    minimum_hours: Floats
    changeover_hours: Floats

    def __len__(self) -> int:
        """How many there are."""
        return len(self.work_hours)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offered:
    """Spots and standbys; spots of one `origin` [spots] move alike.

    `moving_usd` and `moving_hours` move the checkpoint and the data, `allowed` says which may be paired:
    [origins, standbys].
    """

    spots: Spots
    standbys: Standbys
    origin: Ints
    moving_usd: Floats
    moving_hours: Floats
    allowed: NDArray[np.bool_]

    @property
    def allowed_pairs(self) -> int:
        """How many pairs there are."""
        return int(self.allowed.sum(axis=1)[self.origin].sum())

    def pairs(self, spot: Ints, standby: Ints) -> Pairs:
        """The pairs of these spots and standbys, element by element."""
        origin = self.origin[spot]
        of_spot = {field.name: getattr(self.spots, field.name)[spot] for field in fields(Spots)}
        of_standby = {
            f"standby_{field.name}": getattr(self.standbys, field.name)[standby]
            for field in fields(Standbys)
            if field.name != "changeover_hours"
        }
        of_standby["standby_fixed_usd"] = of_standby["standby_fixed_usd"] + self.moving_usd[origin, standby]
        return Pairs(
            spot=spot,
            standby=standby,
            changeover_hours=self.standbys.changeover_hours[standby] + self.moving_hours[origin, standby],
            **of_spot,
            **of_standby,
        )

    def in_blocks(self, order: Ints, begins: Ints) -> "Offered":
        """A relaxation: in place of each block of standbys in this order, one that is the best of them in every figure."""

        def least_of(figures: Floats) -> Floats:
            return np.asarray(np.minimum.reduceat(figures[..., order], begins, axis=-1))

        best = {field.name: least_of(getattr(self.standbys, field.name)) for field in fields(Standbys)}
        return Offered(
            spots=self.spots,
            standbys=Standbys(**best),
            origin=self.origin,
            moving_usd=least_of(self.moving_usd),
            moving_hours=least_of(self.moving_hours),
            allowed=np.logical_or.reduceat(self.allowed[:, order], begins, axis=1),
        )


def pairs_below(
    offered: Offered,
    terms: StandbyTerms,
    below_usd: float,
    price_one: Callable[[Pairs], float] | None = None,
) -> tuple[Ints, Ints, Floats]:
    """The pairs whose bound is below `below_usd`, and their bounds, ascending.

    Blocks of like standbys are bounded first; only blocks whose bound is below are taken apart. Where many are, the best pairs
    of a few lower the limit by a first price.
    """
    order, levels = _levels(offered.standbys)
    spot = np.repeat(np.arange(len(offered.spots)), len(levels[0]))
    block = np.tile(np.arange(len(levels[0])), len(offered.spots))
    for begins, finer in pairwise(levels):
        some, bound = _below(offered.in_blocks(order, begins), spot, block, terms, below_usd)
        spot, block = spot[some], block[some]
        if price_one is not None and len(some) > _MANY_BLOCKS:
            first = np.argsort(bound, kind="stable")[:_FIRST_BLOCKS]
            spots, places = _parts(spot[first], block[first], begins, levels[-1])
            below_usd = price_one(_best(offered, spots, order[places], terms, below_usd))
            spot, block, price_one = spot[bound < below_usd], block[bound < below_usd], None
        spot, block = _parts(spot, block, begins, finer)
    standby = order[block]
    some, bound = _below(offered, spot, standby, terms, below_usd)
    ascending = np.argsort(bound, kind="stable")
    return spot[some][ascending], standby[some][ascending], bound[ascending]


def _parts(spot: Ints, block: Ints, begins: Ints, finer: Ints) -> tuple[Ints, Ints]:
    """The pairs of spots and finer blocks within these pairs of spots and blocks."""
    first = np.searchsorted(finer, begins)
    parts = np.diff(first, append=len(finer))[block]
    within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.repeat(spot, parts), np.repeat(first[block], parts) + within


def _best(offered: Offered, spot: Ints, standby: Ints, terms: StandbyTerms, below_usd: float) -> Pairs:
    """The few of these pairs that have the least bounds."""
    some, bound = _below(offered, spot, standby, terms, below_usd)
    some = some[np.argsort(bound, kind="stable")[:_FIRST_PAIRS]]
    return offered.pairs(spot[some], standby[some])


def _levels(standbys: Standbys) -> tuple[Ints, list[Ints]]:
    """An order of the standbys, and where blocks begin in it: ever finer, at last one of each.

    Neighbours have about the same hours of work (to a tenth) and then the same cost of the work: blocks of like cost and
    unlike hours would pair the least hours with the lowest price. Standbys of one block have the same spread, since a
    bound need not grow with it.
    """
    singles = np.arange(len(standbys))
    sizes = [size for size in _BLOCKS if size * _FEWEST_BLOCKS <= len(singles)]
    if not sizes:
        return singles, [singles]
    usd = (standbys.usd_per_hour + standbys.storage_usd_per_hour) * standbys.work_hours
    order = np.lexsort((usd, np.round(np.log(standbys.work_hours), 1), standbys.log_sigma))
    spreads = np.flatnonzero(np.diff(standbys.log_sigma[order])) + 1
    return order, [*(np.union1d(singles[::size], spreads) for size in sizes), singles]


def _below(offered: Offered, spot: Ints, standby: Ints, terms: StandbyTerms, below_usd: float) -> tuple[Ints, Floats]:
    """Indices of the pairs that are allowed and have a bound below `below_usd`, and these bounds."""
    left, bounds = [np.zeros(0, np.int64)], [np.zeros(0)]
    allowed = np.flatnonzero(offered.allowed[offered.origin[spot], standby])
    for first in range(0, len(allowed), _CELLS):
        some = allowed[first : first + _CELLS]
        bound = least(offered.pairs(spot[some], standby[some]), terms, COARSE)
        below = bound < below_usd
        left.append(some[below])
        bounds.append(bound[below])
    return np.concatenate(left), np.concatenate(bounds)
