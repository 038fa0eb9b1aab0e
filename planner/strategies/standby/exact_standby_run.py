"""One run with a standby and its whole distribution, segment by segment; `standby_switching` uses moments instead.

The estimate's factor f = e^(sigma z) is integrated over four deviations of z. Where losses are few, z almost alone decides
whether a run calls the standby. So points are placed separately below, inside and above the range of z where either may
happen; moments give that range. Between points the distribution of the losses is interpolated, so that quantiles do not
follow the points.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.outcome_quantiles import MEDIAN, P95, Costs, Schedule, Spread, joined
from gpuplan.planner.strategies.standby.run_segments import Segments, failed_by_moments, passed_by_moments
from gpuplan.planner.strategies.standby.segment_blocks import log_chance_of_a_call
from gpuplan.planner.strategies.standby.segment_outcomes import segment_outcomes_of, with_losses
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard, Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_bound import bound_of, call_usd
from gpuplan.planner.strategies.standby.standby_switching import Estimate, Legs, deviations, legs_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Gauss-Legendre points below, inside and above the range of deviations in which runs may or may not call the standby.
_PANELS = (7, 9, 5)
#: More points for quantiles.
_FINE = (11, 21, 9)
#: More points where segments are few: each segment that the estimate's error adds or removes is a step.
_FEW, _FINER = 40, (19, 33, 13)
#: The points of quantiles where hours spread by so much more than the paid ones: waits grow from point to point.
_WIDE, _FINEST = 1.0, (39, 33, 13)
#: Shares of the deviations in time at which moments look for that range, and the probability that counts as never.
_LOOKED = np.linspace(0.0, 1.0, 65)
_NEVER = 0.003
#: Safety factor on the gain expected of the deviations priced first, and the part above which all are priced at once.
_SURELY, _MOST_FIRST = 1.2, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyRun:
    """The outcome of one pair at one interval: expected USD and hours of each leg, and their spread.

    `hours` run from start to end (`hours_at_confidence` at the requested confidence). `switch_hours` is the mean time
    of the call, given a call; where a call is very unlikely, the last moment at which it can happen. `length_hours` is
    an interval with its checkpoint.
    """

    usd: float
    costs: Costs
    hours: float
    hours_median: float
    hours_at_confidence: float
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

    @property
    def usd_median(self) -> float:
        """USD that half of the runs stay within, at expected prices."""
        return self.costs.quantile(MEDIAN)

    @property
    def usd_p95(self) -> float:
        """USD that 95 % of runs stay within, at expected prices."""
        return self.costs.quantile(P95)


class PricedRun(NamedTuple):
    """A single pair priced at an interval: quadrature points of the estimate's error, segments, outcomes, legs."""

    pairs: Pairs
    terms: StandbyTerms
    interval_hours: float
    shares: Floats
    estimate: Estimate
    runs: Segments
    schedule: Schedule
    legs: Legs

    @staticmethod
    def of(pairs: Pairs, terms: StandbyTerms, interval_hours: float) -> "PricedRun":
        """The price of the pair at the interval."""
        return _Begun.of(pairs, terms, interval_hours).fully_priced()

    @staticmethod
    def if_called(pairs: Pairs, terms: StandbyTerms, interval_hours: float, chance: float) -> "PricedRun | None":
        """The price, or None where the probability that the standby is called is proven to be at most `chance`."""
        begun = _Begun.of(pairs, terms, interval_hours)
        return begun.fully_priced() if begun.most_calls() > chance else None

    @staticmethod
    def below(pairs: Pairs, terms: StandbyTerms, interval_hours: float, most_usd: float) -> "PricedRun | None":
        """The price, or None once it is proven to be at least `most_usd`, before every deviation is priced.

        Deviations without a price count with their bound. Those that moments place farthest above it are priced first, if they
        are likely to be enough.
        """
        begun = _Begun.of(pairs, terms, interval_hours)
        (once_usd, work_usd), weights, every = begun.bound(), begun.estimate.weights[0, 0], np.arange(len(begun.shares))
        short_usd = most_usd - once_usd - float(work_usd @ weights)
        if short_usd <= 0:
            return None
        first = _likely_enough(begun, short_usd, work_usd)
        schedule = begun.schedule(first)
        if len(first) == len(every):
            return begun.priced(schedule)
        added = begun.row_usd(schedule, first) - work_usd[first]
        if float(added @ weights[first]) >= short_usd:
            return None
        rest = np.setdiff1d(every, first)
        return begun.priced(joined(schedule, begun.schedule(rest), np.argsort(np.concatenate((first, rest)))))

    @property
    def usd(self) -> float:
        """Expected cost of the pair, in USD."""
        return float(self.legs.usd[0, 0])

    def outcome(self) -> StandbyRun:
        """The expectations with their spread."""
        pairs, terms, legs, estimate, spread = self.pairs, self.terms, self.legs, self.estimate, self.spread()
        return StandbyRun(
            usd=self.usd,
            costs=spread.costs(),
            hours=spread.mean,
            hours_median=spread.quantile(MEDIAN),
            hours_at_confidence=spread.quantile(terms.confidence),
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

    def spread(self) -> Spread:
        """The hours and cost of runs, over their losses and the estimate's error, at more points than their means need."""
        pairs, terms, priced = self.pairs, self.terms, self
        counts = (_panels(pairs, self.interval_hours, finely=finely) for finely in (False, True))
        if len(set(counts)) > 1:
            priced = _Begun.of(pairs, terms, self.interval_hours, finely=True).fully_priced()
        schedule, waited = with_losses(priced.schedule, priced.runs, Hazard.of(pairs, terms))
        return Spread(
            pairs, terms, priced.runs, schedule, waited=waited, estimate=priced.estimate, shares=priced.shares
        )


class _Begun(NamedTuple):
    """A pair at an interval before it is priced: quadrature points of the estimate's error, segments, bound."""

    pairs: Pairs
    terms: StandbyTerms
    interval_hours: float
    shares: Floats
    estimate: Estimate
    whole: Segments
    runs: Segments

    @staticmethod
    def of(pairs: Pairs, terms: StandbyTerms, interval_hours: float, *, finely: bool = False) -> "_Begun":
        tried = np.array([[interval_hours]])
        shares, weights = _points(pairs, terms, tried, finely=finely)
        estimate = deviations(pairs, terms, tried, shares, weights)
        whole = Segments.of(pairs, terms, tried, estimate.z)
        return _Begun(pairs, terms, interval_hours, shares, estimate, whole, _flat(whole))

    def schedule(self, rows: Ints) -> Schedule:
        """Outcomes of the segments at these deviations."""
        return segment_outcomes_of(self.runs.at(rows), Hazard.of(self.pairs, self.terms))

    def most_calls(self) -> float:
        """An upper bound on the probability that the standby is called."""
        within = np.exp(np.minimum(log_chance_of_a_call(self.runs, Hazard.of(self.pairs, self.terms)), 0.0))
        return 1.0 - float(self.estimate.in_time[0, 0]) + float(within @ self.estimate.weights[0, 0])

    def fully_priced(self) -> PricedRun:
        """The priced run, with the segment outcomes at all deviations."""
        return self.priced(self.schedule(np.arange(len(self.shares))))

    def priced(self, schedule: Schedule) -> PricedRun:
        """The priced run, from the segment outcomes at all deviations."""
        fares = {name: getattr(schedule, name)[None, None] for name in ("passed", "whole", "failed")}
        fares["wall"] = schedule.wall_hours(self.pairs, self.terms, self.runs)[None, None]
        legs = legs_of(self.pairs, self.terms, self.whole, self.estimate, **fares)
        return PricedRun(
            self.pairs, self.terms, self.interval_hours, self.shares, self.estimate, self.runs, schedule, legs
        )

    def row_usd(self, schedule: Schedule | None, rows: Ints) -> Floats:
        """USD that these deviations add to the cost, before any least billed time; by moments where `schedule` is None."""
        runs, pair = self.runs.at(rows), self.pairs
        if schedule is None:
            passed, whole = passed_by_moments(runs)
            failed = failed_by_moments(runs, 1.0 - whole)
            wall = passed * (runs.length + runs.losses.mean_hours) - failed * runs.losses.pause_hours
            wall = np.clip(wall, 0.0, self.terms.deadline_hours)
        else:
            passed, whole, failed = schedule.passed, schedule.whole, schedule.failed
            wall = schedule.wall_hours(pair, self.terms, runs)
        paid = np.maximum(passed * runs.losses.paid_hours - failed * runs.losses.paid_pause_hours, 0.0)
        left = (1.0 - passed / runs.count) * runs.standby_hours
        spot_usd = pair.usd_per_hour * paid + pair.storage_usd_per_hour * np.maximum(wall, paid)
        by_hour = pair.standby_usd_per_hour + pair.standby_storage_usd_per_hour
        return np.asarray(spot_usd + by_hour * left + (1.0 - whole) * call_usd(pair))

    def bound(self) -> tuple[float, Floats]:
        """A lower bound on the cost of the pair: a constant, and a part per deviation."""
        now = self.estimate
        one = Estimate(z=now.z[0], weights=now.weights[0], largest=now.largest[0], in_time=now.in_time[0])
        once_usd, work_usd = bound_of(self.pairs, self.terms, one, np.array([self.interval_hours]))
        return float(once_usd[0]), work_usd[0]


def _likely_enough(begun: _Begun, short_usd: float, bound_usd: Floats) -> Ints:
    """Deviations whose prices are likely to add `short_usd` to their bounds; all where most would have to be priced."""
    every = np.arange(len(bound_usd))
    gains = (begun.row_usd(None, every) - bound_usd) * begun.estimate.weights[0, 0]
    first = np.argsort(-gains)
    enough = int(np.searchsorted(np.cumsum(gains[first]), _SURELY * short_usd)) + 1
    return np.sort(first[:enough]) if enough <= _MOST_FIRST * len(every) else every


def _points(pairs: Pairs, terms: StandbyTerms, tried: Floats, *, finely: bool) -> tuple[Floats, Floats]:
    """Shares of the deviations in time, ascending, with weights: panels around where runs may or may not call the standby."""
    looked = deviations(pairs, terms, tried, _LOOKED, np.ones(len(_LOOKED)))
    whole = passed_by_moments(Segments.of(pairs, terms, tried, looked.z))[1][0, 0]
    ever, not_always = np.flatnonzero(whole > _NEVER), np.flatnonzero(whole < 1.0 - _NEVER)
    edges = [0.0, 1.0]
    if len(ever) and len(not_always):
        low, high = sorted((not_always[0] - 1, ever[-1] + 1))
        edges[1:1] = [float(_LOOKED[max(low, 0)]), float(_LOOKED[min(high, len(_LOOKED) - 1)])]
    below, inside, above = _panels(pairs, float(tried[0, 0]), finely=finely)
    counts = (below, inside, above) if len(edges) > 2 else (below + inside + above,)
    shares, weights = [], []
    for count, begins, ends in zip(counts, edges[:-1], edges[1:], strict=True):
        if ends > begins:
            at, weight = _legendre(count)
            shares.append(begins + (ends - begins) * (1.0 + at) / 2)
            weights.append((ends - begins) * weight)
    return np.concatenate(shares), np.concatenate(weights)


def _panels(pairs: Pairs, interval_hours: float, *, finely: bool) -> tuple[int, int, int]:
    """How many points each panel has; `finely` those of quantiles."""
    if finely and float(pairs.wall_log_sigma[0] - pairs.log_sigma[0]) > _WIDE:
        return _FINEST
    if pairs.work_hours[0] < _FEW * interval_hours:
        return _FINER
    return _FINE if finely else _PANELS


@cache
def _legendre(count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre points on [-1, 1] and their weights, for the few counts of panels; callers must not write to them."""
    return np.polynomial.legendre.leggauss(count)


def _flat(runs: Segments) -> Segments:
    """The segments of a single pair at a single interval: [z]."""

    def first(values: Floats) -> Floats:
        return np.array(np.broadcast_to(values, runs.count.shape)[0, 0])

    losses = runs.losses
    names = type(losses).__dataclass_fields__
    return Segments(
        count=first(runs.count),
        length=first(runs.length),
        losses=replace(losses, **{name: first(getattr(losses, name)) for name in names}),
        wait_hours=first(runs.wait_hours),
        standby_hours=first(runs.standby_hours),
        slack=first(runs.slack),
        growth=first(runs.growth),
    )
