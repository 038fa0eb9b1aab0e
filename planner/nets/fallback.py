"""What stands behind a plan on interruptible machines that is sure enough by itself: where to go, and by when.

Priced by moments: it is advice beside a plan whose own figures do not rest on it. Named is the standby beside which the run
is expected to cost least, in whole micro-dollars; of those that cost the same, the one that does all the work for least.

A call that never pays (`_Alone.may_pay`) makes the run by itself the least that it can cost with any standby. So the one
that does all the work for least of those sure to be in time is priced first: if calls of it add less than is stated, it is
the one to be named, and the others need no price.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.answer import Fallback
from planner.candidates.gather import Candidates
from planner.cost.expected_billing import mean_factor
from planner.nets.course import share_needed
from planner.nets.offers import Offers, starts, worth_standing_by
from planner.phase import phase
from planner.spot.net import (
    EVERY,
    FURTHEST,
    NetTerms,
    Outcomes,
    Pairs,
    intervals,
    largest_in_time,
    outcomes,
    priced_finely,
)
from planner.spot.net_alone import priced_alone

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Half of the smallest amount that is stated: what is less does not show.
_UNSEEN_USD = 0.5e-6
#: What the normal distribution may be off by, in deviations.
_ROUNDED = 1e-6


def fallback(found: Candidates, chosen: int, cost_micros: int) -> Fallback | None:
    """What stands behind a plan on interruptible machines that is sure enough by itself; None without a deadline or standby."""
    job = found.question.job
    if job.deadline_hours is None or job.constraints.max_phases < 2 or not found.table.cluster_rate[chosen] > 0:
        return None
    ways = starts(found, np.arange(len(found.table)) == chosen)
    if not ways:
        return None
    start, marks = ways[0]
    offers = Offers(found, marks, start, beaten=True)
    if not offers or len(offers.spots) != 1:
        return None
    pairs = offers.beside_the_only_spot()
    best = _best(offers, pairs)
    # A price without end: not in time with the confidence asked, by a rounding of what was taken for it.
    if best is None or not np.isfinite(best[1].usd[0]):
        return None
    at_best, seen = best
    length = float(seen.interval_hours[0] + pairs.checkpoint_hours[0])
    ready = length + float(pairs.changeover_hours[at_best])
    last = job.deadline_hours - ready
    work = float(pairs.standby_work_hours[at_best])
    at = max(last - work / 2, 0.0)
    return Fallback(
        standby=phase(found, offers.columns.table, int(offers.standbys[at_best])),
        ready_hours=ready,
        switch_by_hours=at,
        switch_share=share_needed(at, last, work),
        probability=float(seen.switch_probability[0]),
        in_time=float(seen.in_time[0]),
        extra=max(round(float(seen.usd[0]) * 1e6) - cost_micros, 0),
    )


def _best(offers: Offers, pairs: Pairs) -> tuple[int, Outcomes] | None:
    """The pair of a spot run to be named, and what comes of it; None if none is in time."""
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
    some = some[np.isin(offers.standbys[some], worth_standing_by(offers.columns, offers.standbys[some]))]
    usd = outcomes(pairs.take(some), terms, which).usd
    if not np.isfinite(usd).any():
        return None
    best = int(some[np.lexsort((all_usd[some], np.rint(usd * 1e6)))[0]])
    if first is not None and best == first[0]:
        return first
    seen = priced_finely(pairs.take(slice(best, best + 1)), terms, which).at_best(terms.confidence)
    # Prices by fewer points only said whom to look at: where the first costs no more by many, it stays.
    return first if first is not None and first[1].usd[0] <= seen.usd[0] else (best, seen)


def _all_work_usd(pairs: Pairs) -> Floats:
    """What all the work is expected to come to on each standby, were it called at once: [pairs]."""
    by_hour = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
    work_hours = pairs.standby_work_hours * mean_factor(pairs.standby_log_sigma)
    return np.asarray((pairs.changeover_hours + work_hours) * by_hour + pairs.standby_fixed_usd)


def _largest_in_time(pairs: Pairs, terms: NetTerms) -> Floats:
    """The largest deviation of the estimate at which each standby of a spot run is in time, at the shortest interval."""
    shortest = intervals(pairs.take(slice(1)))[0, -1]
    room = terms.deadline_hours - terms.setup_hours - shortest - pairs.checkpoint_hours - pairs.changeover_hours
    return largest_in_time(room, pairs.standby_work_hours, pairs.standby_log_sigma)


def _late_usd(largest: Floats, all_usd: Floats) -> Floats:
    """No more than what runs too late for their standby, those beyond the deviation `largest`, may add to the bill: [pairs].

    The normal distribution's tail is more than phi(z) / (z + 1) above 0.
    """
    above = np.maximum(largest, 0.0)
    return all_usd * np.exp(-0.5 * above * above) / math.sqrt(2 * math.pi) / (above + 1.0)


class _Alone(NamedTuple):
    """A spot run beside a standby that is sure to be in time: what comes of it, and the least by itself.

    `added_usd` is the most that calls add to it; `floors_usd`, at every interval tried, is no more than what the run costs by
    itself, since a call adds no more than all the work on the standby.
    """

    pair: Pairs
    seen: Outcomes
    added_usd: float
    interval_hours: Floats
    floors_usd: Floats

    @staticmethod
    def of(pair: Pairs, terms: NetTerms, all_usd: float) -> "_Alone":
        priced = priced_alone(pair, terms)
        seen, legs = priced.at_best(terms.confidence), priced.legs
        added = float(seen.switch_probability[0]) * all_usd
        return _Alone(pair, seen, added, priced.interval_hours[0], (legs.usd - legs.switch_probability * all_usd)[0])

    @property
    def worth_trying(self) -> Ints:
        """The intervals at which a run that loses by every call may still cost less than this one."""
        return np.flatnonzero(self.floors_usd < self.seen.usd)

    def may_pay(self, pairs: Pairs, terms: NetTerms) -> bool:
        """Whether calls of some standby may bring the bill below that of this run.

        A call saves a pause, for the changeover and what the rest of the work, an interval at least, costs more on the
        standby than on spot. It always may where all of the work costs less.
        """
        rate, by_hour = float(self.pair.rate[0]), pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
        spot_usd, storage_usd = float(self.pair.usd_per_hour[0]), float(self.pair.storage_usd_per_hour[0])
        sigma, work_hours = float(self.pair.log_sigma[0]), float(self.pair.work_hours[0])
        # Within the deviations looked at, the error of either estimate may favour the standby by this much: e^(sigma_m z)
        # times its estimate stands against e^(sigma z - sigma^2 / 2) times the expected cost of the run by itself.
        favour = FURTHEST * np.abs(pairs.standby_log_sigma - sigma) - sigma**2 / 2
        work_usd = pairs.standby_work_hours * by_hour * np.exp(-favour)
        dearer = work_usd[:, None] / self.floors_usd - 1.0
        if (dearer < 0).any():
            return True
        restarts = math.exp(rate * terms.restart_hours)
        pause_usd = (restarts - 1.0) / rate * (spot_usd + storage_usd) + terms.wait_hours * restarts * storage_usd
        # Runs are cut into equal segments: of half the interval at least, or of the whole run.
        segment_hours = np.minimum(self.interval_hours / 2, work_hours * math.exp(-FURTHEST * sigma))
        segment_usd = segment_hours * spot_usd
        called_usd = pairs.changeover_hours * by_hour + pairs.standby_fixed_usd
        saved = pause_usd - called_usd[:, None] - segment_usd * dearer
        return bool(((saved > 0) & (self.floors_usd - saved < float(self.seen.usd[0]) - _UNSEEN_USD)).any())
