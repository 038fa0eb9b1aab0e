"""A lower bound on the cost of a pair of spot run and standby, in a few operations per pair.

Let q be the expected share of the work that is saved on spot, t the billed hours per hour of work there at the best
checkpoint interval without a deadline, and u the elapsed hours. By Wald's identity

    usd  >= set-up + q W t p_k + (1 - q) U p_m + P(switch) (c p_m + moving - E[restart] p_k),   P(switch) >= 1 - q,
    and P(switch) = 1 where set-up + f W + d + c > D, since not even a run without a loss ends on spot
    time:   set-up + q f W u + (1 - q) f U <= D, since no run ends later          => q <= q(z) where f W u > f U

Both are linear in q, so the least cost lies at q = 0 or q = q(z), for each z of the quadrature.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.preemption_losses import segment_losses
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import Estimate, cut, largest_in_time, mean_beyond

Floats = NDArray[np.float64]


class Quadrature(NamedTuple):
    """Points of the estimate's error and their weights; sums are accurate to `within`, by which a bound is lowered."""

    nodes: Floats
    weights: Floats
    within: float


def _gauss(count: int, within: float) -> Quadrature:
    at, weights = np.polynomial.legendre.leggauss(count)
    return Quadrature((1.0 + at) / 2, weights, within)


#: The bound has kinks in the estimate's error where that is wide: all pairs get a coarse bound, the rest a fine one.
COARSE, FINE = _gauss(9, 0.02), _gauss(48, 1e-3)
#: Runs in blocks of segments may come out below the bound by this part, where slack grows within a block.
BLOCKS_WITHIN = 0.02
#: Spread up to which sums are as accurate as a `Quadrature` says; the error grows with its square.
_USUAL_SIGMA = 0.5
_BISECTIONS = 40
#: Up to so many numbers, bisection one by one is faster.
_FEW = 6


class Bound(NamedTuple):
    """USD at every deviation [...], and a lower bound on the further USD by deviation [..., z]."""

    fixed_usd: Floats
    usd_by_deviation: Floats


def least(pairs: Pairs, terms: StandbyTerms, quadrature: Quadrature) -> Floats:
    """The bound of pairs, arrays that broadcast: [...]; infinite where a pair cannot meet the deadline."""
    room = terms.deadline_hours - terms.setup_hours - pairs.checkpoint_hours - pairs.changeover_hours
    largest = largest_in_time(room, pairs.standby_work_hours, pairs.standby_log_sigma)
    estimate = cut(largest, quadrature.nodes, quadrature.weights)
    once_usd, work_usd = bound_of(pairs, terms, estimate)
    usd = (once_usd + (work_usd * estimate.weights).sum(axis=-1)) * (1.0 - within(pairs, quadrature))
    return np.where(estimate.in_time >= terms.confidence, usd, np.inf)


def within(pairs: Pairs, quadrature: Quadrature) -> Floats:
    """The part by which sums over the estimate's error may be wrong: more where it spreads beyond `_USUAL_SIGMA`."""
    relative_spread = np.maximum(pairs.log_sigma, pairs.standby_log_sigma) / _USUAL_SIGMA
    return np.asarray(np.minimum(quadrature.within * np.maximum(relative_spread, 1.0) ** 2, 1.0))


def least_at(pairs: Pairs, terms: StandbyTerms, interval_hours: Floats) -> Floats:
    """The bound of each pair at its own interval; infinite where it misses the requested confidence."""
    room = terms.deadline_hours - terms.setup_hours - interval_hours - pairs.checkpoint_hours - pairs.changeover_hours
    largest = largest_in_time(room, pairs.standby_work_hours, pairs.standby_log_sigma)
    estimate = cut(largest, FINE.nodes, FINE.weights)
    once_usd, work_usd = bound_of(pairs, terms, estimate, interval_hours)
    usd = (once_usd + (work_usd * estimate.weights).sum(axis=-1) * (1.0 - BLOCKS_WITHIN)) * (1.0 - within(pairs, FINE))
    return np.where(estimate.in_time >= terms.confidence, usd, np.inf)


def bound_of(pairs: Pairs, terms: StandbyTerms, estimate: Estimate, interval_hours: Floats | None = None) -> Bound:
    """The bound of pairs [...] at deviations [..., z], at the given intervals or, with None, at any interval."""
    # [..., z] throughout.
    rate, wait = pairs.rate[..., None], pairs.wait_hours[..., None]
    work, write = pairs.work_hours[..., None], pairs.checkpoint_hours[..., None]
    sigma, standby_sigma = pairs.log_sigma[..., None], pairs.standby_log_sigma[..., None]
    standby_work, changeover = pairs.standby_work_hours[..., None], pairs.changeover_hours[..., None]
    room = terms.deadline_hours - terms.setup_hours
    factor = np.exp(sigma * estimate.z)
    if interval_hours is None:
        segment = np.minimum(_best_interval(rate, write), work)
        losses = segment_losses(segment + write, rate, terms.restart_hours, wait)
        paid = work * losses.paid_hours / segment * factor
        wall = work * (segment + write + losses.mean_hours) / segment * factor
    else:
        count = np.maximum(np.ceil(work * factor / interval_hours[..., None] - 1e-9), 1.0)
        segment = work * factor / count
        losses = segment_losses(segment + write, rate, terms.restart_hours, wait)
        paid, wall = count * losses.paid_hours, count * (segment + write + losses.mean_hours)
    left = standby_work * np.exp(standby_sigma * estimate.z)
    cut_off = np.maximum(losses.pause_hours - changeover, 0.0)
    # Where spot is no slower than the standby, all the work may be done on spot; the divisor is then arbitrary.
    longer = wall - left
    slower = longer > 0
    share = np.minimum(np.maximum((room + cut_off - left) / np.where(slower, longer, 1.0), 0.0), 1.0)
    share[~slower] = 1.0
    usd = (pairs.usd_per_hour + pairs.storage_usd_per_hour)[..., None]
    standby_usd = (pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour)[..., None]
    called = changeover * standby_usd + pairs.standby_fixed_usd[..., None]
    called = called - losses.paid_pause_hours * usd
    # Where even a run without a loss is too slow, every run calls the standby.
    always = room - changeover < work * factor + write
    call_usd, certain_usd = (
        np.where(always, 0.0, np.maximum(called, 0.0)),
        np.where(always, called, np.minimum(called, 0.0)),
    )
    all_standby = left * standby_usd + call_usd
    mixed = share * paid * usd + (1.0 - share) * all_standby
    work_usd = np.minimum(mixed, all_standby) + certain_usd
    # Runs too slow for the deadline call the standby at once.
    beyond = (standby_work * mean_beyond(estimate.largest[..., None], standby_sigma) * standby_usd)[..., 0]
    return Bound(pairs.fixed_usd + terms.setup_hours * usd[..., 0] + beyond, work_usd)


def _best_interval(rate: Floats, write: Floats) -> Floats:
    """The interval at which an hour of work takes least: 1 - x = e^(-x - rate d) with x = rate tau, by bisection."""
    cost = rate * write
    if cost.size == 1:
        return np.maximum(_rate_times_interval(float(cost.item())) / rate, 1e-9)
    distinct, which = np.unique(cost, return_inverse=True)
    roots = np.array([_rate_times_interval(cost) for cost in distinct]) if len(distinct) <= _FEW else None
    low = (_rates_times_intervals(distinct) if roots is None else roots)[which].reshape(cost.shape)
    return np.maximum(low / rate, 1e-9)


def _rates_times_intervals(cost: Floats) -> Floats:
    low, high = np.zeros_like(cost), np.ones_like(cost)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rising = 1.0 - middle > np.exp(-middle - cost)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return low


def _rate_times_interval(cost: float) -> float:
    """The root for a single cost: some ten times faster than on a small array."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if 1.0 - middle > math.exp(-middle - cost):
            low = middle
        else:
            high = middle
    return low
