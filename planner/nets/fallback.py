"""What stands behind a plan on interruptible machines that is sure enough by itself: where to go, and by when.

Priced by moments: it is advice beside a plan whose own figures do not rest on it. A standby that is never called adds
nothing to the plan's bill, and where every other does the work for more than the whole run costs, and is no cheaper to
bring up than the pause after a preemption, a call never pays either: the first of the order that is never called is the
best then, and the others need no price.
"""

import math

import numpy as np
from numpy.typing import NDArray

from planner.answer import Fallback
from planner.candidates.gather import Candidates
from planner.nets.course import share_needed
from planner.nets.offers import Offers, starts
from planner.phase import phase
from planner.spot.net import FURTHEST, NetTerms, Outcomes, Pairs, finely, outcomes
from planner.spot.net_search import least_usd

#: Standbys of the least bounds that are priced at most, and of these the ones that are priced first.
_PROMISING, _FIRST = 32, 8


def fallback(found: Candidates, chosen: int, cost_micros: int) -> Fallback | None:
    """What stands behind a plan on interruptible machines that is sure enough by itself; None without a deadline or standby."""
    job = found.question.job
    if job.deadline_hours is None or job.constraints.max_phases < 2 or not found.table.cluster_rate[chosen] > 0:
        return None
    ways = starts(found, np.arange(len(found.table)) == chosen)
    if not ways:
        return None
    start, marks = ways[0]
    offers = Offers(found, marks, start)
    if not offers or len(offers.spots) != 1:
        return None
    offered = offers.offered
    bound = least_usd(offered, np.zeros(1, np.int64), offers.terms)[0]
    # A standby without a bound cannot be in time with the confidence asked.
    standbys = np.argsort(bound, kind="stable")[: min(_PROMISING, int(np.isfinite(bound).sum()))]
    pairs = offered.pairs(np.zeros(len(standbys), np.int64), standbys)
    best = _best(pairs, offers.terms)
    if best is None:
        return None
    at_best, seen = best
    index = int(offers.standbys[standbys[at_best]])
    length = float(seen.interval_hours[0] + pairs.checkpoint_hours[0])
    ready = length + float(pairs.changeover_hours[at_best])
    last = job.deadline_hours - ready
    work = float(pairs.standby_work_hours[at_best])
    at = max(last - work / 2, 0.0)
    return Fallback(
        standby=phase(found, offers.columns.table, index),
        ready_hours=ready,
        switch_by_hours=at,
        switch_share=share_needed(at, last, work),
        probability=float(seen.switch_probability[0]),
        in_time=float(seen.in_time[0]),
        extra=max(round(float(seen.usd[0]) * 1e6) - cost_micros, 0),
    )


def _best(pairs: Pairs, terms: NetTerms) -> tuple[int, Outcomes] | None:
    """The cheapest of a spot's pairs, which come in the order of their bounds, and what comes of it; None if none is in time."""
    if not len(pairs):
        return None
    first = finely(pairs.take(slice(1)), terms)
    pays = _may_pay(pairs, terms, float(first.usd[0]))
    if not pays and _never_called(first)[0]:
        return 0, first
    usd = np.full(len(pairs), np.inf)
    for some in (slice(_FIRST), slice(_FIRST, None)):
        seen = outcomes(pairs.take(some), terms)
        usd[some] = seen.usd
        if not pays and _never_called(seen).any():
            break
    if not np.isfinite(usd).any():
        return None
    best = int(np.argmin(usd))
    return best, first if best == 0 else finely(pairs.take(slice(best, best + 1)), terms)


def _never_called(seen: Outcomes) -> NDArray[np.bool_]:
    """The pairs that end on spot, in time, whatever happens: to the last digit."""
    return np.asarray((seen.switch_probability == 0.0) & (seen.in_time == 1.0))


def _may_pay(pairs: Pairs, terms: NetTerms, usd: float) -> bool:
    """Whether some standby may be called with a gain, by its work or its changeover, where the run by itself costs `usd`."""
    by_hour = pairs.standby_usd_per_hour + pairs.standby_storage_usd_per_hour
    # Within the deviations looked at, the error of either estimate may favour the standby by this much.
    error = FURTHEST * np.abs(pairs.standby_log_sigma - pairs.log_sigma)
    mean = (pairs.standby_log_sigma**2 - pairs.log_sigma**2) / 2
    rate = float(pairs.rate[0])
    pause_usd = math.expm1(rate * terms.restart_hours) / rate * float(pairs.usd_per_hour[0])
    work_usd = pairs.standby_work_hours * by_hour * np.exp(-error - mean)
    return bool(((work_usd < usd) | (pairs.changeover_hours * by_hour < pause_usd)).any())
