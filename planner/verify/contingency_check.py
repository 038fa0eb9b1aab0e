"""Check of the standby that a spot plan names as fallback: its machine, hours, latest call and probability.

A standby that does all work in U hours and is ready c hours after its call meets the deadline D where, with one
checkpoint interval I before it can be called, set-up + I + c + f U <= D for the factor f of the estimate's error. By
hour t the share 1 - (D - I - c - t) / U of the work must be saved. The probability of a call and its cost are
compared with replayed runs of the rule. The check does not compare other standbys.
"""

import math

from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.phase_check import LOOSE
from gpuplan.planner.verify.replay_tolerance import within
from gpuplan.planner.verify.schedule_check import STEPS, Part, migration_class
from gpuplan.planner.verify.standby_check import switch
from gpuplan.planner.verify.standby_pair import Standby, nearest_interval, pair_of, rule_of
from gpuplan.planner.verify.standby_replay import SIGMAS, figures
from gpuplan.planner.verify.verification_context import Context

AT: Path = ("fallback",)
CHECK = "alternatives"
#: The planner's normal distribution is accurate to 7.5e-8, and a figure of the document to nine digits.
ROUNDED_CHANCE = 3e-7
#: The planner cuts the estimate's error into few points: the error of hours on interruptible machines (`REPLAYED`).
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
    """Check every figure of the fallback; a plan without one passes."""
    field_coverage = context.field_coverage
    if not field_coverage.has(*AT):
        return
    named = context.counter.named(field_coverage, AT)
    standby = (
        None if named is None else Part(named, context.estimator.row(named.offer_group.machine, named.nodes), STEPS)
    )
    fits = alone is not None and standby is not None and _may_fall_back(context, alone, standby)
    if alone is None or standby is None or not fits:
        field_coverage.is_true("requirements", (*AT, "instance_type"), False, None, "not a standby for this plan")
        field_coverage.tick(CHECK, *((*AT, name) for name in FIGURES))
        return
    pair, rule, work = pair_of(context, alone, standby), rule_of(context, alone), standby.row.hours_with_goodput
    beside = pair.checkpoint_hours + pair.changeover_hours
    stated = field_coverage.number(*AT, "ready_hours")
    plan = Standby(alone, standby, pair, rule, nearest_interval(context, alone, stated - beside))
    ready, last = plan.interval_hours + beside, plan.last_hours
    field_coverage.is_number("estimates", (*AT, "hours_with_goodput"), work, "not the estimator's hours")
    field_coverage.is_number(
        CHECK, (*AT, "ready_hours"), ready, "not a checkpoint interval plus the changeover", relative=LOOSE
    )
    switch(context, AT, max(last - work / 2, 0.0), last, work)
    chance, chance_at = plan.in_time(), (*AT, "deadline_probability")
    near = abs(field_coverage.number(*chance_at) - chance) < ROUNDED_CHANCE
    field_coverage.tick("finish", chance_at)
    field_coverage.is_true("finish", chance_at, near, chance, "not that of U")
    _called(context, plan, cost_micros)


def _called(context: Context, plan: Standby, cost_micros: int) -> None:
    """Check the probability of a call and its extra cost: the expected cost with the standby minus that of the plan, at
    least 0.
    """
    field_coverage, extra_at = context.field_coverage, (*AT, "extra_usd")
    calls, extra = field_coverage.number(*AT, "probability"), field_coverage.micros(*extra_at)
    field_coverage.tick(CHECK, (*AT, "probability"), extra_at)
    replayed_figures = figures(plan.pair, plan.rule, plan.interval_hours, context.submitted_plan.job.confidence)
    whole = plan.pair.changeover_hours + plan.pair.standby_work_hours
    within(
        context, (*AT, "probability"), "calls", calls, replayed_figures.calls.of_event(calls, 1.0), segments=math.inf
    )
    usd = replayed_figures.usd(plan.pair, whole_hours=whole, calls=calls)
    dearest = max(usd.value * (1 + EXTRA_SHARE) + SIGMAS * usd.error - cost_micros / 1e6, 0.0)
    least = max(usd.value * (1 - EXTRA_SHARE) - SIGMAS * usd.error - cost_micros / 1e6, 0.0)
    steps = 1e-6 + sum(_step_usd(part) for part in (plan.spot, plan.standby))
    ok = least - steps <= extra / 1e6 <= dearest + steps
    why = f"replayed runs with the standby cost {usd.value:.6g} +- {usd.error:.2g} USD"
    field_coverage.is_true("replayed", extra_at, ok, max(usd.value - cost_micros / 1e6, 0.0), why)


def _step_usd(part: Part) -> float:
    """Cost of a part's nodes for one billing step or the minimum, whichever is longer: the rounding of one bill."""
    offer_group, _, nodes = part.named
    least = max(offer_group.kind.billing_step_seconds, offer_group.kind.billing_minimum_seconds) / 3600
    return nodes * offer_group.micros / 1e6 * least


def _may_fall_back(context: Context, alone: Part, standby: Part) -> bool:
    """Whether the pair is eligible: an allowed, uninterruptible standby to which the run can move."""
    offer_group = standby.named.offer_group
    able = not standby.row.reason and not offer_group.reason and not offer_group.broken and not offer_group.rate
    return (
        able
        and bool(alone.named.offer_group.rate)
        and migration_class(alone) == migration_class(standby)
        and _has_deadline(context)
    )


def _has_deadline(context: Context) -> bool:
    return context.submitted_plan.job.deadline_hours is not None
