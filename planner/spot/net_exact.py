"""One run under the net, with its whole distribution: what `net` takes by moments, here segment by segment (`net_course`).

The estimate's factor f = e^(sigma z) is mixed in over four deviations of z. Where losses are few, whether a run calls the
standby is all but decided by z: so points are set apart below, inside and above the range of z where it may go either
way, which moments tell. Between points the distribution of the losses is interpolated, so that quantiles are not those of
the points.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.spot.net import Estimate, Legs, NetTerms, Pairs, deviations, legs_of
from planner.spot.net_bound import BLOCKS_WITHIN, bound_of
from planner.spot.net_course import course_of
from planner.spot.net_segments import Segments, failed_by_moments, passed_by_moments
from planner.spot.net_spread import MEDIAN, P95, Course, Spread, joined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Points by Gauss and Legendre below, inside and above the range of deviations in which runs may or may not be rescued.
_PANELS = (7, 9, 5)
#: So many where segments are few: each that the estimate's error adds to a run, or lets it pass, is a step.
_FEW, _FINER = 40, (19, 33, 13)
#: Shares of the deviations in time at which moments look for that range, and chances that count as never and always.
_LOOKED = np.linspace(0.0, 1.0, 65)
_NEVER = 0.003
#: Where slack does not grow within a block runs are exact but for the lattice of their losses.
_LATTICE_WITHIN = 5e-3
#: By how much the deviations that are priced first should be enough, and the part of all beyond which all are priced at once.
_SURELY, _MOST_FIRST = 1.2, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class NetRun:
    """What comes of one pair at one interval: expected USD and hours of each leg, and their spread.

    `hours` are from start to end (`kept` with the confidence asked). `switch_hours` is when the
    standby is called, on average, given that it is; where that hardly happens, the last moment at which it can be.
    `length_hours` is an interval with its checkpoint.
    """

    usd: float
    usd_median: float
    usd_p95: float
    hours: float
    hours_median: float
    hours_kept: float
    hours_p95: float
    spot_hours: float
    spot_wall_hours: float
    standby_hours: float
    switch_probability: float
    in_time: float
    interval_hours: float
    length_hours: float
    changeover_hours: float
    switch_hours: float


def net_run(pairs: Pairs, terms: NetTerms, interval_hours: float) -> NetRun:
    """The exact outcome of a single pair at an interval."""
    return PricedRun.of(pairs, terms, interval_hours).outcome()


class PricedRun(NamedTuple):
    """A single pair priced at an interval: the points of its estimate's error, its segments, how runs fare there, its legs."""

    pairs: Pairs
    terms: NetTerms
    interval_hours: float
    shares: Floats
    estimate: Estimate
    runs: Segments
    course: Course
    legs: Legs

    @staticmethod
    def of(pairs: Pairs, terms: NetTerms, interval_hours: float) -> "PricedRun":
        """What the pair comes to at the interval."""
        begun = _Begun.of(pairs, terms, interval_hours)
        return begun.priced(begun.course(np.arange(len(begun.shares))))

    @staticmethod
    def below(pairs: Pairs, terms: NetTerms, interval_hours: float, most_usd: float) -> "PricedRun | None":
        """The same, or None where it is proven to come to `most_usd` at least before every deviation is priced.

        The bound stands for those that are not: what moments find farthest above it is priced first, if that is likely to
        be enough.
        """
        begun = _Begun.of(pairs, terms, interval_hours)
        (once, each), weights, every = begun.bound(), begun.estimate.weights[0, 0], np.arange(len(begun.shares))
        short_usd = most_usd - once - float(each @ weights)
        if short_usd <= 0:
            return None
        first = _likely_enough(begun, short_usd, each)
        course = begun.course(first)
        if len(first) == len(every):
            return begun.priced(course)
        added = begun.row_usd(course, first) - each[first]
        if float(added @ weights[first]) >= short_usd:
            return None
        rest = np.setdiff1d(every, first)
        return begun.priced(joined(course, begun.course(rest), np.argsort(np.concatenate((first, rest)))))

    @property
    def usd(self) -> float:
        """What the pair costs."""
        return float(self.legs.usd[0, 0])

    def outcome(self) -> NetRun:
        """The same with its spread."""
        pairs, terms, legs, estimate = self.pairs, self.terms, self.legs, self.estimate
        spread = Spread(pairs, terms, self.runs, self.course, estimate=estimate, shares=self.shares)
        return NetRun(
            usd=self.usd,
            usd_median=spread.usd_quantile(MEDIAN),
            usd_p95=spread.usd_quantile(P95),
            hours=spread.mean,
            hours_median=spread.quantile(MEDIAN),
            hours_kept=spread.quantile(terms.confidence),
            hours_p95=spread.quantile(P95),
            spot_hours=float(legs.spot_hours[0, 0]),
            spot_wall_hours=float(legs.wall_hours[0, 0]),
            standby_hours=float(legs.standby_hours[0, 0]),
            switch_probability=float(legs.switch_probability[0, 0]),
            in_time=float(estimate.in_time[0, 0]),
            interval_hours=self.interval_hours,
            length_hours=self.interval_hours + float(pairs.checkpoint_hours[0]),
            changeover_hours=float(pairs.changeover_hours[0]),
            switch_hours=spread.called_at,
        )


class _Begun(NamedTuple):
    """A pair at an interval before it is priced: the points of its estimate's error, its segments, its bound."""

    pairs: Pairs
    terms: NetTerms
    interval_hours: float
    shares: Floats
    estimate: Estimate
    whole: Segments
    runs: Segments

    @staticmethod
    def of(pairs: Pairs, terms: NetTerms, interval_hours: float) -> "_Begun":
        tried = np.array([[interval_hours]])
        shares, weights = _points(pairs, terms, tried)
        estimate = deviations(pairs, terms, tried, shares, weights)
        whole = Segments.of(pairs, terms, tried, estimate.z)
        return _Begun(pairs, terms, interval_hours, shares, estimate, whole, _flat(whole))

    def course(self, rows: Ints) -> Course:
        """How runs fare at these deviations."""
        return course_of(self.runs.at(rows), float(self.pairs.rate[0]), self.terms)

    def priced(self, course: Course) -> PricedRun:
        """The run, of the course at all deviations."""
        fares = {name: getattr(course, name)[None, None] for name in ("passed", "whole", "failed")}
        legs = legs_of(self.pairs, self.terms, self.whole, self.estimate, **fares)
        return PricedRun(
            self.pairs, self.terms, self.interval_hours, self.shares, self.estimate, self.runs, course, legs
        )

    def row_usd(self, course: Course | None, rows: Ints) -> Floats:
        """What these deviations add to the bill, before it is rounded up to steps; by moments where there is no course."""
        runs, pair = self.runs.at(rows), self.pairs
        if course is None:
            passed, whole = passed_by_moments(runs)
            failed = failed_by_moments(runs, 1.0 - whole)
        else:
            passed, whole, failed = course.passed, course.whole, course.failed
        paid = np.maximum(passed * runs.losses.paid_hours - failed * runs.losses.paid_pause_hours, 0.0)
        wall = np.maximum(passed * (runs.length + runs.losses.mean_hours) - failed * runs.losses.pause_hours, 0.0)
        left = (1.0 - passed / runs.count) * runs.standby_hours
        spot_usd = pair.usd_per_hour * paid + pair.storage_usd_per_hour * wall
        by_hour = pair.standby_usd_per_hour + pair.standby_storage_usd_per_hour
        called = pair.changeover_hours * by_hour + pair.standby_fixed_usd
        return np.asarray(spot_usd + by_hour * left + (1.0 - whole) * called)

    def bound(self) -> tuple[float, Floats]:
        """What the pair comes to at least: once, and at each deviation."""
        now, grows = self.estimate, bool((self.runs.growth > 0).any())
        one = Estimate(z=now.z[0], weights=now.weights[0], largest=now.largest[0], in_time=now.in_time[0])
        once, each = bound_of(self.pairs, self.terms, one, np.array([self.interval_hours]))
        return float(once[0]), each[0] * (1.0 - (BLOCKS_WITHIN if grows else _LATTICE_WITHIN))


def _likely_enough(begun: _Begun, short_usd: float, each: Floats) -> Ints:
    """Deviations whose price is likely to add so much to their bounds; all where most would have to be priced."""
    every = np.arange(len(each))
    gains = (begun.row_usd(None, every) - each) * begun.estimate.weights[0, 0]
    first = np.argsort(-gains)
    enough = int(np.searchsorted(np.cumsum(gains[first]), _SURELY * short_usd)) + 1
    return np.sort(first[:enough]) if enough <= _MOST_FIRST * len(every) else every


def _points(pairs: Pairs, terms: NetTerms, tried: Floats) -> tuple[Floats, Floats]:
    """Shares of the deviations in time, ascending, and their weights: panels around where runs may or may not be rescued."""
    looked = deviations(pairs, terms, tried, _LOOKED, np.ones(len(_LOOKED)))
    whole = passed_by_moments(Segments.of(pairs, terms, tried, looked.z))[1][0, 0]
    ever, not_always = np.flatnonzero(whole > _NEVER), np.flatnonzero(whole < 1.0 - _NEVER)
    edges = [0.0, 1.0]
    if len(ever) and len(not_always):
        low, high = sorted((not_always[0] - 1, ever[-1] + 1))
        edges[1:1] = [float(_LOOKED[max(low, 0)]), float(_LOOKED[min(high, len(_LOOKED) - 1)])]
    below, inside, above = _PANELS
    if pairs.work_hours[0] < _FEW * tried[0, 0]:
        below, inside, above = _FINER
    counts = (below, inside, above) if len(edges) > 2 else (below + inside + above,)
    shares, weights = [], []
    for count, begins, ends in zip(counts, edges[:-1], edges[1:], strict=True):
        if ends > begins:
            at, weight = _gauss(count)
            shares.append(begins + (ends - begins) * (1.0 + at) / 2)
            weights.append((ends - begins) * weight)
    return np.concatenate(shares), np.concatenate(weights)


@cache
def _gauss(count: int) -> tuple[Floats, Floats]:
    """Points and weights by Gauss and Legendre: of few counts, and slow to find."""
    at, weight = np.polynomial.legendre.leggauss(count)
    return at, weight


def _flat(runs: Segments) -> Segments:
    """The segments of a single pair at a single interval: [z]."""

    def first(values: Floats) -> Floats:
        return np.array(np.broadcast_to(values, runs.count.shape)[0, 0])

    each = runs.losses
    names = type(each).__dataclass_fields__
    return Segments(
        count=first(runs.count),
        length=first(runs.length),
        losses=replace(each, **{name: first(getattr(each, name)) for name in names}),
        standby_hours=first(runs.standby_hours),
        slack=first(runs.slack),
        growth=first(runs.growth),
    )
