"""The cheapest pair of a spot configuration and its standby: best first, by a lower bound on each pair.

The bound (`standby_bound`) costs a few operations per pair and leaves few of thousands. These are priced by moments
(`usd_by_interval`) at every checkpoint interval tried, in the order of their bounds, until the bounds reach the best plan.
Then they are priced exactly (`exact_standby_run`), the cheapest by moments first, until no pair has a bound below the best
at any interval, after the first price by a closer bound. The bounds are the proof. Moments are not: they only set the order.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on
from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun, StandbyRun
from gpuplan.planner.strategies.standby.normal_cells import FINE
from gpuplan.planner.strategies.standby.offered_pairs import Offered, pairs_below
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
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
    search = _Search(terms=terms, best_usd=below_usd, most_exact=MOST_EXACT)
    spot, standby, bound = pairs_below(offered, terms, below_usd, search.price_one)
    few = all_or_few and len(bound) > MOST_EXACT
    if few:
        search.most_exact = FEW_EXACT
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
        figures = _figures(pairs.take(pair), interval_hours)
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
                self._price_exactly(pairs.take(pair[i : i + 1]), float(interval_hours[i]), figures[i])
        self.unpriced.append(left)

    def price_one(self, pairs: Pairs) -> float:
        """Price the cheapest run of these pairs by moments, and return the best price so far."""
        tried, usd = intervals(pairs), usd_by_interval(pairs, self.terms)
        if np.isfinite(usd).any():
            pair, at = np.unravel_index(np.argmin(usd), usd.shape)
            one, interval_hours = pairs.take(np.array([pair])), tried[pair, at]
            self._price_exactly(one, float(interval_hours), _figures(one, interval_hours)[0])
        return self.best_usd

    def _price_exactly(self, pair: Pairs, interval_hours: float, figures: Floats) -> None:
        go_on()
        self.priced[self.exactly] = figures
        self.exactly += 1
        now = PricedRun.below(pair, self.terms, interval_hours, self.best_usd)
        if now is not None and now.usd < self.best_usd:
            self.best_usd, self.best = now.usd, now


def _figures(pairs: Pairs, interval_hours: Floats) -> Floats:
    """The figures of `_DEARER` and `_ALIKE` of these pairs, and the interval of each: [pairs, figures]."""
    return np.stack(np.broadcast_arrays(*(getattr(pairs, name) for name in _DEARER + _ALIKE), interval_hours), axis=1)


def _beaten(figures: Floats, priced: Floats) -> bool:
    """Whether some priced run has the same dynamics and no higher price in any figure."""
    alike = (priced[:, len(_DEARER) :] == figures[len(_DEARER) :]).all(axis=1)
    return bool((priced[alike, : len(_DEARER)] <= figures[: len(_DEARER)]).all(axis=1).any())
