"""What a plan on interruptible machines says of its fallback: the machine, its hours, the last moments, the chance.

A standby that does all work in U hours and begins c hours after it is called is in time where, with one interval I
between checkpoints before it can be called, set-up + I + c + f U <= D for the factor f by which the estimate errs. By
the hour t, 1 - (D - I - c - t) / U of the work must be saved. How often it is called and what that adds is advice: it
changes no figure of the plan and is held to what it must lie between.
"""

import math
from datetime import timedelta

from planner.verify.context import Context
from planner.verify.ledger import Path
from planner.verify.named import second_text

AT: Path = ("fallback",)
#: Figures of the document are rounded to nine digits, and the planner's normal distribution is good to 7.5e-8.
_ROUNDED = 3e-7


def fallback(context: Context) -> None:
    """Tick off everything that the document says of it; nothing where there is none."""
    ledger, claim = context.ledger, context.claim
    if not ledger.has(*AT):
        return
    deadline, named = claim.job.deadline_hours, context.counter.named(ledger, AT)
    ledger.holds("requirements", AT, deadline is not None, None, "there is no deadline to fall behind")
    if named is None or deadline is None:
        ledger.tick("requirements", *((*AT, name) for name in ledger.keys(*AT)))
        return
    row = context.estimator.row(named.lot.machine, named.nodes)
    ledger.is_number("estimates", (*AT, "hours_with_goodput"), row.hours_with_goodput, "not the estimator's hours")
    ready, at = ledger.number(*AT, "ready_hours"), ledger.number(*AT, "switch_by_hours")
    least = claim.settings.setup_hours
    ledger.tick("finish", (*AT, "ready_hours"), (*AT, "switch_by_hours"))
    ledger.holds("finish", (*AT, "ready_hours"), least <= ready <= deadline, least, "less than the standby's set-up")
    saved = min(max(1 - (deadline - ready - at) / row.hours_with_goodput, 0.0), 1.0)
    why = "not what must be saved by then"
    ledger.holds(
        "finish", (*AT, "switch_share"), abs(ledger.number(*AT, "switch_share") - saved) < _ROUNDED, saved, why
    )
    ledger.tick("finish", (*AT, "switch_share"))
    moment = second_text(claim.start + timedelta(hours=at))
    ledger.is_same("finish", (*AT, "switch_by"), moment, "not the start and the hours")
    chance = _in_time(deadline - claim.settings.setup_hours - ready, row.hours_with_goodput, row.log_sigma)
    stated = ledger.number(*AT, "deadline_probability")
    ledger.tick("finish", (*AT, "deadline_probability"), (*AT, "probability"), (*AT, "extra_usd"))
    ledger.holds("finish", (*AT, "deadline_probability"), abs(stated - chance) < _ROUNDED, chance, "not that of U")
    often = ledger.number(*AT, "probability")
    ledger.holds(
        "finish", (*AT, "probability"), 1 - chance - _ROUNDED <= often <= 1, 1 - chance, "less often than late"
    )
    ledger.holds("finish", (*AT, "extra_usd"), ledger.micros(*AT, "extra_usd") >= 0, 0, "a standby costs something")


def _in_time(room: float, work: float, sigma: float) -> float:
    """P(f x work <= room)."""
    if room <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if work <= room else 0.0
    return 0.5 * math.erfc(-math.log(room / work) / sigma / math.sqrt(2))
