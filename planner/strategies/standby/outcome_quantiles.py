"""Quantiles of the hours and cost of runs with a standby, from their outcomes at each deviation of the estimate."""

from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.cost_quantiles import RUNS, RunCosts
from gpuplan.planner.strategies.standby.early_ends import Early
from gpuplan.planner.strategies.standby.loss_lattice import POINTS
from gpuplan.planner.strategies.standby.preemption_losses import normal_cdf
from gpuplan.planner.strategies.standby.run_segments import Segments
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import FURTHEST, Estimate, largest_in_time, mean_beyond

Floats = NDArray[np.float64]

#: Shares of the deviations in time on which quantiles are mixed.
_FINE = (np.arange(320) + 0.5) / 320
#: Probabilities, among the deviations too large for the standby to be in time, at which such runs are evaluated.
_TAIL = (np.arange(64) + 0.5) / 64
_BISECTIONS = 40
#: The lattice of losses is summed into so many bins, each at its mean, where costs are mixed.
_BINS = 64
#: Quantiles are searched up to this many times the deadline.
_LONGEST = 1e6
MEDIAN, P95 = 0.5, 0.95
#: Hours of slack, times the probability of a call, too few to tell which part of them is paid.
_NO_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """Outcomes of a run per z: mean segments passed, probability of passing all, and probability of a call after a failure.

    Per block, `ends` [z, blocks] counts the segments at its end and `called` is the probability of calling the standby in
    it. `losses` [z, points] is the mass of the losses of runs that passed all, on a lattice of `lattice` hours; it is left out
    (`without_losses` [z]) where no run calls the standby, since only quantiles need it.
    """

    passed: Floats
    whole: Floats
    failed: Floats
    ends: Floats
    called: Floats
    losses: Floats
    lattice: Floats
    without_losses: NDArray[np.bool_]

    @property
    def done(self) -> Floats:
        """The mean segments that runs have passed which call the standby in each block: [z, blocks]."""
        begins = np.pad(self.ends[:, :-1], ((0, 0), (1, 0)))
        return np.maximum((begins + self.ends - 1.0) / 2.0, 0.0)

    @property
    def lost_hours(self) -> Floats:
        """The mean hours that runs lose, of those that pass all, times their probability: [z]."""
        return np.asarray(self.lattice * np.vecdot(self.losses, np.arange(float(POINTS))))

    def early(self, terms: StandbyTerms, runs: Segments) -> Early:
        """By how much runs end before the deadline that call the standby."""
        on_failure = np.clip(self.failed / np.maximum(1.0 - self.whole, 1e-300), 0.0, 1.0)
        return Early.of(terms, runs, on_failure)

    def wall_hours(self, pairs: Pairs, terms: StandbyTerms, runs: Segments) -> Floats:
        """Mean hours on the clock on spot, after set-up: [z].

        Without the hours after the call, since pauses may take many times the slack: what Wald's identity would subtract.
        """
        certain = runs.count * runs.length
        alone = certain + runs.count * runs.losses.mean_hours
        if self.without_losses.all():
            return alone
        left = (1.0 - self.done / runs.count[:, None]) * runs.standby_hours[:, None]
        after = pairs.setup_hours + pairs.changeover_hours + self.early(terms, runs).mean
        at = np.maximum(terms.deadline_hours - after[:, None] - left, 0.0)
        with_calls = self.whole * certain + self.lost_hours + np.vecdot(self.called, at)
        return np.where(self.without_losses, alone, with_calls)


def joined(one: Schedule, other: Schedule, order: NDArray[np.int64]) -> Schedule:
    """The outcomes at the deviations of both, in this order."""
    return Schedule(
        **{
            field.name: np.concatenate((getattr(one, field.name), getattr(other, field.name)))[order]
            for field in fields(Schedule)
        }
    )


class Spread:
    """Hours and cost of runs, mixed over the estimate's error, whose points are at `shares` of the deviations in time.

    `waited` [z, points] are the mean hours that runs have waited, unpaid, which lost so many hours.
    """

    def __init__(
        self,
        pairs: Pairs,
        terms: StandbyTerms,
        runs: Segments,
        schedule: Schedule,
        *,
        waited: Floats,
        estimate: Estimate,
        shares: Floats,
    ) -> None:
        self.pairs, self.terms, self.runs, self.schedule, self.waited = pairs, terms, runs, schedule, waited
        self.weights = estimate.weights[0, 0]
        self.late, self.largest = 1.0 - float(estimate.in_time[0, 0]), float(estimate.largest[0, 0])
        self.setup_hours = float(pairs.setup_hours[0])
        self.certain = self.setup_hours + runs.count * runs.length
        self.cumulated = np.cumsum(schedule.losses, axis=1)
        self.early = schedule.early(terms, runs)
        self.rescued_at = terms.deadline_hours - self.early.mean
        self.changeover = float(pairs.changeover_hours[0])
        furthest = min(max(self.largest, -FURTHEST), FURTHEST)
        fine = -FURTHEST + (furthest + FURTHEST) * _FINE
        density = np.exp(-0.5 * fine**2)
        self.fine_weights = density / density.sum() * (1.0 - self.late)
        self.low = np.clip(np.searchsorted(shares, _FINE) - 1, 0, max(len(shares) - 2, 0))
        self.part = (_FINE - shares[self.low]) / (shares[self.low + 1] - shares[self.low])
        self.clipped = np.clip(self.part, 0.0, 1.0)
        self.fine_certain, self.fine_lattice = self._fine(self.certain), self._fine(schedule.lattice)
        self.fine_early = Early(*(self._fine(values) for values in self.early))
        self.longest_early = float(self.fine_early.longest.max())
        self.fine_rescued = 1.0 - np.clip(self._fine(schedule.whole), 0.0, 1.0)

    @property
    def mean(self) -> float:
        """Expected hours."""
        schedule = self.schedule
        alone = schedule.whole * self.certain + schedule.lost_hours
        # Late runs take at least the changeover and all the standby's work.
        return float(self.weights @ (alone + (1.0 - schedule.whole) * self.rescued_at)) + self._late_hours()

    def _late_hours(self) -> float:
        sigma = float(self.pairs.standby_log_sigma[0])
        work = float(self.pairs.standby_work_hours[0]) * float(mean_beyond(np.array(self.largest), np.array(sigma)))
        return self.late * (self._begins_late + self.changeover) + work

    @property
    def _begins_late(self) -> float:
        """Hours at which a standby that will be late is called."""
        return self.setup_hours + float(self.runs.length[-1])

    @property
    def called_at(self) -> float:
        """Mean hours of the call, given a call that can meet the deadline; else the last possible moment."""
        schedule, runs = self.schedule, self.runs
        left = (1.0 - schedule.done / runs.count[:, None]) * runs.standby_hours[:, None]
        at = np.maximum(self.rescued_at[:, None] - self.changeover - left, self.setup_hours)
        weights = self.weights[:, None] * schedule.called
        if weights.sum() < 1e-6:
            return float(self.terms.deadline_hours - runs.length.max() - self.changeover)
        return float((weights * at).sum() / weights.sum())

    def probability_by(self, hours: float) -> float:
        """The probability that the run ends within `hours`."""
        if hours >= self.terms.deadline_hours:
            return 1.0 - self.late + self._late_by(hours)
        # The index into the losses is interpolated over z, and so is their distribution at equal shares of the lattice.
        share = (hours - self.fine_certain) / self.fine_lattice
        at = np.minimum(np.maximum(np.floor(share + 1e-6).astype(np.int64), 0), POINTS - 1)
        part = self.clipped
        alone = (1 - part) * self.cumulated[self.low, at] + part * self.cumulated[self.low + 1, at]
        alone = np.where(share >= -1e-6, alone, 0.0)
        early = self.terms.deadline_hours - hours
        if early > self.longest_early:
            return float(self.fine_weights @ np.minimum(alone, 1.0))
        rescued = self.fine_rescued * self.fine_early.by_at_least(early)
        return float(self.fine_weights @ np.minimum(alone + rescued, 1.0))

    def _fine_masses(self, masses: Floats) -> Floats:
        """The masses [z, n] over the finer shares [shares * n]: as much in all as at the quadrature points."""
        fine = (self.fine_weights[:, None] * np.maximum(self._fine(masses), 0.0)).ravel()
        return np.asarray(fine * (float(self.weights @ masses.sum(axis=1)) / max(float(fine.sum()), 1e-300)))

    def _fine(self, values: Floats) -> Floats:
        """Values at the points, interpolated to the finer shares and extrapolated linearly beyond the outermost points."""
        part = self.part if values.ndim == 1 else self.part[:, None]
        return (1.0 - part) * values[self.low] + part * values[self.low + 1]

    def _late_by(self, hours: float) -> float:
        """The probability that the run ends within `hours` but after the deadline, on a standby that is too slow."""
        room = hours - self._begins_late - self.changeover
        sigma, work = float(self.pairs.standby_log_sigma[0]), float(self.pairs.standby_work_hours[0])
        z = float(largest_in_time(np.array(room), np.array(work), np.array(sigma)))
        beyond = float(normal_cdf(np.array(z))) - (1.0 - self.late)
        return min(max(beyond, 0.0), self.late)

    def quantile(self, probability: float) -> float:
        """The hours that are not exceeded with `probability`, by bisection."""
        low, high = 0.0, float(max(self.terms.deadline_hours, (self.certain + self.schedule.lattice * POINTS).max()))
        while self.probability_by(high) < probability and high < _LONGEST * self.terms.deadline_hours:
            high *= 2.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.probability_by(middle) >= probability:
                high = middle
            else:
                low = middle
        return high

    def costs(self) -> "Costs":
        """The cost of every kind of run: all of the work on spot, with a call in time, or late."""
        usd, spot_usd, standby_usd, weights = (
            np.concatenate(kinds) for kinds in zip(*self._in_time(), self._late(), strict=True)
        )
        possible = np.flatnonzero(weights > 1e-12)
        order = possible[np.argsort(usd[possible], kind="stable")]
        return Costs(
            usd=usd[order],
            weights=weights[order],
            whole=float(weights.sum()),
            spot_usd=spot_usd[order],
            standby_usd=standby_usd[order],
        )

    def _in_time(self) -> "tuple[_Kind, _Kind]":
        """Runs that do all of the work on spot, and those that call the standby in time."""
        runs, schedule, done = self.runs, self.schedule, self.schedule.done
        mass = schedule.losses.reshape(len(schedule.losses), _BINS, -1)
        weights, points = mass.sum(axis=2), np.arange(float(POINTS)) * schedule.lattice[:, None]
        lost, paid = (
            np.vecdot(mass, hours.reshape(mass.shape)) / np.maximum(weights, 1e-300)
            for hours in (points, points - self.waited)
        )
        certain = self.certain[:, None]
        alone = self._cost(paid=certain + paid, on_clock=certain + lost, standby=np.zeros_like(paid))
        slack = np.maximum(runs.slack[:, None] + done * runs.growth[:, None], 0.0)
        worked = self.setup_hours + done * runs.length[:, None]
        paid_slack = self._paid_slack(slack, np.vecdot(weights, paid))[:, None] * slack
        rest = self.changeover + (1 - done / runs.count[:, None]) * runs.standby_hours[:, None]
        called = self._cost(paid=worked + paid_slack, on_clock=worked + slack, standby=rest)
        return self._mixed(alone, weights), self._mixed(called, schedule.called)

    def _late(self) -> "_Kind":
        """Runs with all of the standby's work, at every factor of the estimate's error."""
        chances = np.minimum(1.0 - self.late + self.late * _TAIL, 1.0 - 1e-12)
        deviation = np.array([NormalDist().inv_cdf(chance) for chance in chances])
        work = self.pairs.standby_work_hours * np.exp(self.pairs.standby_log_sigma * deviation)
        begun = np.full(len(work), self._begins_late)
        cost = self._cost(paid=begun, on_clock=begun, standby=self.changeover + work)
        return _Kind(*cost, np.full(len(work), self.late / len(work)))

    def _cost(self, *, paid: Floats, on_clock: Floats, standby: Floats) -> tuple[Floats, Floats, Floats]:
        """USD of runs with so many hours paid and on the clock on spot, and on the standby; of it, the machines of either leg."""
        pair = self.pairs
        spot_usd, standby_usd = pair.usd_per_hour * paid, pair.standby_usd_per_hour * standby
        storage_usd = pair.storage_usd_per_hour * on_clock + pair.standby_storage_usd_per_hour * standby
        fixed_usd = pair.fixed_usd + np.where(standby > 0, pair.standby_fixed_usd, 0.0)
        return fixed_usd + spot_usd + standby_usd + storage_usd, spot_usd, standby_usd

    def _mixed(self, cost: tuple[Floats, Floats, Floats], masses: Floats) -> "_Kind":
        """These runs [z, n] over the finer shares."""
        usd, spot_usd, standby_usd = (self._fine(values).ravel() for values in cost)
        return _Kind(usd, spot_usd, standby_usd, self._fine_masses(masses))

    def _paid_slack(self, slack: Floats, paid_alone: Floats) -> Floats:
        """The part of their slack that runs have paid for which call, so that all paid hours have their mean: [z].

        `slack` [z, blocks] is that of a call in each block, `paid_alone` [z] the mean paid hours of lost ones on spot alone, times
        the probability of passing all.
        """
        runs, schedule = self.runs, self.schedule
        hours = schedule.passed * runs.losses.paid_hours - schedule.failed * runs.losses.paid_pause_hours
        hours = hours - schedule.whole * runs.count * runs.length - paid_alone
        hours = hours - runs.length * np.vecdot(schedule.called, schedule.done)
        return np.asarray(np.clip(hours / np.maximum(np.vecdot(schedule.called, slack), _NO_SLACK), 0.0, 1.0))


class _Kind(NamedTuple):
    """USD of runs of one kind, of it the machines of either leg, and the weights of these runs: all [n]."""

    usd: Floats
    spot_usd: Floats
    standby_usd: Floats
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Costs:
    """USD of runs with a standby, ascending, with their weights, `whole` in all; of it, the machines of either leg."""

    usd: Floats
    weights: Floats
    whole: float
    spot_usd: Floats
    standby_usd: Floats

    def quantile(self, probability: float) -> float:
        """The USD that are not exceeded with `probability`, at expected prices."""
        return float(np.interp(probability * self.whole, np.cumsum(self.weights) - self.weights / 2, self.usd))

    def equally_likely(self, values: Floats) -> Floats:
        """The means of these values, one per cost, over `RUNS` equally likely runs from the cheapest to the dearest."""
        ends = np.linspace(0.0, self.weights.sum(), RUNS + 1)
        done = np.concatenate(([0.0], np.cumsum(self.weights)))
        summed = np.interp(ends, done, np.concatenate(([0.0], np.cumsum(self.weights * values))))
        return np.diff(summed) / np.diff(ends)

    def run_costs(self, spot: Floats | None, standby: Floats | None) -> list[RunCosts]:
        """The costs of both legs at these relative prices, `relative_prices` of their offers."""
        usd, spot_usd, standby_usd = (
            self.equally_likely(values) for values in (self.usd, self.spot_usd, self.standby_usd)
        )
        return [
            RunCosts(machines_usd=spot_usd, other_usd=usd - spot_usd - standby_usd, price=spot),
            RunCosts(machines_usd=standby_usd, other_usd=np.zeros(RUNS), price=standby),
        ]
