"""The standby named beside a plan on interruptible machines that already meets the deadline: where to go, and by when.

It is advice: the plan's own figures do not depend on it, so moments are accurate enough to choose it. The standby with the
least expected cost of the run, in whole micro-dollars, is named; of equal ones the one that does all the work for least.
Its probability of a call and its cost are stated from the whole distribution of the losses: where few preemptions use the
slack up, moments miss a sixth of the calls. Moments are enough where it is proven that a call has a probability of at most
0.1 % and that all calls together cost at most half a cent.

If calling a standby never saves money (`_Alone.may_pay`), no standby makes the run cheaper than the run alone. So of the
standbys that are sure to meet the deadline, the one that does all the work for least is priced first. If its calls add
less than the smallest stated amount, it is named, and the others need no price.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.cost.billing_rounding import mean_factor
from gpuplan.planner.model.outcome import StandbyChoice
from gpuplan.planner.strategies.schedule import phase
from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun
from gpuplan.planner.strategies.standby.normal_cells import COARSE, FINE, Cells
from gpuplan.planner.strategies.standby.spot_only_runs import priced_alone
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_bound import least
from gpuplan.planner.strategies.standby.standby_pairs import Offers, starts, worth_a_standby
from gpuplan.planner.strategies.standby.standby_schedule import share_needed
from gpuplan.planner.strategies.standby.standby_switching import (
    EVERY,
    FURTHEST,
    Outcomes,
    intervals,
    largest_in_time,
    outcomes,
    priced_finely,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Half of the smallest amount that is stated: less than this does not show.
_UNSEEN_USD = 0.5e-6
#: Half a cent, half of the smallest amount that answers show: the most that calls stated by moments may cost.
_UNSEEN_CALLS_USD = 0.005
#: The largest probability of a call that is stated by moments. It is a third of what `verify` allows beside replayed runs.
_UNSEEN_CHANCE = 0.001
#: Error of the normal distribution function, in deviations.
_ROUNDED = 1e-6


def fallback(candidates: Candidates, chosen: int, cost_micros: int) -> StandbyChoice | None:
    """The standby beside a plan on interruptible machines that meets the deadline; None without a deadline or a standby."""
    job = candidates.question.job
    if job.deadline_hours is None or job.constraints.max_phases < 2 or not candidates.table.cluster_rate[chosen] > 0:
        return None
    ways = starts(candidates, np.arange(len(candidates.table)) == chosen)
    if not ways:
        return None
    delay_hours, marks = ways[0]
    offers = Offers(candidates, marks, delay_hours, beaten=True)
    if not offers or len(offers.spots) != 1:
        return None
    pairs = offers.beside_the_only_spot()
    best = _best(offers, pairs)
    # Infinite cost: rounding put this pair just below the requested confidence.
    if best is None or not np.isfinite(best[1].usd[0]):
        return None
    at_best, seen = best
    probability, usd = _exactly(pairs.take(slice(at_best, at_best + 1)), offers.terms, seen)
    length = float(seen.interval_hours[0] + pairs.checkpoint_hours[0])
    ready = length + float(pairs.changeover_hours[at_best])
    last = job.deadline_hours - ready
    work = float(pairs.standby_work_hours[at_best])
    at = max(last - work / 2, 0.0)
    return StandbyChoice(
        standby=phase(candidates, offers.columns.table, int(offers.standbys[at_best])),
        ready_hours=ready,
        switch_by_hours=at,
        switch_share=share_needed(at, last, work),
        probability=probability,
        in_time=float(seen.in_time[0]),
        extra=max(round(usd * 1e6) - cost_micros, 0),
    )


def _exactly(pair: Pairs, terms: StandbyTerms, seen: Outcomes) -> tuple[float, float]:
    """The probability of a call and the expected cost of a pair with this outcome.

    A call adds at most the cost of all the work on the standby: nothing where the machines are paid already.
    """
    probability, seen_usd = float(seen.switch_probability[0]), float(seen.usd[0])
    unseen = min(_UNSEEN_CHANCE, _UNSEEN_CALLS_USD / max(float(_all_work_usd(pair)[0]), _UNSEEN_CALLS_USD))
    if probability == 0:
        return 0.0, seen_usd
    chance = unseen if probability < unseen else 0.0
    run = PricedRun.if_called(pair, terms, float(seen.interval_hours[0]), chance)
    return (probability, seen_usd) if run is None else (float(run.legs.switch_probability[0, 0]), run.usd)


def _best(offers: Offers, pairs: Pairs) -> tuple[int, Outcomes] | None:
    """The index of the pair to name and its outcome; None if no pair meets the deadline."""
    terms, all_usd, largest = offers.terms, _all_work_usd(pairs), _largest_in_time(pairs, offers.terms)
    some = np.flatnonzero(largest >= NormalDist().inv_cdf(terms.confidence) - _ROUNDED)
    sure = some[_late_usd(largest, all_usd)[some] < _UNSEEN_USD]
    first: tuple[int, Outcomes] | None = None
    which: Ints | slice = EVERY
    if len(sure):
        at = int(sure[np.argmin(all_usd[sure])])
        alone = _Alone.of(pairs.take(slice(at, at + 1)), terms, float(all_usd[at]))
        first, pays = (at, alone.seen), alone.may_pay(pairs if len(some) == len(pairs) else pairs.take(some), terms)
        if alone.added_usd < _UNSEEN_USD and not pays:
            return first
        which = EVERY if pays else alone.worth_trying
    most_usd = np.inf if first is None else float(first[1].usd[0])
    some = _bounded(pairs, terms, COARSE, some, most_usd)
    some = some[np.isin(offers.standbys[some], worth_a_standby(offers.columns, offers.standbys[some]))]
    some = _bounded(pairs, terms, FINE, some, most_usd)
    usd = outcomes(pairs.take(some), terms, which).usd
    if not np.isfinite(usd).any():
        return first
    best = int(some[np.lexsort((all_usd[some], np.rint(usd * 1e6)))[0]])
    if first is not None and best == first[0]:
        return first
    seen = priced_finely(pairs.take(slice(best, best + 1)), terms, which).at_best(terms.confidence)
    # Fewer points only ranked the pairs: keep the first one unless the finely priced one is cheaper.
    return first if first is not None and first[1].usd[0] <= seen.usd[0] else (best, seen)


def _bounded(pairs: Pairs, terms: StandbyTerms, cells: Cells, some: Ints, most_usd: float) -> Ints:
    """Those of `some` pairs of one spot run whose lower bound is at most `most_usd`."""
    return some[least(pairs.take(some).briefly(), terms, cells) <= most_usd]


def _all_work_usd(pairs: Pairs) -> Floats:
    """Expected cost of all the work on each standby, if called at once: [pairs]."""
    by_hour = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
    work_hours = pairs.standby_work_hours * mean_factor(pairs.standby_log_sigma)
    return np.asarray((pairs.changeover_hours + work_hours) * by_hour + pairs.standby_fixed_usd)


def _largest_in_time(pairs: Pairs, terms: StandbyTerms) -> Floats:
    """The largest deviation of the estimate at which each standby of a spot run meets the deadline, at the shortest interval."""
    shortest = intervals(pairs.take(slice(1)))[0, -1]
    room = terms.deadline_hours - pairs.setup_hours - shortest - pairs.checkpoint_hours - pairs.changeover_hours
    return largest_in_time(room, pairs.standby_work_hours, pairs.standby_log_sigma)


def _late_usd(largest: Floats, all_usd: Floats) -> Floats:
    """A lower bound on what runs too late for their standby (deviations above `largest`) add to the cost: [pairs].

    The normal tail is above phi(z) / (z + 1) for z >= 0.
    """
    above = np.maximum(largest, 0.0)
    return all_usd * np.exp(-0.5 * above * above) / math.sqrt(2 * math.pi) / (above + 1.0)


class _Alone(NamedTuple):
    """A spot run beside a standby that is sure to meet the deadline: its outcome, and a lower bound without calls.

    `added_usd` is the most that calls add to the cost. `floors_usd`, at every interval tried, is a lower bound on the run
    without calls, since a call adds at most all the work on the standby.
    """

    pair: Pairs
    seen: Outcomes
    added_usd: float
    interval_hours: Floats
    floors_usd: Floats

    @staticmethod
    def of(pair: Pairs, terms: StandbyTerms, all_usd: float) -> "_Alone":
        priced = priced_alone(pair, terms)
        seen, legs = priced.at_best(terms.confidence), priced.legs
        added = float(seen.switch_probability[0]) * all_usd
        return _Alone(pair, seen, added, priced.interval_hours[0], (legs.usd - legs.switch_probability * all_usd)[0])

    @property
    def worth_trying(self) -> Ints:
        """The intervals at which a run that loses by every call may still cost less than this one."""
        return np.flatnonzero(self.floors_usd < self.seen.usd)

    def may_pay(self, pairs: Pairs, terms: StandbyTerms) -> bool:
        """Whether calls of some standby may bring the cost below that of this run.

        A call saves a pause, with the longest waits considered, up to the deadline. It costs the changeover and the price
        difference of the remaining work, at least an interval. A
        call may always pay where all of the work costs less on the standby.
        """
        rate, by_hour = float(self.pair.rate[0]), pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
        spot_usd, storage_usd = float(self.pair.usd_per_hour[0]), float(self.pair.storage_usd_per_hour[0])
        sigma, work_hours = float(self.pair.log_sigma[0]), float(self.pair.work_hours[0])
        # Within the deviations considered, the error of either estimate may favour the standby by this much: e^(sigma_m z)
        # times its estimate, against e^(sigma z - sigma^2 / 2) times the expected cost of the run alone.
        favour = FURTHEST * np.abs(pairs.standby_log_sigma - sigma) - sigma**2 / 2
        work_usd = pairs.standby_work_hours * by_hour * np.exp(-favour)
        dearer = work_usd[:, None] / self.floors_usd - 1.0
        if (dearer < 0).any():
            return True
        restarts = math.exp(rate * terms.restart_hours)
        wait_hours = float(self.pair.waits_at(np.full(1, FURTHEST))[0, 0]) * restarts
        waiting_usd = min(wait_hours, terms.deadline_hours) * storage_usd
        pause_usd = (restarts - 1.0) / rate * (spot_usd + storage_usd) + waiting_usd
        # Runs are cut into equal segments: of half the interval at least, or of the whole run.
        segment_hours = np.minimum(self.interval_hours / 2, work_hours * math.exp(-FURTHEST * sigma))
        segment_usd = segment_hours * spot_usd
        called_usd = pairs.changeover_hours * by_hour + pairs.standby_fixed_usd
        saved = pause_usd - called_usd[:, None] - segment_usd * dearer
        return bool(((saved > 0) & (self.floors_usd - saved < float(self.seen.usd[0]) - _UNSEEN_USD)).any())
