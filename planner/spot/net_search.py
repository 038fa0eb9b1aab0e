"""The cheapest pair of a spot configuration and its standby: best first, by a bound that no pair can undercut.

The bound (`net_bound`) costs a few operations per pair and leaves few of thousands. These are priced by moments
(`net.usd_by_interval`) at every interval between checkpoints that is tried, in the order of their bounds, until the bounds
reach the best found; and exactly (`net_exact`), the cheapest by moments first, until no pair is left at any interval whose
bound there is below the best. The bound is proof, moments are not: they only say what to look at first.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.pareto import group_of, nondominated
from planner.spot.net import NetTerms, Pairs, intervals, usd_by_interval
from planner.spot.net_bound import COARSE, FINE, least, least_at
from planner.spot.net_exact import NetRun, PricedRun

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Runs priced exactly at most, some 4 ms each, which bounds the time; pairs beyond are left open, counted with their bound.
MOST_EXACT = 1_000
_BATCH = 256
_CELLS = 100_000
#: What makes a run dearer the more of it there is, however it goes, and what decides how it goes, with the interval.
_DEARER = (
    "usd_per_hour",
    "storage_usd_per_hour",
    "fixed_usd",
    "standby_usd_per_hour",
    "standby_storage_usd_per_hour",
    "standby_fixed_usd",
)
_ALIKE = (
    "work_hours",
    "log_sigma",
    "rate",
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
class Spots:
    """Interruptible configurations; the fields are those of `Pairs`."""

    work_hours: Floats
    log_sigma: Floats
    rate: Floats
    checkpoint_hours: Floats
    usd_per_hour: Floats
    storage_usd_per_hour: Floats
    fixed_usd: Floats
    step_hours: Floats
    minimum_hours: Floats

    def __len__(self) -> int:
        """How many there are."""
        return len(self.work_hours)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standbys:
    """Configurations that nobody takes away; the fields are those of `Pairs`, `changeover_hours` till the first step."""

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
    """What may be paired: `allowed` says which may be, `moving_usd` and `moving_hours` bring the checkpoint from spot to
    standby: [spots, standbys].
    """

    spots: Spots
    standbys: Standbys
    moving_usd: Floats
    moving_hours: Floats
    allowed: NDArray[np.bool_]

    def pairs(self, spot: Ints, standby: Ints) -> Pairs:
        """The pairs of these spots and standbys, element by element."""
        of_spot = {each.name: getattr(self.spots, each.name)[spot] for each in fields(Spots)}
        of_standby = {
            f"standby_{each.name}": getattr(self.standbys, each.name)[standby]
            for each in fields(Standbys)
            if each.name != "changeover_hours"
        }
        of_standby["standby_fixed_usd"] = of_standby["standby_fixed_usd"] + self.moving_usd[spot, standby]
        return Pairs(
            spot=spot,
            standby=standby,
            changeover_hours=self.standbys.changeover_hours[standby] + self.moving_hours[spot, standby],
            **of_spot,
            **of_standby,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPair:
    """The best pair and what it comes to."""

    spot: int
    standby: int
    run: NetRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSearch:
    """What was found (None: nothing in time below the limit), and what is proven of the rest.

    There were so many `pairs`; the bound left those that were priced `by_moments`. So many runs of them, each at an
    interval, were priced `exactly`. Of the others the bound rules out all but those of `left_open` pairs, which were one
    too many; none costs less than `left_open_usd` (infinite where there are none).
    """

    best: CheapestPair | None
    pairs: int
    by_moments: int
    exactly: int
    left_open: int
    left_open_usd: float


def cheapest_pair(offered: Offered, terms: NetTerms, *, below_usd: float = np.inf) -> PairSearch:
    """The cheapest pair that is in time with the confidence asked and costs less than `below_usd`."""
    spot, standby, bound = _bounded(offered, terms, below_usd)
    search = _Search(terms=terms, best_usd=below_usd)
    for first in range(0, len(bound), _BATCH):
        if bound[first] >= search.best_usd:
            break
        go_on()
        which = np.arange(first, min(first + _BATCH, len(bound)))
        pairs = offered.pairs(spot[which], standby[which])
        bounds = np.maximum(bound[which], least(pairs, terms, FINE))
        some = bounds < search.best_usd
        search.price(pairs.take(some), bounds[some])
    best = search.best
    left_open = search.left_open
    return PairSearch(
        best=None if best is None else _as_found(best),
        pairs=int(offered.allowed.sum()),
        by_moments=search.by_moments,
        exactly=search.exactly,
        left_open=len(left_open),
        left_open_usd=float(left_open.min(initial=np.inf)),
    )


def _as_found(best: PricedRun) -> CheapestPair:
    return CheapestPair(spot=int(best.pairs.spot[0]), standby=int(best.pairs.standby[0]), run=best.outcome())


@dataclass(slots=True, kw_only=True)
class _Search:
    """The best run so far, what has been priced for it, and the bounds of pairs of which a run was not."""

    terms: NetTerms
    best_usd: float
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
        if self.exactly >= MOST_EXACT:
            self.unpriced.append(bounds)
            return
        self.by_moments += len(pairs)
        tried = intervals(pairs)
        usd = usd_by_interval(pairs, self.terms)
        # The shortest intervals may be alike.
        usd[:, 1:][tried[:, 1:] == tried[:, :-1]] = np.inf
        pair, at = np.nonzero(np.isfinite(usd))
        interval_hours, usd = tried[pair, at], usd[pair, at]
        least_ = np.maximum(bounds[pair], least_at(pairs.take(pair), self.terms, interval_hours))
        figures = np.stack([getattr(pairs, name)[pair] for name in _DEARER + _ALIKE] + [interval_hours], axis=1)
        left = np.full(len(pairs), np.inf)
        for i in np.argsort(usd, kind="stable").tolist():
            if least_[i] >= self.best_usd or _beaten(figures[i], self.priced[: self.exactly]):
                continue
            if self.exactly >= MOST_EXACT:
                left[pair[i]] = min(left[pair[i]], least_[i])
                continue
            go_on()
            self.priced[self.exactly] = figures[i]
            self.exactly += 1
            now = PricedRun.below(pairs.take(pair[i : i + 1]), self.terms, float(interval_hours[i]), self.best_usd)
            if now is not None and now.usd < self.best_usd:
                self.best_usd, self.best = now.usd, now
        self.unpriced.append(left)


def _beaten(figures: Floats, priced: Floats) -> bool:
    """Whether some run that has been priced goes the same way and costs no more in anything."""
    alike = (priced[:, len(_DEARER) :] == figures[len(_DEARER) :]).all(axis=1)
    return bool((priced[alike, : len(_DEARER)] <= figures[: len(_DEARER)]).all(axis=1).any())


def _bounded(offered: Offered, terms: NetTerms, below_usd: float) -> tuple[Ints, Ints, Floats]:
    """The pairs whose bound is below `below_usd`, and their bounds, ascending."""
    spots, standbys, bounds = [], [], []
    rows = max(1, _CELLS // max(1, len(offered.standbys)))
    some = _worth_pairing(offered, terms, below_usd)
    for first in range(0, len(some), rows):
        which = some[first : first + rows]
        bound = least_usd(offered, which, terms)
        at = np.nonzero(offered.allowed[which] & (bound < below_usd))
        spots.append(which[at[0]])
        standbys.append(at[1])
        bounds.append(bound[at])
    if not bounds:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    spot, standby = np.concatenate(spots), np.concatenate(standbys)
    bound = np.concatenate(bounds)
    order = np.argsort(bound, kind="stable")
    return spot[order], standby[order], bound[order]


def _worth_pairing(offered: Offered, terms: NetTerms, below_usd: float) -> Ints:
    """The spots that stay below `below_usd` by their bound even where every standby stands beside them for nothing more."""
    if not len(offered.standbys):
        return np.zeros(0, np.int64)
    standbys = offered.standbys
    best = nondominated(
        standbys.work_hours,
        standbys.usd_per_hour + standbys.storage_usd_per_hour,
        standbys.changeover_hours,
        group=group_of(standbys.log_sigma),
    )
    few = Standbys(**{each.name: getattr(standbys, each.name)[best] for each in fields(Standbys)})
    few = replace(few, fixed_usd=np.zeros(len(best)))
    nothing = np.zeros((len(offered.spots), len(best)))
    relaxed = Offered(
        spots=offered.spots,
        standbys=few,
        moving_usd=nothing,
        moving_hours=nothing,
        allowed=np.ones(nothing.shape, np.bool_),
    )
    rows = max(1, _CELLS // len(best))
    parts = [np.arange(i, min(i + rows, len(offered.spots))) for i in range(0, len(offered.spots), rows)]
    least = [least_usd(relaxed, part, terms).min(axis=1) for part in parts]
    return np.flatnonzero(np.concatenate(least) < below_usd) if least else np.zeros(0, np.int64)


def least_usd(offered: Offered, which: Ints, terms: NetTerms) -> Floats:
    """What no pair of these spots undercuts: [spots, standbys]; infinite where it cannot be in time at all."""
    every = np.arange(len(offered.standbys))
    return least(offered.pairs(which[:, None], every[None, :]), terms, COARSE)
