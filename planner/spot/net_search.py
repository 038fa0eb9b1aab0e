"""The cheapest pair of a spot configuration and its standby: best first, by a bound that no pair can undercut.

The bound of a pair. Let q be the expected share of the work that is saved on spot, t the hours that an hour of work is
paid for there at the best checkpoint interval whatever the deadline, u those that pass. By Wald's identity

    usd  >= set-up + q W t p_k + (1 - q) U p_m + P(switch) (c p_m + moving - E[restart] p_k),   P(switch) >= 1 - q,
    and P(switch) = 1 where set-up + f W + d + c > D, since not even a run without a loss ends on spot
    time:   set-up + q f W u + (1 - q) f U <= D, since no run ends later          => q <= q(z) where f W u > f U

Both are linear in q, so the least lies at q = 0 or q = q(z), for each z of the quadrature. It costs a few operations
per pair and leaves few of thousands. These are priced by moments (`net.outcomes`) in the order of their bounds, until
the bounds reach the best found; and exactly (`net_exact`), the cheapest by moments first, until no bound is left below
the best. The bound is proof, moments are not: they only say whom to look at first.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from catalog.allowed_time import go_on
from planner.spot.losses import normal_cdf, segment_losses
from planner.spot.net import NetTerms, Pairs, cut, deviations, intervals, largest_in_time, outcomes
from planner.spot.net_exact import NetRun, PricedRun
from planner.spot.net_segments import Segments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pairs priced exactly at most, some 30 ms each, which bounds the time; the others are left open, counted with their bound.
MOST_EXACT = 24


class _Quadrature(NamedTuple):
    """Shares of the estimate's error and their weights; sums are good to `within`, by which a bound is lowered."""

    nodes: Floats
    weights: Floats
    within: float


def _gauss(count: int, within: float) -> _Quadrature:
    at, weights = np.polynomial.legendre.leggauss(count)
    return _Quadrature((1.0 + at) / 2, weights, within)


#: The bound has kinks in the estimate's error where it is wide: all pairs are bounded roughly, those left finely.
_COARSE, _FINE = _gauss(9, 0.02), _gauss(48, 1e-3)
#: Runs in blocks of segments may come out below the bound by a part of this, where slack grows within a block; else they
#: are exact but for the lattice of their losses.
_BLOCKS_WITHIN, _LATTICE_WITHIN = 0.02, 5e-3
_BATCH = 256
_CELLS = 100_000
_BISECTIONS = 40
#: So few numbers are halved for one by one.
_FEW = 6
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
        least = np.maximum(bound[which], _least(offered, spot[which], standby[which], terms, _FINE))
        which, least = which[least < best_usd], least[least < best_usd]
        pairs = offered.pairs(spot[which], standby[which])
        found = outcomes(pairs, terms)
        moments += len(pairs)
        figures = np.stack([getattr(pairs, name) for name in _DEARER + _ALIKE], axis=1)
        left = np.ones(len(pairs), np.bool_)
        for i in np.argsort(found.usd, kind="stable"):
            if not np.isfinite(found.usd[i]) or exactly == MOST_EXACT:
                break
            if least[i] >= best_usd:
                continue
            left[i] = False
            if _beaten(figures[i], priced):
                continue
            go_on()
            pair, interval = pairs.take(np.array([i])), float(found.interval_hours[i])
            now = PricedRun.of(pair, terms, interval)
            priced, exactly = np.vstack((priced, figures[i])), exactly + 1
            if now.usd < best_usd:
                best_usd, best = now.usd, (int(pairs.spot[i]), int(pairs.standby[i]), now)
        # Those that cannot be in time have no outcome, and no claim to be best.
        unpriced.append(least[left & np.isfinite(found.usd)])
    run = None if best is None else _at_its_best(offered, best[0], best[1], best[2])
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


def _at_its_best(offered: Offered, spot: int, standby: int, best: PricedRun) -> NetRun:
    """The pair at the interval that is best exactly, not only by moments, from the one at which it is priced."""
    pair, terms, given = best.pairs, best.terms, best.interval_hours
    at = np.array([spot]), np.array([standby])
    for other in np.unique(intervals(pair)).tolist():
        tried = np.array([[other]])
        estimate = deviations(pair, terms, tried, _FINE.nodes, _FINE.weights)
        if other == given or estimate.in_time[0, 0] < terms.confidence:
            continue
        grows = bool((Segments.of(pair, terms, tried, estimate.z).growth > 0).any())
        within = _BLOCKS_WITHIN if grows else _LATTICE_WITHIN
        if _least(offered, *at, terms, _FINE, interval_hours=other)[0] * (1.0 - within) >= best.usd:
            continue
        now = PricedRun.of(pair, terms, other)
        best = now if now.usd < best.usd else best
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
    return _least(offered, which[:, None], np.arange(len(offered.standbys))[None, :], terms, _COARSE)


def _least(
    offered: Offered,
    spot: Ints,
    standby: Ints,
    terms: NetTerms,
    quadrature: _Quadrature,
    *,
    interval_hours: float | None = None,
) -> Floats:
    """The bound of pairs [...] of spots and standbys, arrays that broadcast: at the interval given, else at whichever."""
    spots, standbys = offered.spots, offered.standbys
    # [..., z] throughout.
    rate, work, write = (values[spot][..., None] for values in (spots.rate, spots.work_hours, spots.checkpoint_hours))
    sigma, standby_sigma = spots.log_sigma[spot][..., None], standbys.log_sigma[standby][..., None]
    standby_work = standbys.work_hours[standby][..., None]
    changeover = (standbys.changeover_hours[standby] + offered.moving_hours[spot, standby])[..., None]
    room = terms.deadline_hours - terms.setup_hours
    largest = largest_in_time((room - write - changeover)[..., 0], standby_work[..., 0], standby_sigma[..., 0])
    estimate = cut(largest, quadrature.nodes, quadrature.weights)
    factor = np.exp(sigma * estimate.z)
    if interval_hours is None:
        segment = np.minimum(_best_interval(rate, write), work)
        losses = segment_losses(segment + write, rate, terms.restart_hours, terms.wait_hours)
        paid = work * losses.paid_hours / segment * factor
        wall = work * (segment + write + losses.mean_hours) / segment * factor
    else:
        count = np.maximum(np.ceil(work * factor / interval_hours - 1e-9), 1.0)
        segment = work * factor / count
        losses = segment_losses(segment + write, rate, terms.restart_hours, terms.wait_hours)
        paid, wall = count * losses.paid_hours, count * (segment + write + losses.mean_hours)
    left = standby_work * np.exp(standby_sigma * estimate.z)
    cut_off = np.maximum(losses.pause_hours - changeover, 0.0)
    # Any divisor will do where spot takes no longer than the standby: all the work may be done there.
    longer = wall - left
    slower = longer > 0
    share = np.minimum(np.maximum((room + cut_off - left) / np.where(slower, longer, 1.0), 0.0), 1.0)
    share[~slower] = 1.0
    usd = (spots.usd_per_hour + spots.storage_usd_per_hour)[spot][..., None]
    standby_usd = (standbys.usd_per_hour + standbys.storage_usd_per_hour)[standby][..., None]
    called = changeover * standby_usd + (standbys.fixed_usd[standby] + offered.moving_usd[spot, standby])[..., None]
    called = called - losses.paid_pause_hours * usd
    standby_mean = np.exp(standby_sigma**2 / 2)
    # Where even a run without a loss is too slow, every run calls the standby.
    always = room - changeover < work * factor + write
    each_call, once = np.where(always, 0.0, np.maximum(called, 0.0)), np.where(always, called, np.minimum(called, 0.0))
    all_standby = left / standby_mean * standby_usd + each_call
    mixed = share * paid / np.exp(sigma**2 / 2) * usd + (1.0 - share) * all_standby
    each = np.minimum(mixed, all_standby) + once
    # Those too slow for the deadline call the standby at once.
    beyond = (standby_work * normal_cdf(standby_sigma - largest[..., None]) * standby_usd)[..., 0]
    start = spots.fixed_usd[spot] + terms.setup_hours * usd[..., 0]
    bound = (start + beyond + (each * estimate.weights).sum(axis=-1)) * (1.0 - quadrature.within)
    return np.where(estimate.in_time >= terms.confidence, bound, np.inf)


def _best_interval(rate: Floats, write: Floats) -> Floats:
    """The interval at which an hour of work takes least: 1 - x = e^(-x - rate d) with x = rate tau, by bisection."""
    distinct, which = np.unique(rate * write, return_inverse=True)
    roots = np.array([_rate_times_interval(cost) for cost in distinct]) if len(distinct) <= _FEW else None
    low = (_rates_times_intervals(distinct) if roots is None else roots)[which].reshape(np.shape(rate * write))
    return np.maximum(low / rate, 1e-9)


def _rates_times_intervals(cost: Floats) -> Floats:
    low, high = np.zeros_like(cost), np.ones_like(cost)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rising = 1.0 - middle > np.exp(-middle - cost)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return low


def _rate_times_interval(cost: float) -> float:
    """The same for a single one, some ten times faster: arrays of few elements take their time."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if 1.0 - middle > math.exp(-middle - cost):
            low = middle
        else:
            high = middle
    return low
