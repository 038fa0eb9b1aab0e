"""One run under the net, with its whole distribution: what `net` takes by moments, here segment by segment.

The losses L_i live on a lattice from 0 to the largest slack. From segment to segment (from block to block of them,
where there are many) their distribution is convolved with that of one segment's losses, and what lies beyond the slack
S_i is taken off: those runs have called the standby. This is exact where the slack does not grow inside a block. Powers
of the transform wrap around at the end of the lattice; all masses are therefore tilted by e^(-18 i / points), which
makes what wraps around 1.5e-8 of itself.

The estimate's factor f = e^(sigma z) is mixed in on a grid of z over four deviations; between its points the distribution
of the losses is interpolated, so that the quantiles are not those of the grid.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.spot.losses import normal_cdf
from planner.spot.net import Estimate, NetTerms, Pairs, Segments, deviations, largest_in_time, legs_of

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

_POINTS = 1024
_TILT = 18.0
#: Blocks whose ends are spread evenly, and others whose ends grow by a constant factor: slack may be gone soon.
_EVEN, _GROWING = 24, 12
#: Shares of the deviations in time, by Simpson's rule, and the finer ones on which quantiles are mixed.
_NODES = np.linspace(0.0, 1.0, 17)
_NODE_WEIGHTS = np.array([1.0, *[4.0, 2.0] * 7, 4.0, 1.0])
_FINE = np.linspace(0.0, 1.0, 321)
_BISECTIONS = 40
#: Quantiles are looked for up to this many times the deadline.
_LONGEST = 1e6
P95 = 0.95
#: Below this chance of a preemption its moment is as good as uniform, and the formula would cancel.
_BRIEF = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class NetRun:
    """What comes of one pair at one interval: expected USD and hours of each leg, and their spread.

    `hours` are from start to end (`kept` with the confidence asked); a run that calls the standby is taken to end half
    an interval and half a restart before the deadline. `switch_hours` is when it is called, on average, given that it
    is; where that hardly happens, the last moment at which it can be. `length_hours` is an interval with its checkpoint.
    """

    usd: float
    usd_p95: float
    hours: float
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
    tried = np.array([[interval_hours]])
    estimate = deviations(pairs, terms, tried, _NODES, _NODE_WEIGHTS)
    whole = Segments.of(pairs, terms, tried, estimate.z)
    runs = _flat(whole)
    course = _course(runs, float(pairs.rate[0]), terms)
    legs = legs_of(pairs, terms, whole, estimate, passed=course.passed[None, None], whole=course.whole[None, None])
    spread = _Spread(pairs, terms, runs, course, estimate)
    return NetRun(
        usd=float(legs.usd[0, 0]),
        usd_p95=spread.usd_quantile(P95),
        hours=spread.mean,
        hours_kept=spread.quantile(terms.confidence),
        hours_p95=spread.quantile(P95),
        spot_hours=float(legs.spot_hours[0, 0]),
        spot_wall_hours=float(legs.wall_hours[0, 0]),
        standby_hours=float(legs.standby_hours[0, 0]),
        switch_probability=float(legs.switch_probability[0, 0]),
        in_time=float(estimate.in_time[0, 0]),
        interval_hours=interval_hours,
        length_hours=interval_hours + float(pairs.checkpoint_hours[0]),
        changeover_hours=float(pairs.changeover_hours[0]),
        switch_hours=spread.called_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Course:
    """How a run fares, per z: segments passed on average, the probability of passing all, and block by block.

    `ends` [z, blocks] counts the segments at each block's end and `called` is the probability of calling the standby in
    it; `losses` [z, points] is the mass of the losses of runs that passed all, on a lattice of `lattice` hours.
    """

    passed: Floats
    whole: Floats
    ends: Floats
    called: Floats
    losses: Floats
    lattice: Floats


def _flat(runs: Segments) -> Segments:
    """The segments of a single pair at a single interval: [z]."""

    def first(values: Floats) -> Floats:
        return np.asarray(values[0, 0])

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


def _course(runs: Segments, rate: float, terms: NetTerms) -> _Course:
    largest = np.maximum(runs.slack, runs.slack + (runs.count - 1) * runs.growth)
    largest = np.maximum(np.minimum(largest, _furthest(runs)), 1e-6)
    lattice = largest / (_POINTS - 1)
    at = np.arange(_POINTS)
    untilt = np.exp(_TILT * at / _POINTS)
    segment = np.log(_segment_transform(runs.length, rate, terms, lattice))
    ends = _ends(runs.count)
    alive = np.zeros((len(lattice), _POINTS))
    alive[:, 0] = 1.0
    before, passed, called = alive[:, 0].copy(), np.zeros(len(lattice)), []
    for block in range(1, ends.shape[1]):
        count = ends[:, block] - ends[:, block - 1]
        alive = np.fft.irfft(np.fft.rfft(alive) * np.exp(count[:, None] * segment), _POINTS)
        slack = np.maximum(runs.slack + (ends[:, block] - 1) * runs.growth, -lattice)
        inside = at <= (slack / lattice + 1e-6)[:, None]
        # No segment in this block: nothing to be late with.
        alive = np.where(inside | (count == 0)[:, None], np.maximum(alive, 0.0), 0.0)
        now = np.minimum(alive @ untilt, before)
        passed += count * before + (now - before) * (count + 1) / 2
        called.append(before - now)
        before = now
    return _Course(
        passed=passed,
        whole=before,
        ends=ends[:, 1:],
        called=np.stack(called, axis=1),
        losses=alive * untilt,
        lattice=lattice,
    )


def _furthest(runs: Segments) -> Floats:
    """Losses beyond which there is nothing worth counting, whatever the slack: the mean, twelve deviations, forty losses."""
    each = runs.losses.mean_hours / np.maximum(np.expm1(np.minimum(-runs.losses.log_lossless, 700.0)), 1e-300)
    return runs.count * runs.losses.mean_hours + 12.0 * np.sqrt(runs.count * runs.losses.variance) + 40.0 * each


def _ends(count: Floats) -> Floats:
    """Segments at the ends of blocks, from 0 to all: [rows, blocks + 1]."""
    even = np.arange(_EVEN + 1) / _EVEN
    growing = count[:, None] ** (np.arange(_GROWING) / _GROWING) / count[:, None]
    shares = np.sort(np.concatenate((np.broadcast_to(even, (len(count), _EVEN + 1)), growing), axis=1), axis=1)
    return np.asarray(np.floor(count[:, None] * shares + 1e-9))


def _segment_transform(length: Floats, rate: float, terms: NetTerms, lattice: Floats) -> Complex:
    """The transform of one segment's losses, tilted, for rows with lattices of their own: [rows, points / 2 + 1]."""
    survives = np.exp(-rate * length)[:, None]
    lost = _transform(_truncated(rate, length, lattice))
    restart = np.full_like(length, terms.restart_hours)
    wait: Complex | float = 1.0
    if terms.wait_hours > 0:
        wait = _transform(_truncated(1.0 / terms.wait_hours, np.full_like(length, np.inf), lattice))
    again = np.exp(-rate * terms.restart_hours)
    failed = _transform(_truncated(rate, restart, lattice)) * wait
    lost = lost * wait * _transform(_point(restart, lattice)) * again / (1.0 - (1.0 - again) * failed)
    return np.asarray(survives / (1.0 - (1.0 - survives) * lost))


def _transform(mass: Floats) -> Complex:
    return np.fft.rfft(mass * np.exp(-_TILT * np.arange(_POINTS) / _POINTS))


def _truncated(rate: float, top: Floats, lattice: Floats) -> Floats:
    """An exponential of `rate` below `top`, on each row's lattice with its mean kept; what lies beyond is left out."""
    brief = rate * top < _BRIEF
    edges = np.minimum(np.arange(-1, _POINTS + 1) * lattice[:, None], top[:, None])
    whole = np.where(brief, 1.0, -np.expm1(-rate * top))[:, None]
    rises = -np.expm1(-rate * np.maximum(edges, 0.0)) / rate
    tail = (rises - np.maximum(edges, 0.0) * np.exp(-rate * top)[:, None]) / whole
    tail[:, 0] = -lattice
    mass = np.maximum((2.0 * tail[:, 1:-1] - tail[:, :-2] - tail[:, 2:]) / lattice[:, None], 0.0)
    return np.where(brief[:, None], _point(np.where(brief, top / 2, 0.0), lattice), mass)


def _point(at: Floats, lattice: Floats) -> Floats:
    """All mass at one place per row, split between the two next points so that the mean is kept."""
    mass = np.zeros((len(at), _POINTS))
    whole = np.floor(at / lattice).astype(np.int64)
    part, rows = at / lattice - whole, np.arange(len(at))
    for place, share in ((whole, 1.0 - part), (whole + 1, part)):
        here = place < _POINTS
        mass[rows[here], place[here]] += share[here]
    return mass


class _Spread:
    """When runs end and what they cost, mixed over the estimate's error."""

    def __init__(self, pairs: Pairs, terms: NetTerms, runs: Segments, course: _Course, estimate: Estimate) -> None:
        self.pairs, self.terms, self.runs, self.course = pairs, terms, runs, course
        self.weights = estimate.weights[0, 0]
        self.late, self.largest = 1.0 - float(estimate.in_time[0, 0]), float(estimate.largest[0, 0])
        self.certain = terms.setup_hours + runs.count * runs.length
        self.cumulated = np.cumsum(course.losses, axis=1)
        #: When runs end that the standby brings in, and when it was called, less the work saved.
        self.rescued_at = terms.deadline_hours - (runs.length + terms.restart_hours) / 2
        self.changeover = float(pairs.changeover_hours[0])
        fine = np.interp(_FINE, _NODES, estimate.z[0, 0])
        density = np.exp(-0.5 * fine**2)
        self.fine_weights = density / density.sum() * float(estimate.in_time[0, 0])

    @property
    def mean(self) -> float:
        """Expected hours, work at the estimate's own hours."""
        course, sigma = self.course, float(self.pairs.log_sigma[0])
        lost = np.arange(_POINTS) * course.lattice[:, None]
        setup = self.terms.setup_hours
        run = (course.whole * (self.certain - setup) + (course.losses * lost).sum(axis=1)) / np.exp(sigma**2 / 2)
        alone = course.whole * setup + run
        # At least the changeover and the standby's whole work for those that are late.
        return float(self.weights @ (alone + (1.0 - course.whole) * self.rescued_at)) + self._late_hours()

    def _late_hours(self) -> float:
        sigma = float(self.pairs.standby_log_sigma[0])
        work = float(self.pairs.standby_work_hours[0]) * float(normal_cdf(np.array(sigma - self.largest)))
        return self.late * (self._begins_late + self.changeover) + work

    @property
    def _begins_late(self) -> float:
        """When the standby is called that will be late."""
        return self.terms.setup_hours + float(self.runs.length[-1])

    @property
    def called_at(self) -> float:
        """When the standby is called, on average, given that it is and can be in time; else the last moment."""
        course, runs = self.course, self.runs
        left = (1.0 - np.maximum(course.ends - 1, 0.0) / runs.count[:, None]) * runs.standby_hours[:, None]
        at = np.maximum(self.rescued_at[:, None] - self.changeover - left, self.terms.setup_hours)
        weights = self.weights[:, None] * course.called
        if weights.sum() < 1e-6:
            return float(self.terms.deadline_hours - runs.length.max() - self.changeover)
        return float((weights * at).sum() / weights.sum())

    def probability_by(self, hours: float) -> float:
        """The probability of having ended within `hours`."""

        def fine(values: Floats) -> Floats:
            return np.interp(_FINE, _NODES, values)

        # Where losses are looked up is interpolated over z, and so is their distribution at equal shares of the lattice.
        share = (hours - fine(self.certain)) / fine(self.course.lattice)
        low = np.minimum(_FINE * (len(_NODES) - 1), len(_NODES) - 1 - 1e-9).astype(np.int64)
        part = _FINE * (len(_NODES) - 1) - low
        at = np.clip(np.floor(share + 1e-6).astype(np.int64), 0, _POINTS - 1)
        alone = (1 - part) * self.cumulated[low, at] + part * self.cumulated[low + 1, at]
        alone = np.where(share >= -1e-6, alone, 0.0)
        rescued = (1.0 - fine(self.course.whole)) * (fine(self.rescued_at) <= hours + 1e-9)
        return float(self.fine_weights @ np.minimum(alone + rescued, 1.0)) + self._late_by(hours)

    def _late_by(self, hours: float) -> float:
        """The probability of having ended within `hours` and past the deadline, on a standby that is too slow."""
        room = hours - self._begins_late - self.changeover
        sigma, work = float(self.pairs.standby_log_sigma[0]), float(self.pairs.standby_work_hours[0])
        z = float(largest_in_time(np.array(room), np.array(work), np.array(sigma)))
        beyond = float(normal_cdf(np.array(z))) - (1.0 - self.late)
        return min(max(beyond, 0.0), self.late) if hours > self.terms.deadline_hours else 0.0

    def quantile(self, probability: float) -> float:
        """The hours that are not exceeded with `probability`, by bisection."""
        low, high = 0.0, float(max(self.terms.deadline_hours, (self.certain + self.course.lattice * _POINTS).max()))
        while self.probability_by(high) < probability and high < _LONGEST * self.terms.deadline_hours:
            high *= 2.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.probability_by(middle) >= probability:
                high = middle
            else:
                low = middle
        return high

    def usd_quantile(self, probability: float) -> float:
        """The USD that are not exceeded with `probability`: losses cost what they do on average per hour lost."""
        pairs, terms, runs, course = self.pairs, self.terms, self.runs, self.course
        usd, storage, fixed, standby_usd, standby_storage, standby_fixed, changeover = (
            float(getattr(pairs, name)[0])
            for name in (
                "usd_per_hour",
                "storage_usd_per_hour",
                "fixed_usd",
                "standby_usd_per_hour",
                "standby_storage_usd_per_hour",
                "standby_fixed_usd",
                "changeover_hours",
            )
        )
        paid = (runs.losses.paid_hours - runs.length) / np.maximum(runs.losses.mean_hours, 1e-300)
        per_loss = (usd * paid + storage)[:, None]
        lost = np.arange(_POINTS) * course.lattice[:, None]
        alone = fixed + (usd + storage) * self.certain[:, None] + per_loss * lost
        done = np.maximum(course.ends - 1, 0.0)
        slack = np.maximum(runs.slack[:, None] + done * runs.growth[:, None], 0.0)
        spot = (usd + storage) * (terms.setup_hours + done * runs.length[:, None]) + per_loss * slack
        rest = changeover + (1 - done / runs.count[:, None]) * runs.standby_hours[:, None]
        called = fixed + standby_fixed + spot + (standby_usd + standby_storage) * rest
        # What is late: the standby's whole work, at the least.
        at_once = fixed + standby_fixed + (usd + storage) * self._begins_late
        at_once += (standby_usd + standby_storage) * (changeover + runs.standby_hours[-1])
        values = np.concatenate([alone.ravel(), called.ravel(), [at_once]])
        weights = np.concatenate(
            [
                (self.weights[:, None] * course.losses).ravel(),
                (self.weights[:, None] * course.called).ravel(),
                [self.late],
            ]
        )
        kept = weights > 1e-12
        order = np.argsort(values[kept])
        summed = np.cumsum(weights[kept][order]) - weights[kept][order] / 2
        return float(np.interp(probability * weights.sum(), summed, values[kept][order]))
