"""A lower bound on the cost of a pair of spot run and standby, in a few operations per pair.

Let q be the expected share of the work that is saved on spot, t the billed hours per hour of work there at the best
checkpoint interval without a deadline, and u(z) = t (1 + rate v(z)) the elapsed hours, with the waits v(z) that follow
preemptions (`Pairs.waits_at`). By Wald's identity at each z

    usd  >= set-up + q W t p_k + (1 - q) U p_m + P(switch) (c p_m + moving) - P(failed) E[restart] p_k,
    P(switch) >= 1 - q and P(failed), and P(switch) = 1 where set-up + f W + d + c > D, since not even a run without a
    loss ends on spot; P(failed) <= 1 - e^(-rate (f W + n d)), the chance of any loss in the n segments
    time:   set-up + q f W u + (1 - q) f U <= D + o(z), since no run ends later   => q <= q(z) where f W u > f U

where o(z) >= 0 is the pause that a failure for good cuts off, less the changeover: Wald's identity counts all of it. With
R = D - set-up, y = f W u and x = f U, q(z) = (R - x) / (y - x) + o / (y - x).

A failure calls the standby for good where the wait exceeds all slack that there ever is, up to V = R - c - min(x, f W) less a
restart. So of n segments of I hours each is passed with a chance of at most 1 / (1 + (e^(rate I) - 1) e^(-V / v)), and

    q <= (1 - e^-C) / C,   C = rate f W e^(-V / v), since ln(1 + (e^y - 1) p) >= p y for p <= 1

In the second half of the work V is less, R - c - (f W + min(x, f W)) / 2 less a restart, since the first half took its hours. So the
bound is the mean of both halves, each with half of the failures in C; the second counts with the chance e^-C that the first passed.

Beside the price of a first run the few runs left are bounded once more, at their intervals, with q by `most_share` instead: it adds
up the waits of several losses, and takes the slack of the moment.

The call includes half a billing step, which rounding up adds on average. A standby is called only when the slack is used
up, which bounds q from below. Let n segments lose l hours each on average and S be the slack of the first, which grows by g
with each (`standby_switching`). Runs that call have lost more than their slack, so by Wald's identity over the segments begun

    l (n q + P) >= S P + g (n q - n (1 - P)),   1 - q <= P <= 1   =>   q >= r(z) = (S - l) / max(n (l - g), S - l + n l)

with r(z) = 0 where S < l, or where the interval is left open. Costs are linear in q, so the least cost at a deviation z of
the estimate's error lies at r(z) or q(z):

    g(z) = a - q(z) max(a - s, 0) + r(z) max(s - a, 0)
    a = U p_m e^(m z) + call,  s = W t p_k e^(k z), and the call where it is certain; where a call costs less than the restart
    that it saves, it is left out of a, and what it saves is subtracted with the largest P(failed)

with k and m the spreads of both machines; y spreads by w >= k where v(z) > 0. The bound is the mean of g over z. It has kinks
and a jump, so no count of points gives it to a known error. It is bounded from below in each cell [e, e'] of z instead:

  * Costs rise with z at every q; what calls save does, too, and is taken at e'. j = (R - x) / (y - x) falls, o / (1 + rate v)
    rises, and (y - x) / (1 + rate v) is no less than with y(e), v(e), and with x(e) where k >= m, else x(e'). So
    q(z) <= j(e) + h, with h that most of o / (y - x), and q(z) <= (1 - e^-C) / C at e, since C rises. So g(z) is no less than
    g(e) with these in place of q(e), and with the least r of the cell. S falls with z; n l and n (I + l) rise, with I the length of a segment. Both are convex in I, so per hour of
    work they are largest at the shortest or the longest segment.
  * q(z) <= p(z), which is this j(e) + h, or the chord of j, plus h, where k >= m, j(e) + h < 1, and v is above 0 at both ends
    or at neither: j is convex there. With y ~ e^(k z), x = U e^(m z), y >= R >= x, its second derivative times (y - x)^3 is
    (y - R) m x (2 k y - m (y + x)) + (R - x) k y (k (y + x) - 2 m x) >= 0, and with w in place of k where v > 0.
  * If a >= s throughout, E[g] >= (1 - E p) E a + (E p) E s - cov(p, a - s). The covariance is at most a quarter of the
    product of both ranges (Gruess 1935). E e^(k (z - e)) >= 1 + k m1 + k^2 m2 / 2 + k^3 m3 / 6 with the moments of z - e.
  * a - s has a single extremum, a maximum where k >= m, so it is at least the lesser of its ends. Where k < m, a may be
    taken to rise no faster than s from e on, and then a >= s if that holds at e without the call.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.best_interval import best_interval
from gpuplan.planner.strategies.standby.failures_within_slack import most_share
from gpuplan.planner.strategies.standby.normal_cells import FINE, Cells
from gpuplan.planner.strategies.standby.preemption_losses import normal_cdf, segment_losses
from gpuplan.planner.strategies.standby.spot_standby_pairs import AT_ONCE_HOURS, Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import (
    LEAST_INTERVAL_HOURS,
    Estimate,
    largest_in_time,
    mean_beyond,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


#: What the moments of cells and the normal distribution function may be wrong by.
_ROUNDING = 1e-5
#: Runs may come out below the bound by this part: in blocks of segments within which slack grows, and by their lattice.
_BLOCKS_WITHIN, _LATTICE_WITHIN = 0.02, 1e-3
#: The share saved on spot comes out lower by up to this, where calls within a long block are spread evenly over it.
_SHARE_WITHIN = 0.02
#: exp() beyond this is a run that never ends.
_NEVER = 700.0


class Bound(NamedTuple):
    """USD at every deviation [...], and a lower bound on the further USD by deviation [..., z]."""

    fixed_usd: Floats
    usd_by_deviation: Floats


class _Tried(NamedTuple):
    """Hours of runs at deviations [..., z] in the segments that lose most: `slack` is S - l, `lost` is n l.

    `wall` are all hours if all work is done on spot, `left` if it is done on the standby.
    """

    slack: Floats
    wall: Floats
    lost: Floats
    left: Floats

    def least_share(self, after: "_Tried") -> Floats:
        """A lower bound on r from these deviations to those `after`, less what blocks of segments may miss: [..., z]."""
        slack = np.maximum(after.slack, 0.0)
        share = slack / np.maximum(np.maximum(after.wall - self.left, slack + after.lost), 1e-300)
        return np.asarray(np.maximum(share - _SHARE_WITHIN, 0.0))


class _Work(NamedTuple):
    """Parts of the cost of the work at deviations [..., z]: a = `standby_usd` + `call_usd`, s = `spot_usd`.

    Of q, `room` is R - x, `longer` y - x, `cut_off` o, `slower` 1 + rate v, and `on_spot` the other upper bound of q.
    `call_usd` is no less than 0 and part of s where a call is `certain`; `always_usd`, what calls save, is no more than 0.
    """

    spot_usd: Floats
    standby_usd: Floats
    room: Floats
    longer: Floats
    cut_off: Floats
    slower: Floats
    on_spot: Floats
    call_usd: Floats
    always_usd: Floats
    certain: Flags

    def usd(self, least_share: Floats | float) -> Floats:
        """g at these deviations, with r: [..., z]."""
        saved = self.standby_usd + self.call_usd * ~self.certain - self.spot_usd
        most_share = np.minimum(_part(self.room + self.cut_off, self.longer), self.on_spot)
        share = np.where(saved > 0, most_share, least_share)
        return np.asarray(self.standby_usd + self.call_usd + self.always_usd - share * saved)

    def on_spot_at_most(self, share: Floats) -> "_Work":
        """The same with this upper bound of q [..., z] in place of all others."""
        return self._replace(longer=np.zeros_like(self.longer), on_spot=share)


def _part(hours: Floats, longer: Floats) -> Floats:
    """`hours` / `longer`, at least 0; 1 at most and where that is not positive: then all the work may be done on spot."""
    slower = longer > 0
    part = np.minimum(np.maximum(hours / np.where(slower, longer, 1.0), 0.0), 1.0)
    return np.where(slower, part, 1.0)


def least(pairs: Pairs, terms: StandbyTerms, cells: Cells) -> Floats:
    """The bound of pairs, arrays that broadcast: [...]; infinite where a pair cannot meet the deadline."""
    return _least(pairs, terms, cells, None)


def least_at(pairs: Pairs, terms: StandbyTerms, interval_hours: Floats) -> Floats:
    """The bound of each pair at its own interval; infinite where it misses the requested confidence."""
    return _least(pairs, terms, FINE, interval_hours)


def least_by_losses(pairs: Pairs, terms: StandbyTerms, interval_hours: Floats) -> Floats:
    """The same with the losses of runs counted, for a few pairs: closer where waits are few, in about ten times the time."""
    return _least(pairs, terms, FINE, interval_hours, by_losses=True)


def _least(
    pairs: Pairs, terms: StandbyTerms, cells: Cells, interval_hours: Floats | None, *, by_losses: bool = False
) -> Floats:
    """The bound at any interval; or at these, less the part by which the prices of runs may be off."""
    until_call = pairs.checkpoint_hours if interval_hours is None else interval_hours + pairs.checkpoint_hours
    room = terms.deadline_hours - pairs.setup_hours - until_call - pairs.changeover_hours
    largest = largest_in_time(room, pairs.standby_work_hours, pairs.standby_log_sigma)
    in_time = normal_cdf(largest)
    work = _work(pairs, terms, cells.edges, _longest_segment(pairs, interval_hours), interval_hours)
    least_share, exact = (0.0, 1.0) if interval_hours is None else _at_interval(pairs, terms, cells, interval_hours)
    weights = np.minimum(np.maximum(in_time[..., None] - cells.below, 0.0), cells.probability)
    by_cell = np.maximum(_in_cells(pairs, work, cells, weights, least_share), 0.0) * exact
    if by_losses and interval_hours is not None:
        work = work.on_spot_at_most(most_share(pairs, terms, cells.edges, interval_hours))
        usd_by_losses = _in_cells(pairs, work, cells, weights, least_share)
        by_cell = np.maximum(by_cell, usd_by_losses * (1.0 - _LATTICE_WITHIN))
    usd = _once_usd(pairs, terms, largest) + np.vecdot(by_cell, weights)
    return np.where(in_time >= terms.confidence, usd * (1.0 - _ROUNDING), np.inf)


def _at_interval(
    pairs: Pairs, terms: StandbyTerms, cells: Cells, interval_hours: Floats
) -> tuple[Floats | float, Floats | float]:
    """r in each cell at these intervals, and the part of g that prices are not below: [..., cells]."""
    hours, left = pairs.work_at(cells.edges)
    shortest = np.minimum(interval_hours[..., None] / 2, hours[..., :1])
    tried = _tried(pairs, terms, cells.edges, (shortest, interval_hours[..., None]))
    at, after = _Tried(*(part[..., :-1] for part in tried)), _Tried(*(part[..., 1:] for part in tried))
    return at.least_share(after), 1.0 - off_by(left[..., 1:] > hours[..., :-1])


def _in_cells(pairs: Pairs, work: _Work, cells: Cells, weights: Floats, least_share: Floats | float) -> Floats:
    """A lower bound on the mean of g in each cell, with r: [..., cells]."""
    spread, standby_spread = pairs.log_sigma[..., None], pairs.standby_log_sigma[..., None]
    spreads_more = spread >= standby_spread
    at, after = (
        _Work(*(_ends(part, slice(-1)) for part in work)),
        _Work(*(_ends(part, slice(1, None)) for part in work)),
    )
    call = at.call_usd * ~at.certain
    saved, saved_after = at.standby_usd + call - at.spot_usd, after.standby_usd + call - after.spot_usd
    spot = at.spot_usd * _mean_growth(spread, cells)
    standby = at.standby_usd * _mean_growth(np.minimum(spread, standby_spread), cells)
    cheaper = (
        (saved >= 0)
        & np.where(spreads_more, saved_after >= 0, at.standby_usd >= at.spot_usd)
        & (weights >= cells.probability)
    )
    share = _part(at.room, at.longer)
    least_longer = np.where(spreads_more, at.longer, at.longer + after.room - at.room)
    cut_off = after.cut_off * (at.slower / after.slower)
    most_share = np.minimum(share + _part(cut_off, least_longer), at.on_spot)
    convex = spreads_more & (most_share < at.on_spot) & ((at.slower > 1.0) == (after.slower > 1.0))
    fall = np.where(convex, share - _part(after.room, after.longer), 0.0)
    share = most_share - fall * (cells.moments[0] / np.diff(cells.edges))
    most_saved = after.standby_usd + call - at.spot_usd
    covariance = fall * (most_saved - np.minimum(saved, saved_after)) / 4
    base = at.call_usd + after.always_usd
    rising = base + standby - share * (standby + call - spot) - covariance
    left = base + at.standby_usd - np.where(saved > 0, most_share, least_share) * saved
    return np.asarray(np.where(cheaper, np.maximum(rising, left), left))


def _ends(part: NDArray[Any], which: slice) -> NDArray[Any]:
    return part if part.shape[-1] == 1 else part[..., which]


def _mean_growth(spread: Floats, cells: Cells) -> Floats:
    """At most E e^(spread (z - e)) over each cell from e on: [..., cells]."""
    first, second, third = cells.moments
    return np.asarray(1.0 + spread * (first + spread * (second / 2 + spread * third / 6)))


def bound_of(pairs: Pairs, terms: StandbyTerms, estimate: Estimate, interval_hours: Floats) -> Bound:
    """The bound of pairs [...] at deviations [..., z], at the given intervals."""
    hours = pairs.work_hours[..., None] * np.exp(pairs.log_sigma[..., None] * estimate.z)
    segment = hours / np.maximum(np.ceil(hours / interval_hours[..., None] - 1e-9), 1.0)
    tried = _tried(pairs, terms, estimate.z, (segment,))
    work, share = _work(pairs, terms, estimate.z, segment, interval_hours), tried.least_share(tried)
    grows = tried.left > hours
    usd = np.maximum(work.usd(share), 0.0) * (1.0 - off_by(grows))
    by_losses = work.on_spot_at_most(most_share(pairs, terms, estimate.z, interval_hours)).usd(share)
    usd = np.maximum(usd, by_losses * (1.0 - _LATTICE_WITHIN))
    return Bound(_once_usd(pairs, terms, estimate.largest), usd)


def off_by(grows: Flags) -> Floats:
    """The part by which runs may come out below the bound, where their slack grows and where not: the shape of `grows`."""
    return np.where(grows, _BLOCKS_WITHIN, _LATTICE_WITHIN)


def _once_usd(pairs: Pairs, terms: StandbyTerms, largest: Floats) -> Floats:
    """USD paid at every deviation, and for runs too slow for the deadline, which call the standby at once: [...]."""
    usd = pairs.usd_per_hour + pairs.storage_usd_per_hour
    standby_usd = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
    beyond = pairs.standby_work_hours * mean_beyond(largest, pairs.standby_log_sigma) * standby_usd
    late = (1.0 - normal_cdf(largest)) * call_usd(pairs)
    step_usd = pairs.usd_per_hour * pairs.step_hours / 2
    return np.asarray(pairs.fixed_usd + pairs.setup_hours * usd + step_usd + beyond + late)


def call_usd(pairs: Pairs) -> Floats:
    """USD that a call costs beside the work: the changeover, half a billing step, and the move: [...]."""
    standby_usd = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
    step_usd = pairs.standby_usd_per_hour * pairs.standby_step_hours / 2
    return pairs.changeover_hours * standby_usd + step_usd + pairs.standby_fixed_usd


def _longest_segment(pairs: Pairs, interval_hours: Floats | None) -> Floats:
    """The segment of at most `interval_hours` and all the work that takes least per hour of work: [..., 1]."""
    best = best_interval(pairs.rate[..., None], pairs.checkpoint_hours[..., None])
    most = pairs.work_hours if interval_hours is None else np.minimum(pairs.work_hours, interval_hours)
    return np.asarray(np.minimum(best, most[..., None]))


def _tried(pairs: Pairs, terms: StandbyTerms, z: Floats, segments: tuple[Floats, ...]) -> _Tried:
    """The hours of runs at deviations [..., z] in segments between these, the longest last."""
    hours, left = pairs.work_at(z)
    write, lost, wall, slack = pairs.checkpoint_hours[..., None], np.zeros(()), np.zeros(()), np.zeros(())
    rate, wait = pairs.rate[..., None], pairs.waits_at(z)
    for segment in segments:
        losses = segment_losses(segment + write, rate, terms.restart_hours, np.zeros_like(rate))
        # Each paid hour brings `rate` waits.
        lost_hours = losses.mean_hours + rate * wait * losses.paid_hours
        begun = segment + write + lost_hours
        lost, wall = np.maximum(lost, lost_hours / segment), np.maximum(wall, begun / segment)
        slack = (terms.deadline_hours - pairs.setup_hours - pairs.changeover_hours)[..., None] - begun - left
    return _Tried(slack=slack, wall=hours * wall, lost=hours * lost, left=left)


def _work(pairs: Pairs, terms: StandbyTerms, z: Floats, segment: Floats, interval_hours: Floats | None) -> _Work:
    """The parts of the cost of the work at deviations [..., z], in segments of these hours, between which at most an interval."""
    # [..., z] throughout.
    rate, write, changeover = (
        values[..., None] for values in (pairs.rate, pairs.checkpoint_hours, pairs.changeover_hours)
    )
    room = terms.deadline_hours - pairs.setup_hours[..., None]
    hours, left = pairs.work_at(z)
    wait = pairs.waits_at(z)
    slower = 1.0 + rate * wait
    quicker, spare = np.minimum(hours, left), room - changeover - terms.restart_hours
    losses = segment_losses(segment + write, rate, terms.restart_hours, np.zeros_like(rate))
    paid = hours * (losses.paid_hours / segment)
    pause_hours = losses.paid_pause_hours + wait * np.exp(np.minimum(rate * terms.restart_hours, _NEVER))
    usd = (pairs.usd_per_hour + pairs.storage_usd_per_hour)[..., None]
    standby_usd = (pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour)[..., None]
    called = call_usd(pairs)[..., None] - losses.paid_pause_hours * usd
    least = np.minimum(pairs.work_hours, LEAST_INTERVAL_HOURS) if interval_hours is None else interval_hours
    fails = -np.expm1(-rate * (hours + (hours / least[..., None] + 1.0) * write))
    return _Work(
        spot_usd=paid * usd,
        standby_usd=left * standby_usd,
        room=room - left,
        longer=paid * slower - left,
        cut_off=np.maximum(pause_hours - changeover, 0.0),
        slower=slower,
        on_spot=_on_spot(rate * hours, wait, spare - quicker, spare - (hours + quicker) / 2),
        call_usd=np.maximum(called, 0.0),
        always_usd=np.minimum(called, 0.0) * fails,
        # Where even a run without a loss is too slow, every run calls the standby.
        certain=room - changeover < hours + write,
    )


def _on_spot(failures: Floats, wait: Floats, first: Floats, second: Floats) -> Floats:
    """An upper bound on q at so many failures: waits beyond `first` hours call in the first half, beyond `second` in the other."""
    wait, left, share = np.maximum(wait, AT_ONCE_HOURS), np.ones(()), np.zeros(())
    for longest in (first, second):
        calls = np.maximum(failures / 2 * np.exp(-np.maximum(longest, 0.0) / wait), 1e-9)
        called = -np.expm1(-calls)
        left, share = left * (1.0 - called), share + left / 2 * called / calls
    return np.asarray(share)
