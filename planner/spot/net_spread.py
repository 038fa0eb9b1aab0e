"""When runs under the net end and what they cost: quantiles, from how runs fare at each deviation of the estimate."""

from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from planner.spot.losses import normal_cdf
from planner.spot.net import FURTHEST, Estimate, NetTerms, Pairs, largest_in_time, mean_beyond
from planner.spot.net_lattice import POINTS
from planner.spot.net_segments import Segments

Floats = NDArray[np.float64]

#: Shares of the deviations in time on which quantiles are mixed.
_FINE = (np.arange(320) + 0.5) / 320
#: Chances, of the deviations too large for the standby to be in time, at which such runs are looked at.
_TAIL = (np.arange(64) + 0.5) / 64
_BISECTIONS = 40
#: The lattice of losses is summed into so many bins, each at its mean, where costs are mixed.
_BINS = 64
#: Quantiles are looked for up to this many times the deadline.
_LONGEST = 1e6
MEDIAN, P95 = 0.5, 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """How a run fares, per z: segments passed on average, the probability of passing all and that of calling the standby
    on a failure, and block by block.

    `ends` [z, blocks] counts the segments at each block's end and `called` is the probability of calling the standby in
    it; `losses` [z, points] is the mass of the losses of runs that passed all, on a lattice of `lattice` hours.
    """

    passed: Floats
    whole: Floats
    failed: Floats
    ends: Floats
    called: Floats
    losses: Floats
    lattice: Floats


def joined(one: Course, other: Course, order: NDArray[np.int64]) -> Course:
    """How runs fare at the deviations of both, in this order."""
    return Course(
        **{
            each.name: np.concatenate((getattr(one, each.name), getattr(other, each.name)))[order]
            for each in fields(Course)
        }
    )


class Spread:
    """When runs end and what they cost, mixed over the estimate's error, whose points are at `shares` of those in time."""

    def __init__(
        self, pairs: Pairs, terms: NetTerms, runs: Segments, course: Course, *, estimate: Estimate, shares: Floats
    ) -> None:
        self.pairs, self.terms, self.runs, self.course = pairs, terms, runs, course
        self.weights = estimate.weights[0, 0]
        self.late, self.largest = 1.0 - float(estimate.in_time[0, 0]), float(estimate.largest[0, 0])
        self.certain = terms.setup_hours + runs.count * runs.length
        self.cumulated = np.cumsum(course.losses, axis=1)
        #: A run that calls the standby ends by the deadline, earlier by up to an interval, and by a restart if it fails.
        on_failure = np.clip(course.failed / np.maximum(1.0 - course.whole, 1e-300), 0.0, 1.0)
        self.early = runs.length + terms.restart_hours * on_failure
        self.rescued_at = terms.deadline_hours - self.early / 2
        self.changeover = float(pairs.changeover_hours[0])
        furthest = min(max(self.largest, -FURTHEST), FURTHEST)
        fine = -FURTHEST + (furthest + FURTHEST) * _FINE
        density = np.exp(-0.5 * fine**2)
        self.fine_weights = density / density.sum() * (1.0 - self.late)
        self.low = np.clip(np.searchsorted(shares, _FINE) - 1, 0, max(len(shares) - 2, 0))
        self.part = (_FINE - shares[self.low]) / (shares[self.low + 1] - shares[self.low])
        self.clipped = np.clip(self.part, 0.0, 1.0)
        self.fine_certain, self.fine_lattice = self._fine(self.certain), self._fine(course.lattice)
        self.fine_early = self._fine(self.early)
        self.fine_rescued = 1.0 - np.clip(self._fine(course.whole), 0.0, 1.0)

    @property
    def mean(self) -> float:
        """Expected hours."""
        course = self.course
        lost = np.arange(POINTS) * course.lattice[:, None]
        alone = course.whole * self.certain + (course.losses * lost).sum(axis=1)
        # At least the changeover and the standby's whole work for those that are late.
        return float(self.weights @ (alone + (1.0 - course.whole) * self.rescued_at)) + self._late_hours()

    def _late_hours(self) -> float:
        sigma = float(self.pairs.standby_log_sigma[0])
        work = float(self.pairs.standby_work_hours[0]) * float(mean_beyond(np.array(self.largest), np.array(sigma)))
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
        if hours >= self.terms.deadline_hours:
            return 1.0 - self.late + self._late_by(hours)
        # Where losses are looked up is interpolated over z, and so is their distribution at equal shares of the lattice.
        share = (hours - self.fine_certain) / self.fine_lattice
        at = np.minimum(np.maximum(np.floor(share + 1e-6).astype(np.int64), 0), POINTS - 1)
        part = self.clipped
        alone = (1 - part) * self.cumulated[self.low, at] + part * self.cumulated[self.low + 1, at]
        alone = np.where(share >= -1e-6, alone, 0.0)
        room = (hours - self.terms.deadline_hours) / self.fine_early + 1.0
        rescued = self.fine_rescued * np.minimum(np.maximum(room, 0.0), 1.0)
        return float(self.fine_weights @ np.minimum(alone + rescued, 1.0))

    def _fine(self, values: Floats) -> Floats:
        """Values at the points, at the finer shares: between the points and beyond the outermost by straight lines."""
        part = self.part if values.ndim == 1 else self.part[:, None]
        return (1.0 - part) * values[self.low] + part * values[self.low + 1]

    def _late_by(self, hours: float) -> float:
        """The probability of having ended within `hours` and past the deadline, on a standby that is too slow."""
        room = hours - self._begins_late - self.changeover
        sigma, work = float(self.pairs.standby_log_sigma[0]), float(self.pairs.standby_work_hours[0])
        z = float(largest_in_time(np.array(room), np.array(work), np.array(sigma)))
        beyond = float(normal_cdf(np.array(z))) - (1.0 - self.late)
        return min(max(beyond, 0.0), self.late)

    def quantile(self, probability: float) -> float:
        """The hours that are not exceeded with `probability`, by bisection."""
        low, high = 0.0, float(max(self.terms.deadline_hours, (self.certain + self.course.lattice * POINTS).max()))
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
        mass = course.losses.reshape(len(course.losses), _BINS, -1)
        binned = mass.sum(axis=2)
        point = (mass @ np.arange(mass.shape[2])) / np.maximum(binned, 1e-300) + np.arange(_BINS) * mass.shape[2]
        alone = fixed + (usd + storage) * self.certain[:, None] + per_loss * point * course.lattice[:, None]
        done = np.maximum(course.ends - 1, 0.0)
        slack = np.maximum(runs.slack[:, None] + done * runs.growth[:, None], 0.0)
        spot = (usd + storage) * (terms.setup_hours + done * runs.length[:, None]) + per_loss * slack
        rest = changeover + (1 - done / runs.count[:, None]) * runs.standby_hours[:, None]
        called = fixed + standby_fixed + spot + (standby_usd + standby_storage) * rest
        # What is late: the standby's whole work, whatever the estimate's error makes of it.
        chances = np.minimum(1.0 - self.late + self.late * _TAIL, 1.0 - 1e-12)
        factor = np.exp(float(pairs.standby_log_sigma[0]) * np.array([NormalDist().inv_cdf(each) for each in chances]))
        rest_hours = changeover + float(pairs.standby_work_hours[0]) * factor
        begun = fixed + standby_fixed + (usd + storage) * self._begins_late
        beyond = begun + (standby_usd + standby_storage) * rest_hours
        values = np.concatenate([self._fine(alone).ravel(), self._fine(called).ravel(), beyond])
        masses = [
            (self.fine_weights[:, None] * np.maximum(self._fine(each), 0.0)).ravel() for each in (binned, course.called)
        ]
        weights = np.concatenate([*masses, np.full(len(factor), self.late / len(factor))])
        kept = weights > 1e-12
        order = np.argsort(values[kept], kind="stable")
        summed = np.cumsum(weights[kept][order]) - weights[kept][order] / 2
        return float(np.interp(probability * weights.sum(), summed, values[kept][order]))
