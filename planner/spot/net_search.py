"""The cheapest pair of a spot configuration and its standby: best first, by a bound that no pair can undercut.

The bound (`net_bound`) costs a few operations per pair and leaves few of thousands. These are priced by moments
(`net.outcomes`) in the order of their bounds, until the bounds reach the best found; and exactly (`net_exact`), the
cheapest by moments first, until no bound is left below the best. The bound is proof, moments are not: they only say whom to
look at first.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.spot.net import NetTerms, Pairs, intervals, outcomes
from planner.spot.net_bound import COARSE, FINE, least, least_at
from planner.spot.net_exact import NetRun, PricedRun

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pairs priced exactly at most, some 15 ms each, which bounds the time; the others are left open, counted with their bound.
MOST_EXACT = 24


_BATCH = 256
_CELLS = 100_000
#: What makes a pair dearer the more of it there is, and what only compares where it is the same.
_DEARER = (
    "work_hours",
    "rate",
    "checkpoint_hours",
    "usd_per_hour",
    "storage_usd_per_hour",
    "fixed_usd",
    "standby_work_hours",
    "standby_usd_per_hour",
    "standby_storage_usd_per_hour",
    "standby_fixed_usd",
    "changeover_hours",
)
_ALIKE = (
    "log_sigma",
    "standby_log_sigma",
    "step_hours",
    "minimum_hours",
    "standby_step_hours",
    "standby_minimum_hours",
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

    There were so many `pairs`; the bound left those that were priced `by_moments`, of which so many `exactly`. Of the
    others the bound rules out all but `left_open`, that were one too many and are only estimated; none costs less than
    `left_open_usd` (infinite where there are none).
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
    best_usd, moments, exactly = below_usd, 0, 0
    best: tuple[int, int, PricedRun] | None = None
    priced, unpriced = np.zeros((0, len(_DEARER) + len(_ALIKE))), [np.zeros(0)]
    for first in range(0, len(bound), _BATCH):
        if bound[first] >= best_usd:
            break
        go_on()
        which = np.arange(first, min(first + _BATCH, len(bound)))
        pairs = offered.pairs(spot[which], standby[which])
        bounds = np.maximum(bound[which], least(pairs, terms, FINE))
        some = bounds < best_usd
        pairs, bounds = pairs.take(some), bounds[some]
        found = outcomes(pairs, terms)
        moments += len(pairs)
        figures = np.stack([getattr(pairs, name) for name in _DEARER + _ALIKE], axis=1)
        left = np.ones(len(pairs), np.bool_)
        for i in np.argsort(found.usd, kind="stable"):
            if not np.isfinite(found.usd[i]) or exactly == MOST_EXACT:
                break
            if bounds[i] >= best_usd:
                continue
            left[i] = False
            if _beaten(figures[i], priced):
                continue
            go_on()
            pair, interval = pairs.take(np.array([i])), float(found.interval_hours[i])
            now = PricedRun.below(pair, terms, interval, best_usd)
            priced, exactly = np.vstack((priced, figures[i])), exactly + 1
            if now is not None and now.usd < best_usd:
                best_usd, best = now.usd, (int(pairs.spot[i]), int(pairs.standby[i]), now)
        # Those that cannot be in time have no outcome, and no claim to be best.
        unpriced.append(bounds[left & np.isfinite(found.usd)])
    run = None if best is None else _at_its_best(best[2])
    most_usd = below_usd if run is None else run.usd
    open_ = np.concatenate(unpriced)
    open_ = open_[open_ < most_usd]
    return PairSearch(
        best=None if best is None or run is None else CheapestPair(spot=best[0], standby=best[1], run=run),
        pairs=int(offered.allowed.sum()),
        by_moments=moments,
        exactly=exactly,
        left_open=len(open_),
        left_open_usd=float(open_.min(initial=np.inf)),
    )


def _at_its_best(best: PricedRun) -> NetRun:
    """The pair at the interval that is best exactly, not only by moments, from the one at which it is priced."""
    pair, terms, given = best.pairs, best.terms, best.interval_hours
    for other in np.unique(intervals(pair)).tolist():
        if other == given or least_at(pair, terms, other) >= best.usd:
            continue
        now = PricedRun.below(pair, terms, other, best.usd)
        best = now if now is not None and now.usd < best.usd else best
    return best.outcome()


def _beaten(figures: Floats, priced: Floats) -> bool:
    """Whether some pair that has been priced is no worse in anything."""
    no_dearer = (priced[:, : len(_DEARER)] <= figures[: len(_DEARER)]).all(axis=1)
    return bool((no_dearer & (priced[:, len(_DEARER) :] == figures[len(_DEARER) :]).all(axis=1)).any())


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
    figures = np.stack(
        [standbys.work_hours, standbys.usd_per_hour + standbys.storage_usd_per_hour, standbys.changeover_hours], axis=1
    )
    best = _nondominated(figures, standbys.log_sigma)
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


def _nondominated(figures: Floats, alike: Floats) -> Ints:
    """Rows that no other row with the same `alike` is below in all figures; of equal ones the first."""
    order = np.lexsort((*figures.T[::-1], alike))
    kept: list[int] = []
    for i in order.tolist():
        before = figures[[each for each in kept if alike[each] == alike[i]]]
        if not len(before) or not (before <= figures[i]).all(axis=1).any():
            kept.append(i)
    return np.array(kept, np.int64)


def least_usd(offered: Offered, which: Ints, terms: NetTerms) -> Floats:
    """What no pair of these spots undercuts: [spots, standbys]; infinite where it cannot be in time at all."""
    every = np.arange(len(offered.standbys))
    return least(offered.pairs(which[:, None], every[None, :]), terms, COARSE)
