"""The cheapest pair of a spot configuration and its standby: best first, by a lower bound on each pair.

The bound (`standby_bound`) costs a few operations per pair and leaves few of thousands. These are priced by moments
(`usd_by_interval`) at every checkpoint interval tried, in the order of their bounds, until the bounds reach the best plan.
Then they are priced exactly (`exact_standby_run`), the cheapest by moments first, until no pair has a bound below the best
at any interval, after the first price by a closer bound. The bounds are the proof. Moments are not: they only set the order.
"""

from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun, StandbyRun
from gpuplan.planner.strategies.standby.normal_cells import COARSE, FINE
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, Spots, StandbyTerms
from gpuplan.planner.strategies.standby.standby_bound import least, least_at, least_by_losses
from gpuplan.planner.strategies.standby.standby_switching import intervals, usd_by_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The most runs priced exactly, some 4 ms each, which limits the time. Pairs beyond are left open, with their bound.
MOST_EXACT = 1_000
#: As many where a cheap pair is enough and more pairs are left than could be priced exactly, so that none is proven cheapest.
FEW_EXACT = 250
#: Pairs of which the cheapest by moments are priced first; more of them where only a few are.
_BATCH, _LARGE_BATCH = 256, 512
#: Pairs bounded at once: few enough that arrays over them stay in the cache of a core.
_CELLS = 4_000
#: Sizes of the blocks of standbys that are bounded as one, each a multiple of the next, where there are enough.
_BLOCKS = (64, 16, 4)
_FEWEST_BLOCKS = 8
#: Figures that make a run dearer without changing its dynamics, and figures that, with the interval, set the dynamics.
_DEARER = (
    "usd_per_hour",
    "storage_usd_per_hour",
    "fixed_usd",
    "standby_usd_per_hour",
    "standby_storage_usd_per_hour",
    "standby_fixed_usd",
)
_ALIKE = (
    "setup_hours",
    "work_hours",
    "log_sigma",
    "wall_log_sigma",
    "rate",
    "wait_hours",
    "checkpoint_hours",
    "step_hours",
    "minimum_hours",
    "standby_work_hours",
    "standby_log_sigma",
    "standby_step_hours",
    "standby_minimum_hours",
    "changeover_hours",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPair:
    """The best pair and its outcome."""

    spot: int
    standby: int
    run: StandbyRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSearch:
    """The best pair (None: none is below the limit and in time), and a bound on the rest.

    Of `pairs` in all, the bound left those that were priced `by_moments`. Runs of them, each at one interval, were priced
    `exactly`. The bound excludes all others except those of `left_open` pairs, which were beyond the limit of the search;
    none of these costs less than `left_open_usd` (infinite where there are none).
    """

    best: CheapestPair | None
    pairs: int
    by_moments: int
    exactly: int
    left_open: int
    left_open_usd: float


def cheapest_pair(
    offered: Offered, terms: StandbyTerms, *, below_usd: float = np.inf, all_or_few: bool = False
) -> PairSearch:
    """The cheapest pair that meets the deadline at the requested confidence and costs less than `below_usd`.

    With `all_or_few`, a search that could not price all pairs exactly that the bound leaves prices `FEW_EXACT` runs only.
    """
    spot, standby, bound = _bounded(offered, terms, below_usd)
    few = all_or_few and len(bound) > MOST_EXACT
    search = _Search(terms=terms, best_usd=below_usd, most_exact=FEW_EXACT if few else MOST_EXACT)
    batch = _LARGE_BATCH if few else _BATCH
    for first in range(0, len(bound), batch):
        if bound[first] >= search.best_usd:
            break
        if few and search.exactly >= FEW_EXACT:
            search.unpriced.append(bound[first:])
            break
        go_on()
        which = np.arange(first, min(first + batch, len(bound)))
        pairs = offered.pairs(spot[which], standby[which])
        bounds = np.maximum(bound[which], least(pairs, terms, FINE))
        some = bounds < search.best_usd
        search.price(pairs.take(some), bounds[some])
    best = search.best
    left_open = search.left_open
    return PairSearch(
        best=None if best is None else _as_found(best),
        pairs=offered.allowed_pairs,
        by_moments=search.by_moments,
        exactly=search.exactly,
        left_open=len(left_open),
        left_open_usd=float(left_open.min(initial=np.inf)),
    )


def _as_found(best: PricedRun) -> CheapestPair:
    return CheapestPair(spot=int(best.pairs.spot[0]), standby=int(best.pairs.standby[0]), run=best.outcome())


@dataclass(slots=True, kw_only=True)
class _Search:
    """The best run so far, the runs priced, and the bounds of pairs with a run that was not priced."""

    terms: StandbyTerms
    best_usd: float
    most_exact: int
    best: PricedRun | None = None
    by_moments: int = 0
    exactly: int = 0
    priced: Floats = field(default_factory=lambda: np.empty((MOST_EXACT, len(_DEARER) + len(_ALIKE) + 1)))
    unpriced: list[Floats] = field(default_factory=list)

    @property
    def left_open(self) -> Floats:
        """The bounds of the pairs that are left open below the best."""
        bounds = np.concatenate((np.zeros(0), *self.unpriced))
        return bounds[bounds < self.best_usd]

    def price(self, pairs: Pairs, bounds: Floats) -> None:
        """Price these pairs at every interval at which their bound is below the best, the cheapest by moments first."""
        if self.exactly >= self.most_exact:
            self.unpriced.append(bounds)
            return
        self.by_moments += len(pairs)
        tried = intervals(pairs)
        usd = usd_by_interval(pairs, self.terms)
        # The shortest intervals may be equal.
        usd[:, 1:][tried[:, 1:] == tried[:, :-1]] = np.inf
        pair, at = np.nonzero(np.isfinite(usd))
        interval_hours, usd = tried[pair, at], usd[pair, at]
        least_ = np.maximum(bounds[pair], least_at(pairs.take(pair), self.terms, interval_hours))
        figures = np.stack([getattr(pairs, name)[pair] for name in _DEARER + _ALIKE] + [interval_hours], axis=1)
        left, order = np.full(len(pairs), np.inf), np.argsort(usd, kind="stable")
        # Beside a first price few runs are left to be bounded closely.
        for some in np.split(order, [int(self.best is None)]):
            near = some[least_[some] < self.best_usd]
            if len(near) > 1:
                by_losses = least_by_losses(pairs.take(pair[near]), self.terms, interval_hours[near])
                least_[near] = np.maximum(least_[near], by_losses)
            for i in some.tolist():
                if least_[i] >= self.best_usd or _beaten(figures[i], self.priced[: self.exactly]):
                    continue
                if self.exactly >= self.most_exact:
                    left[pair[i]] = min(left[pair[i]], least_[i])
                    continue
                self.priced[self.exactly] = figures[i]
                self._price_exactly(pairs.take(pair[i : i + 1]), float(interval_hours[i]))
        self.unpriced.append(left)

    def _price_exactly(self, pair: Pairs, interval_hours: float) -> None:
        go_on()
        self.exactly += 1
        now = PricedRun.below(pair, self.terms, interval_hours, self.best_usd)
        if now is not None and now.usd < self.best_usd:
            self.best_usd, self.best = now.usd, now


def _beaten(figures: Floats, priced: Floats) -> bool:
    """Whether some priced run has the same dynamics and no higher price in any figure."""
    alike = (priced[:, len(_DEARER) :] == figures[len(_DEARER) :]).all(axis=1)
    return bool((priced[alike, : len(_DEARER)] <= figures[: len(_DEARER)]).all(axis=1).any())


def _bounded(offered: Offered, terms: StandbyTerms, below_usd: float) -> tuple[Ints, Ints, Floats]:
    """The pairs whose bound is below `below_usd`, and their bounds, ascending.

    Blocks of like standbys are bounded first; only blocks whose bound is below are taken apart.
    """
    order, levels = _levels(offered.standbys)
    spot = np.repeat(np.arange(len(offered.spots)), len(levels[0]))
    block = np.tile(np.arange(len(levels[0])), len(offered.spots))
    for begins, finer in pairwise(levels):
        some, _ = _below(offered.in_blocks(order, begins), spot, block, terms, below_usd)
        first = np.searchsorted(finer, begins)
        parts = np.diff(first, append=len(finer))[block[some]]
        within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        spot, block = np.repeat(spot[some], parts), np.repeat(first[block[some]], parts) + within
    standby = order[block]
    some, bound = _below(offered, spot, standby, terms, below_usd)
    ascending = np.argsort(bound, kind="stable")
    return spot[some][ascending], standby[some][ascending], bound[ascending]


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
