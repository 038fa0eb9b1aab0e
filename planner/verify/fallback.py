"""What a plan on interruptible machines says of its fallback: the machine, its hours, the last moments, the chance.

A standby that does all work in U hours and begins c hours after it is called is in time where, with one interval I
between checkpoints before it can be called, set-up + I + c + f U <= D for the factor f by which the estimate errs. By
the hour t, 1 - (D - I - c - t) / U of the work must be saved. How often it is called and what that adds comes from the
model by moments that the planner takes as well; that no other standby would be better is believed.
"""

import math

import numpy as np

from planner.spot.net import finely
from planner.verify.context import Context
from planner.verify.course import STEPS, Part, kin
from planner.verify.ledger import Path
from planner.verify.net import MODEL, pairs_of, switch, terms_of

AT: Path = ("fallback",)
CHECK = "alternatives"
#: Figures of the document are rounded to nine digits, and the planner's normal distribution is good to 7.5e-8.
ROUNDED = 3e-7
FIGURES = (
    "hours_with_goodput",
    "ready_hours",
    "switch_by",
    "switch_by_hours",
    "switch_share",
    "probability",
    "deadline_probability",
    "extra_usd",
)


def fallback(context: Context, alone: Part | None, cost_micros: int) -> None:
    """Tick off everything that a plan on one configuration says of it; nothing where there is none."""
    ledger, deadline = context.ledger, context.claim.job.deadline_hours
    if not ledger.has(*AT):
        return
    named = context.counter.named(ledger, AT)
    standby = None if named is None else Part(named, context.estimator.row(named.lot.machine, named.nodes), STEPS)
    fits = alone is not None and standby is not None and _may_fall_back(context, alone, standby)
    if alone is None or standby is None or not fits:
        ledger.holds("requirements", (*AT, "instance_type"), False, None, "nothing that this plan can fall back to")
        ledger.tick(CHECK, *((*AT, name) for name in FIGURES))
        return
    pairs, terms = pairs_of(context, alone, standby), terms_of(context)
    seen, work, why = finely(pairs, terms), standby.row.hours_with_goodput, "not what the model says of this pair"
    ready = float(seen.interval_hours[0]) + float(pairs.checkpoint_hours[0]) + float(pairs.changeover_hours[0])
    ledger.is_number("estimates", (*AT, "hours_with_goodput"), work, "not the estimator's hours")
    ledger.is_number(CHECK, (*AT, "ready_hours"), ready, "not an interval and the changeover", relative=MODEL)
    ledger.is_number(CHECK, (*AT, "probability"), float(seen.switch_probability[0]), why, relative=MODEL)
    ledger.is_number(CHECK, (*AT, "deadline_probability"), float(seen.in_time[0]), why, relative=MODEL)
    usd = float(seen.usd[0])
    extra = max(round(usd * 1e6) - cost_micros, 0) if np.isfinite(usd) else 0
    ledger.is_money(CHECK, (*AT, "extra_usd"), extra, why, relative=1e-5)
    last = (deadline or 0.0) - ready
    switch(context, AT, max(last - work / 2, 0.0), last, work)
    chance = _in_time(last - terms.setup_hours, work, standby.row.log_sigma)
    stated = ledger.number(*AT, "deadline_probability")
    ledger.holds("finish", (*AT, "deadline_probability"), abs(stated - chance) < ROUNDED, chance, "not that of U")


def _may_fall_back(context: Context, alone: Part, standby: Part) -> bool:
    """Whether the pair is one that the model speaks of: a standby that is there at once, allowed, and can be moved to."""
    lot = standby.named.lot
    able = not standby.row.reason and not lot.reason and not lot.broken and not lot.rate
    return able and bool(alone.named.lot.rate) and kin(alone) == kin(standby) and _has_deadline(context)


def _has_deadline(context: Context) -> bool:
    return context.claim.job.deadline_hours is not None


def _in_time(room: float, work: float, sigma: float) -> float:
    """P(f x work <= room)."""
    if room <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if work <= room else 0.0
    return 0.5 * math.erfc(-math.log(room / work) / sigma / math.sqrt(2))
