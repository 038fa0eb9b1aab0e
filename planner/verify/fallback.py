"""What a plan on interruptible machines says of its fallback: the machine, its hours, the last moments, the chance.

A standby that does all work in U hours and begins c hours after it is called is in time where, with one interval I
between checkpoints before it can be called, set-up + I + c + f U <= D for the factor f by which the estimate errs. By
the hour t, 1 - (D - I - c - t) / U of the work must be saved. How often it is called and what that adds is held against
replayed runs of the rule; that no other standby would be better is believed.
"""

import math

from planner.verify.context import Context
from planner.verify.course import STEPS, Part, kin
from planner.verify.ledger import Path
from planner.verify.phase import LOOSE
from planner.verify.replay import SIGMAS, figures
from planner.verify.standby import Standby, nearest_interval, pair_of, rule_of, switch, within

AT: Path = ("fallback",)
CHECK = "alternatives"
#: The planner's normal distribution is good to 7.5e-8, and a figure of the document to nine digits.
ROUNDED_CHANCE = 3e-7
#: The planner prices a fallback by moments: most that this was found to be off by, of the cost, rounded up.
EXTRA_SHARE = 0.01
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
    ledger = context.ledger
    if not ledger.has(*AT):
        return
    named = context.counter.named(ledger, AT)
    standby = None if named is None else Part(named, context.estimator.row(named.lot.machine, named.nodes), STEPS)
    fits = alone is not None and standby is not None and _may_fall_back(context, alone, standby)
    if alone is None or standby is None or not fits:
        ledger.holds("requirements", (*AT, "instance_type"), False, None, "nothing that this plan can fall back to")
        ledger.tick(CHECK, *((*AT, name) for name in FIGURES))
        return
    pair, rule, work = pair_of(context, alone, standby), rule_of(context), standby.row.hours_with_goodput
    beside = pair.checkpoint_hours + pair.changeover_hours
    stated = ledger.number(*AT, "ready_hours")
    plan = Standby(alone, standby, pair, rule, nearest_interval(context, alone, stated - beside))
    ready, last = plan.interval_hours + beside, plan.last_hours
    ledger.is_number("estimates", (*AT, "hours_with_goodput"), work, "not the estimator's hours")
    ledger.is_number(CHECK, (*AT, "ready_hours"), ready, "not an interval and the changeover", relative=LOOSE)
    switch(context, AT, max(last - work / 2, 0.0), last, work)
    chance, chance_at = plan.in_time(), (*AT, "deadline_probability")
    near = abs(ledger.number(*chance_at) - chance) < ROUNDED_CHANCE
    ledger.tick("finish", chance_at)
    ledger.holds("finish", chance_at, near, chance, "not that of U")
    _called(context, plan, cost_micros)


def _called(context: Context, plan: Standby, cost_micros: int) -> None:
    """How often the standby is called, and what it adds: what both legs cost on average, above the plan, if that is more."""
    ledger, extra_at = context.ledger, (*AT, "extra_usd")
    calls, extra = ledger.number(*AT, "probability"), ledger.micros(*extra_at)
    ledger.tick(CHECK, (*AT, "probability"), extra_at)
    found = figures(plan.pair, plan.rule, plan.interval_hours, context.claim.job.confidence)
    whole = plan.pair.changeover_hours + plan.pair.standby_work_hours
    within(context, (*AT, "probability"), "calls", calls, found.calls.of_event(calls, 1.0), segments=math.inf)
    usd = found.usd(plan.pair, whole_hours=whole, calls=calls)
    dearest = max(usd.value * (1 + EXTRA_SHARE) + SIGMAS * usd.error - cost_micros / 1e6, 0.0)
    least = max(usd.value * (1 - EXTRA_SHARE) - SIGMAS * usd.error - cost_micros / 1e6, 0.0)
    steps = 1e-6 + sum(_step_usd(each) for each in (plan.spot, plan.standby))
    ok = least - steps <= extra / 1e6 <= dearest + steps
    why = f"replayed runs cost {usd.value:.6g} +- {usd.error:.2g} USD with it"
    ledger.holds("replayed", extra_at, ok, max(usd.value - cost_micros / 1e6, 0.0), why)


def _step_usd(part: Part) -> float:
    """What the nodes of a part cost for its shortest bill: its hours are billed up to that."""
    lot, _, nodes = part.named
    least = max(lot.kind.billing_step_seconds, lot.kind.billing_minimum_seconds) / 3600
    return nodes * lot.micros / 1e6 * least


def _may_fall_back(context: Context, alone: Part, standby: Part) -> bool:
    """Whether the pair is one that the model speaks of: a standby that is there at once, allowed, and can be moved to."""
    lot = standby.named.lot
    able = not standby.row.reason and not lot.reason and not lot.broken and not lot.rate
    return able and bool(alone.named.lot.rate) and kin(alone) == kin(standby) and _has_deadline(context)


def _has_deadline(context: Context) -> bool:
    return context.claim.job.deadline_hours is not None
