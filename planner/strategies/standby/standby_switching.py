"""Spot until the deadline only just leaves time for a standby: expected cost of many (spot, standby) pairs at once.

A run does n segments of tau hours of work, each closed by a checkpoint of d hours, on interruptible machines k. Its
standby m (never preempted; another machine or region is possible) would do all work in U hours, ready c hours after the
call (boot and image, reading the checkpoint). With I = tau + d the length of a segment and i - 1 segments saved, a
segment is attempted only while it may end or fail and the standby can still meet the deadline:

    set-up + (i - 1) I + losses + I + c + U (1 - (i - 1) / n) <= D

So segment i is passed where losses L_i <= S_i, with the slack S_i = D - set-up - I - c - U + (i - 1)(U / n - I).
Otherwise the standby is called, at that moment, and ends by D in any case. The estimate's error is one lognormal
factor f = e^(sigma z) for both machines (each with its own sigma, the same z). It shows in the first interval, so the
latest moment adapts to it. Waits for preempted machines differ between zones and spread with the same z (`Pairs.waits_at`); they
are not paid. The run meets the deadline where set-up + I + c + f U <= D, which gives P(in time) in closed
form. A pair is feasible where that probability reaches the requested confidence.

With a_i = P(passed segment i), a stopping rule that depends only on the past ends the attempts, so by Wald's identity

    paid on spot = set-up + sum_i a_i E[paid per segment] - P(called on a failure) E[restart]
    paid on standby = P(switch) c + (1 - sum_i a_i / n) f U

A standby is called on a failure if there is no time left to wait for a restart. It is called between two segments only
where it is faster than spot, since each segment saved takes U / n off its work and I off the time left.

a_i = P(L_i <= S_i) by `run_segments` where the slack does not grow. Where it does (a standby slower than spot), runs may
cross S_i and be within it again later. The least P so far is used, which favours the pair: moments only set the order in
which the search (`standby_search`) prices runs exactly. The mix over z goes up to the largest z at which the standby meets
the deadline; beyond it, the standby is called after the first interval, and is late. Hours and cost are expectations over
that error too, as in every cost of a plan. Each leg is billed by its expected hours given that it runs, at least the
minimum, plus the half billing step that rounding up adds on average.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval
from gpuplan.planner.strategies.standby.preemption_losses import normal_cdf
from gpuplan.planner.strategies.standby.run_segments import Segments, failed_by_moments, passed_by_moments
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Factors on the interval of Young and Daly, which ignores the deadline: shorter intervals keep more slack.
SHORTER = (1.0, 0.5, 0.25, 0.125)
#: Even a free checkpoint is written no more often than this.
LEAST_INTERVAL_HOURS = 1 / 120
#: Deviations of the estimate beyond this are left out: six in a hundred thousand.
FURTHEST = 4.0
_LEGENDRE, NODE_WEIGHTS = np.polynomial.legendre.leggauss(9)
#: Shares of the range of deviations; `NODE_WEIGHTS` are their weights.
NODES = (1.0 + _LEGENDRE) / 2
#: More points for a single pair: a call may turn from never to always within a small part of the range.
_FINE, FINE_WEIGHTS = np.polynomial.legendre.leggauss(65)
FINE_NODES = (1.0 + _FINE) / 2
#: All intervals that are tried.
EVERY = slice(None)
#: Pairs evaluated at once: few enough that arrays over them stay in the cache of a core.
_CHUNK = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Expected outcome of each pair; `usd` is infinite where it misses the requested confidence.

    `interval_hours` is the best of those tried, `in_time` the probability of meeting the deadline.
    """

    usd: Floats
    spot_hours: Floats
    standby_hours: Floats
    switch_probability: Floats
    in_time: Floats
    interval_hours: Floats


def outcomes(pairs: Pairs, terms: StandbyTerms, which: Ints | slice = EVERY) -> Outcomes:
    """Expected outcome of every pair at the best of the intervals tried (`which` of them), by moments."""
    parts = []
    for i in range(0, len(pairs), _CHUNK):
        priced = _priced(pairs.take(slice(i, i + _CHUNK)), terms, NODES, NODE_WEIGHTS, which)
        parts.append(priced.at_best(terms.confidence))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Outcomes(**{field.name: np.zeros(0) for field in fields(Outcomes)})
    return Outcomes(
        **{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Outcomes)}
    )


def usd_by_interval(pairs: Pairs, terms: StandbyTerms) -> Floats:
    """Expected cost at every interval tried, infinite where it misses the requested confidence: [pairs, tried]."""
    usd = np.full((len(pairs), len(SHORTER)), np.inf)
    for i in range(0, len(pairs), _CHUNK):
        priced = _priced(pairs.take(slice(i, i + _CHUNK)), terms, NODES, NODE_WEIGHTS, EVERY)
        usd[i : i + _CHUNK] = np.where(priced.in_time >= terms.confidence, priced.legs.usd, np.inf)
    return usd


def intervals(pairs: Pairs) -> Floats:
    """Hours of work between checkpoints that are tried, longest first: [pairs, tried]."""
    best = checkpoint_interval(pairs.work_hours, pairs.checkpoint_hours, pairs.rate)
    least = np.minimum(pairs.work_hours, LEAST_INTERVAL_HOURS)
    return np.asarray(np.maximum(best[:, None] * np.array(SHORTER), least[:, None]))


def finely(pairs: Pairs, terms: StandbyTerms) -> Outcomes:
    """The outcomes of a few pairs whose probabilities are stated: with many more points over the estimate's error."""
    return priced_finely(pairs, terms).at_best(terms.confidence)


def priced_finely(pairs: Pairs, terms: StandbyTerms, which: Ints | slice = EVERY) -> "Priced":
    """The finely priced pairs at every interval tried, or at these of them."""
    return _priced(pairs, terms, FINE_NODES, FINE_WEIGHTS, which)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Pairs at the intervals tried: hours of work, probability of meeting the deadline, and the legs.

    Arrays that broadcast to [pairs, tried], the shape of the cost.
    """

    interval_hours: Floats
    in_time: Floats
    legs: "Legs"

    def at_best(self, confidence: float) -> Outcomes:
        """The outcome of every pair at its cheapest interval that reaches the requested confidence."""
        legs = self.legs
        usd = np.where(self.in_time >= confidence, legs.usd, np.inf)
        best, every = np.argmin(usd, axis=1), np.arange(len(usd))

        def chosen(values: Floats) -> Floats:
            whole = values if values.shape == usd.shape else np.broadcast_to(values, usd.shape)
            return np.asarray(whole[every, best])

        return Outcomes(
            usd=chosen(usd),
            spot_hours=chosen(legs.spot_hours),
            standby_hours=chosen(legs.standby_hours),
            switch_probability=chosen(legs.switch_probability),
            in_time=chosen(self.in_time),
            interval_hours=chosen(self.interval_hours),
        )


def _priced(pairs: Pairs, terms: StandbyTerms, nodes: Floats, weights: Floats, which: Ints | slice) -> Priced:
    pairs = pairs.briefly()
    tried = intervals(pairs)[:, which]
    estimate = deviations(pairs, terms, tried, nodes, weights)
    runs = Segments.of(pairs, terms, tried, estimate.z)
    passed, whole = passed_by_moments(runs)
    switch = 1.0 - whole
    wall, failed = passed * (runs.length + runs.losses.mean_hours), switch
    if switch.any():
        failed = failed_by_moments(runs, switch)
        # No run is on the clock for longer, but moments may be off by more where pauses take many times the slack.
        latest = terms.deadline_hours - pairs.setup_hours[:, None, None]
        wall = np.clip(wall - failed * runs.losses.pause_hours, 0.0, np.maximum(latest, 0.0))
    legs = legs_of(pairs, terms, runs, estimate, passed=passed, whole=whole, failed=failed, wall=wall)
    return Priced(interval_hours=tried, in_time=estimate.in_time, legs=legs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """The estimate's error cut into deviations `z` with `weights`, up to the largest in time.

    Both broadcast to [pairs, tried, z]. `in_time` [pairs, tried], the sum of the weights, is P(set-up + I + c + f U <= D),
    with `largest` the z of equality.
    """

    z: Floats
    weights: Floats
    largest: Floats
    in_time: Floats


def deviations(pairs: Pairs, terms: StandbyTerms, interval_hours: Floats, nodes: Floats, weights: Floats) -> Estimate:
    """The deviations at shares `nodes` (0 to 1) of those in time, with quadrature `weights`, at intervals [pairs, tried]."""
    interval = interval_hours + pairs.checkpoint_hours[:, None]
    room = terms.deadline_hours - pairs.setup_hours[:, None] - interval - pairs.changeover_hours[:, None]
    largest = largest_in_time(room, pairs.standby_work_hours[:, None], pairs.standby_log_sigma[:, None])
    return cut(largest, nodes, weights)


def largest_in_time(room_hours: Floats, work_hours: Floats, sigma: Floats) -> Floats:
    """The largest z at which `work_hours` e^(sigma z) fit into the room, within a hundred deviations."""
    excess = np.log(np.maximum(room_hours, 1e-300) / work_hours)
    unsure = sigma > 0
    if unsure.all():
        return np.minimum(np.maximum(excess / sigma, -100.0), 100.0)
    certain = np.where(excess >= -1e-12, 100.0, -100.0)
    return np.clip(np.where(unsure, excess / np.where(unsure, sigma, 1.0), certain), -100.0, 100.0)


def mean_beyond(z: Floats, sigma: Floats) -> Floats:
    """E[e^(sigma Z); Z > z]: what deviations beyond `z` add to the mean of the estimate's factor."""
    return np.asarray(mean_factor(sigma) * normal_cdf(sigma - z))


def cut(largest: Floats, nodes: Floats, weights: Floats) -> Estimate:
    """A standard normal up to `largest` [...] as weighted points, arrays that broadcast to [..., z]."""
    in_time, last = normal_cdf(largest), np.minimum(np.maximum(largest, -FURTHEST), FURTHEST)
    if last.min(initial=FURTHEST) == FURTHEST:
        # All have the same range: one row of points is enough.
        last = np.full((1,) * largest.ndim, FURTHEST)
    part = in_time if (in_time < 1.0).any() else np.ones_like(last)
    z = -FURTHEST + (last[..., None] + FURTHEST) * nodes
    density = weights * np.exp(-0.5 * z**2)
    weights = density * (part / density.sum(axis=-1))[..., None]
    return Estimate(z=z, weights=weights, largest=largest, in_time=in_time)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Legs:
    """Expected hours billed on spot and on standby (over all runs, used or not), elapsed hours on spot, and the cost."""

    spot_hours: Floats
    wall_hours: Floats
    standby_hours: Floats
    switch_probability: Floats
    usd: Floats


def legs_of(
    pairs: Pairs,
    terms: StandbyTerms,
    runs: Segments,
    estimate: Estimate,
    *,
    passed: Floats,
    whole: Floats,
    failed: Floats,
    wall: Floats,
) -> Legs:
    """The legs of runs: arrays that broadcast to [pairs, tried, z], the legs to [pairs, tried].

    `passed` is the mean number of segments passed, `whole` the probability of passing all, `failed` that of a call on a
    failure, `wall` the mean hours on the clock on spot after set-up.
    """
    losses, weights, late = runs.losses, estimate.weights, 1.0 - estimate.in_time
    paid = passed * losses.paid_hours
    probability, standby_hours, first = late, np.zeros_like(late), np.zeros_like(late)
    switch = 1.0 - whole
    if switch.any():
        paid = np.maximum(paid - failed * losses.paid_pause_hours, 0.0)
        left = (1.0 - passed / runs.count) * runs.standby_hours
        probability = np.clip(np.vecdot(switch, weights) + late, 0.0, 1.0)
        standby_hours = np.vecdot(left, weights)
    if late.any():
        sigma = pairs.standby_log_sigma[:, None]
        tail = pairs.standby_work_hours[:, None] * mean_beyond(estimate.largest, sigma)
        first, standby_hours = runs.length[..., -1] * late, standby_hours + tail
    wall = np.maximum(wall, paid)
    setup_hours = pairs.setup_hours[:, None]
    spot_hours = setup_hours + np.vecdot(paid, weights) + first
    wall_hours = setup_hours + np.vecdot(wall, weights) + first
    standby_hours = standby_hours + probability * pairs.changeover_hours[:, None]
    return Legs(
        spot_hours=spot_hours,
        wall_hours=wall_hours,
        standby_hours=standby_hours,
        switch_probability=probability,
        usd=total_usd(pairs, spot_hours, wall_hours, standby_hours, probability),
    )


def total_usd(
    pairs: Pairs, spot_hours: Floats, wall_hours: Floats, standby_hours: Floats, probability: Floats
) -> Floats:
    """The expected cost of both legs, all arrays [pairs, ...]; the standby's hours are over all runs, used or not."""

    def over(values: Floats) -> Floats:
        return values.reshape(-1, *[1] * (spot_hours.ndim - 1))

    spot_usd = (
        over(pairs.usd_per_hour) * billed(spot_hours, over(pairs.step_hours), over(pairs.minimum_hours))
        + over(pairs.storage_usd_per_hour) * wall_hours
        + over(pairs.fixed_usd)
    )
    if not probability.any():
        return np.asarray(spot_usd)
    used = np.maximum(probability, 1e-12)
    return np.asarray(
        spot_usd
        + over(pairs.standby_usd_per_hour)
        * probability
        * billed(standby_hours / used, over(pairs.standby_step_hours), over(pairs.standby_minimum_hours))
        + over(pairs.standby_storage_usd_per_hour) * standby_hours
        + probability * over(pairs.standby_fixed_usd)
    )


def billed(hours: Floats, step_hours: Floats, minimum_hours: Floats) -> Floats:
    """Expected billed hours of one node: rounding up adds half a step to hours that vary."""
    return np.maximum(hours + step_hours / 2, minimum_hours)
