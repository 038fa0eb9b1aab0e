"""A plan, sum by sum: its bill, hours, finish and carbon, and that nothing is better."""

from datetime import timedelta

from planner.verify.alternatives import alternatives, commitments, credit_use, frontier
from planner.verify.clock import probability_by
from planner.verify.context import Context
from planner.verify.counts import counts
from planner.verify.course import Ran, chance, total_micros
from planner.verify.enumeration import Priced
from planner.verify.fallback import fallback
from planner.verify.ledger import SHOWN
from planner.verify.money import parts_of_bill
from planner.verify.named import second_text
from planner.verify.pairs import InPhases, in_phases
from planner.verify.peak import least_usd
from planner.verify.phase import LOOSE, moment_of, ran
from planner.verify.proof import certificate
from planner.verify.sensitivity import sensitivity
from planner.verify.survey import SOFT, Survey, surveyed


def check_planned(context: Context) -> dict[str, object]:
    """Everything that a plan says; what its bound was held against."""
    most = context.claim.job.constraints.max_nodes
    every = [each for each in context.enumeration.priced(context.open_lots, most) if each.broken <= SOFT]
    survey = surveyed(every)
    found = ran(context)
    phased: InPhases | None = None
    if found is not None:
        phases, relative = found
        micros = total_micros(phases)
        sums(context, phases, relative)
        phased = in_phases(context, _limit(context, phases, micros))
        certificate(context, phases, survey, phased, relative)
        sensitivity(context, phases, survey)
        alternatives(context, survey, micros, moves=len(phases) > 1)
        commitments(context, phases[0].part.named if len(phases) == 1 else None)
        credit_use(context, _spent(phases), sum(each.kept for each in phases))
    frontier(context, survey)
    fallback(context)
    counts(context, survey, phases=context.ledger.size("phases"))
    cost = None if found is None else total_micros(found[0]) / 1e6
    return covers(context, survey, every, phased, cost)


def _limit(context: Context, phases: list[Ran], micros: int) -> float:
    """What another plan in phases must cost less than to be better: less than this, and by what a move must save."""
    saving = context.claim.settings.least_saving_of_a_move_percent
    return micros * (1 - saving / 100) if len(phases) == 1 else micros


def _spent(phases: list[Ran]) -> dict[str, int]:
    """Micro-dollars by provider."""
    spent: dict[str, int] = {}
    for each in phases:
        provider = each.part.named.lot.place[0]
        spent[provider] = spent.get(provider, 0) + round(each.bill.total * 1e6)
    return spent


def sums(context: Context, phases: list[Ran], relative: float) -> None:
    """The totals of a plan: bill, hours, finish, chance and carbon."""
    ledger, claim, near = context.ledger, context.claim, max(SHOWN, relative)
    parts = parts_of_bill([each.bill for each in phases])
    p95 = sum(round(each.bill.p95 * 1e6) for each in phases)
    total = parts.pop("expected")
    ledger.is_money("cost", ("cost_usd", "expected"), total, "not the bills of the phases", relative=relative)
    ledger.is_money("cost", ("cost_usd", "p95"), p95, "not the bills of the hours at 95 %", relative=relative)
    for name, micros in parts.items():
        at = ("cost_usd", "breakdown", name)
        ledger.is_money("cost", at, micros, f"not what {name} comes to", relative=relative)
    stated = [ledger.micros("cost_usd", "breakdown", name) for name in parts]
    whole = ledger.micros("cost_usd", "expected")
    ledger.holds("cost", ("cost_usd", "breakdown"), sum(stated) == whole, None, "the parts do not sum to the cost")
    expected, kept = sum(each.expected for each in phases), sum(each.kept for each in phases)
    for name, hours in (("expected", expected), ("confident", kept), ("p95", sum(each.p95 for each in phases))):
        ledger.is_number("hours", ("hours", name), hours, "not what the phases take", relative=near)
    end = second_text(claim.start + timedelta(hours=expected))
    moment_of(context, ("finishes_at",), end, "not the start and the expected hours", relative)
    ledger.is_same("finish", ("start",), second_text(claim.start), "not the start of the job")
    ledger.is_same("cost", ("currency",), "USD", "costs are in US dollars")
    in_time(context, phases, relative)
    kilograms = [each.carbon_kg for each in phases]
    carbon = None if None in kilograms else sum(each for each in kilograms if each is not None)
    ledger.is_number("carbon", ("carbon_kg",), carbon, "not power x hours x PUE x grid", relative=near)
    budget, cap = claim.job.budget_usd, claim.job.constraints.carbon_budget_kg
    if budget is not None:
        ledger.holds("requirements", ("cost_usd", "expected"), total / 1e6 <= budget, budget, "dearer than the budget")
    if cap is not None:
        low = carbon is not None and carbon <= cap * (1 + SHOWN)
        ledger.holds("requirements", ("carbon_kg",), low, cap, "over constraints.carbon_budget_kg, or not known")


def in_time(context: Context, phases: list[Ran], relative: float) -> None:
    """The deadline at the asked confidence, and the chance of it."""
    ledger, claim = context.ledger, context.claim
    deadline, found = claim.job.deadline_hours, None
    if deadline is not None:
        kept = sum(each.kept for each in phases)
        in_it = kept <= deadline * (1 + (LOOSE if relative >= LOOSE else 1e-12))
        why = "later than the deadline at the asked confidence"
        ledger.holds("requirements", ("hours", "confident"), in_it, deadline, why)
        alone = phases[0].busy
        if len(phases) == 1:
            found = probability_by(deadline - claim.settings.setup_hours, alone.run, alone.sigma)
        else:
            found = chance(context, phases, deadline)
    why = "not the probability of the deadline"
    ledger.is_number("finish", ("deadline_probability",), found, why, relative=max(relative, 1e-7))


def covers(
    context: Context, survey: Survey, every: list[Priced], phased: InPhases | None, cost_usd: float | None
) -> dict[str, object]:
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
        "configurations_compared_by_estimate": len(every),
        "best_trades_of_cost_against_time": len(survey.frontier()),
        "node_counts": "every one to 8, then four to each doubling, the divisors of the layers, and the most allowed",
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
