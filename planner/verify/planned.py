"""A plan, sum by sum: its bill, hours, finish and carbon, and that nothing is better."""

from datetime import timedelta

from planner.verify.alternatives import alternatives, commitments, credit_use, frontier
from planner.verify.context import Context
from planner.verify.counts import counts
from planner.verify.fallback import fallback
from planner.verify.ledger import SHOWN
from planner.verify.named import second_text
from planner.verify.outcome import Outcome, of_phases
from planner.verify.pairs import InPhases, in_phases
from planner.verify.peak import least_usd
from planner.verify.phase import LOOSE, moment_of, ran
from planner.verify.proof import certificate
from planner.verify.run_limit import run_limits
from planner.verify.sensitivity import sensitivity
from planner.verify.standby import with_standby
from planner.verify.survey import Survey, surveyed

#: The planner's normal distribution is good to 7.5e-8 (Abramowitz and Stegun 26.2.17).
ROUNDED_CHANCE = 1e-7


def check_planned(context: Context) -> dict[str, object]:
    """Everything that a plan says; what its bound was held against."""
    job = context.claim.job
    sweeps = context.enumeration.sweeps(context.open_lots, job.constraints.max_nodes)
    survey = surveyed(sweeps, with_carbon=job.objective == "carbon")
    found = outcome(context)
    phased: InPhases | None = None
    if found is not None:
        sums(context, found)
        phased = in_phases(context, _limit(context, found), plan_micros=found.micros)
        certificate(context, found, survey, phased)
        sensitivity(context, found, survey)
        alternatives(context, survey, found.micros, moves=found.alone is None)
        commitments(context, None if found.alone is None else found.alone.part.named)
        credit_use(context, found.spent, found.kept)
        fallback(context, None if found.alone is None else found.alone.part, found.micros)
    run_limits(context)
    frontier(context, survey)
    counts(context, survey, phases=context.ledger.size("phases"))
    return covers(context, survey, phased, None if found is None else found.micros / 1e6)


def outcome(context: Context) -> Outcome | None:
    """What the phases come to, with a standby or without; None where they are none that there are."""
    ledger = context.ledger
    if ledger.size("phases") == 2 and ledger.value("phases", 1, "role") == "standby":
        return with_standby(context)
    found = ran(context)
    return None if found is None else of_phases(context, *found)


def _limit(context: Context, found: Outcome) -> float:
    """What another plan in phases must cost less than to be better: less than this, and by what a move must save."""
    saving = context.claim.settings.least_saving_of_a_move_percent
    return found.micros if found.alone is None else found.micros * (1 - saving / 100)


def sums(context: Context, found: Outcome) -> None:
    """The totals of a plan: bill, hours, finish, chance and carbon."""
    ledger, claim = context.ledger, context.claim
    relative, near = found.relative, max(SHOWN, found.relative)
    parts = {name: micros for name, micros in found.parts.items() if name != "expected"}
    ledger.is_money("cost", ("cost_usd", "expected"), found.micros, "not the bills of the phases", relative=relative)
    why = "not the bills of the hours that half of the runs stay within"
    ledger.is_money("cost", ("cost_usd", "median"), found.median, why, relative=relative)
    ledger.is_money("cost", ("cost_usd", "p95"), found.p95, "not the bills of the hours at 95 %", relative=relative)
    for name, micros in parts.items():
        at = ("cost_usd", "breakdown", name)
        ledger.is_money("cost", at, micros, f"not what {name} comes to", relative=relative)
    stated = [ledger.micros("cost_usd", "breakdown", name) for name in parts]
    whole = ledger.micros("cost_usd", "expected")
    ledger.holds("cost", ("cost_usd", "breakdown"), sum(stated) == whole, None, "the parts do not sum to the cost")
    quantiles = (("median", found.median_hours), ("confident", found.kept), ("p95", found.p95_hours))
    for name, hours in (("expected", found.expected), *quantiles):
        ledger.is_number("hours", ("hours", name), hours, "not what the phases take", relative=near)
    end = second_text(claim.start + timedelta(hours=found.expected))
    moment_of(context, ("finishes_at",), end, "not the start and the expected hours", relative)
    ledger.is_same("finish", ("start",), second_text(claim.start), "not the start of the job")
    ledger.is_same("cost", ("currency",), "USD", "costs are in US dollars")
    why = "not the probability of the deadline"
    ledger.is_number(
        "finish",
        ("deadline_probability",),
        found.in_time,
        why,
        relative=max(relative, ROUNDED_CHANCE / max(found.in_time or 1.0, ROUNDED_CHANCE)),
    )
    ledger.is_number("carbon", ("carbon_kg",), found.carbon_kg, "not power x hours x PUE x grid", relative=near)
    _required(context, found)


def _required(context: Context, found: Outcome) -> None:
    """Deadline at the asked confidence, budget, and cap on carbon."""
    ledger, job = context.ledger, context.claim.job
    deadline, budget, cap = job.deadline_hours, job.budget_usd, job.constraints.carbon_budget_kg
    if deadline is not None:
        in_it = found.kept <= deadline * (1 + (LOOSE if found.relative >= LOOSE else 1e-12))
        why = "later than the deadline at the asked confidence"
        ledger.holds("requirements", ("hours", "confident"), in_it, deadline, why)
        sure = found.in_time is None or found.in_time >= job.confidence - 1e-6
        ledger.holds("requirements", ("deadline_probability",), sure, job.confidence, "less than the confidence asked")
    if budget is not None:
        ok = found.micros / 1e6 <= budget
        ledger.holds("requirements", ("cost_usd", "expected"), ok, budget, "dearer than the budget")
    if cap is not None:
        low = found.carbon_kg is not None and found.carbon_kg <= cap * (1 + SHOWN)
        ledger.holds("requirements", ("carbon_kg",), low, cap, "over constraints.carbon_budget_kg, or not known")


def covers(context: Context, survey: Survey, phased: InPhases | None, cost_usd: float | None) -> dict[str, object]:
    """What the bound was held against, for people to judge."""
    lots, opened = context.shelves.lots, context.open_lots
    job, goodput = context.claim.job, context.claim.settings.goodput
    dear = [
        lot
        for lot in opened
        if cost_usd is not None and least_usd(lot, context.work, job.training, goodput) > cost_usd * (1 + SHOWN)
    ]
    found: dict[str, object] = {
        "offers": context.shelves.offers,
        "offers_that_requirements_or_standing_refuse": sum(lot.size for lot in lots if lot.reason or lot.broken),
        "offers_compared": sum(lot.size for lot in opened),
        "of_these_dearer_than_the_plan_even_at_dense_peak": sum(lot.size for lot in dear),
        "configurations_compared_by_estimate": survey.configurations,
        "best_trades_of_cost_against_time": len(survey.frontier()),
        "node_counts": f"every whole one to {job.constraints.max_nodes}, each evaluated; slices at every size sold",
    }
    if phased is None or cost_usd is None:
        return found | {"plans_in_phases": "none: the job keeps to one configuration"}
    least = None if phased.least_usd is None else min(phased.least_usd, cost_usd)
    return found | {
        "pairs_in_phases_priced_exactly": phased.priced,
        "pairs_in_phases_left_to_the_bound_alone": "those that it leaves least room" if phased.left else "none",
        "no_plan_in_any_number_of_phases_costs_less_than_usd": None if least is None else f"{least:.6f}",
        "which_is_below_the_plan_by_percent": None
        if least is None
        else round(100 * (1 - least / max(cost_usd, 1e-9)), 4),
    }
