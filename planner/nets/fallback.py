"""What stands behind a plan on interruptible machines that is sure enough by itself: where to go, and by when.

Priced by moments: it is advice beside a plan whose own figures do not rest on it.
"""

import numpy as np

from planner.answer import Fallback
from planner.candidates.gather import Candidates
from planner.nets.course import share_needed
from planner.nets.offers import Offers, starts
from planner.phase import phase
from planner.spot.net import finely, outcomes
from planner.spot.net_search import least_usd

#: Standbys of the least bounds that are priced.
_PROMISING = 32


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
    allowed = np.flatnonzero(offers.offered.allowed[0])
    bound = least_usd(offers.offered, np.zeros(1, np.int64), offers.terms)[0, allowed]
    standbys = allowed[np.argsort(bound, kind="stable")[:_PROMISING]]
    pairs = offers.offered.pairs(np.zeros(len(standbys), np.int64), standbys)
    seen = outcomes(pairs, offers.terms)
    if not len(standbys) or not np.isfinite(seen.usd).any():
        return None
    best = int(np.argmin(seen.usd))
    index = int(offers.standbys[standbys[best]])
    pair = pairs.take(np.array([best]))
    seen = finely(pair, offers.terms)
    length = float(seen.interval_hours[0] + pair.checkpoint_hours[0])
    ready = length + float(pair.changeover_hours[0])
    last = job.deadline_hours - ready
    work = float(pair.standby_work_hours[0])
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
