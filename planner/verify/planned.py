"""A plan of one configuration, sum by sum: its bill, hours, finish and carbon, and that nothing is better."""

from datetime import timedelta

from planner.verify.alternatives import alternatives, commitments, credit_use, enough, frontier
from planner.verify.clock import probability_by
from planner.verify.context import Context
from planner.verify.counts import counts
from planner.verify.enumeration import at_price
from planner.verify.ledger import SHOWN
from planner.verify.named import second_text
from planner.verify.peak import least_usd
from planner.verify.phase import LOOSE, Ran, ran
from planner.verify.shelves import Lot
from planner.verify.survey import Survey, slope, surveyed

#: In what each objective is counted.
UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}
#: Solver and enumeration agree to this.
AGREEMENT = 1e-6


def check_planned(context: Context) -> dict[str, object]:
    """Everything that a plan says; what its bound was held against."""
    most = context.claim.job.constraints.max_nodes
    survey = surveyed(context.enumeration.priced(context.open_lots, most))
    found = ran(context, ("phases", 0))
    if found is not None:
        sums(context, found)
        micros = round(found.bill.total * 1e6)
        certificate(context, found, survey)
        sensitivity(context, found, survey)
        alternatives(context, survey, micros)
        commitments(context, found.named)
        credit_use(context, {found.named.lot.place[0]: micros}, found.clock.kept)
    frontier(context, survey)
    counts(context, survey)
    return covers(context, survey, None if found is None else found.bill.total)


def sums(context: Context, found: Ran) -> None:
    """The totals of a plan that has one phase."""
    ledger, claim, bill, clock = context.ledger, context.claim, found.bill, found.clock
    near, sum_near = max(SHOWN, found.relative), found.relative
    parts = {name: round(getattr(bill, name) * 1e6) for name in ("storage", "egress", "power", "setup")}
    total = round(bill.total * 1e6)
    parts["compute"] = total - sum(parts.values())
    ledger.is_money("cost", ("cost_usd", "expected"), total, "not the bill of the phase", relative=sum_near)
    ledger.is_money("cost", ("cost_usd", "p95"), bill.p95 * 1e6, "not the bill of the hours at 95 %", relative=sum_near)
    for name, micros in parts.items():
        at = ("cost_usd", "breakdown", name)
        ledger.is_money("cost", at, micros, f"not what {name} comes to", relative=sum_near)
    stated = [ledger.micros("cost_usd", "breakdown", name) for name in parts]
    whole = ledger.micros("cost_usd", "expected")
    ledger.holds("cost", ("cost_usd", "breakdown"), sum(stated) == whole, None, "the parts do not sum to the cost")
    for name, hours in (("expected", clock.expected), ("confident", clock.kept), ("p95", clock.p95)):
        ledger.is_number("hours", ("hours", name), hours, "not what the phase takes", relative=near)
    end = second_text(claim.start + timedelta(hours=clock.expected))
    ledger.is_same("finish", ("finishes_at",), end, "not the start and the expected hours")
    ledger.is_same("finish", ("start",), second_text(claim.start), "not the start of the job")
    ledger.is_same("cost", ("currency",), "USD", "costs are in US dollars")
    deadline = claim.job.deadline_hours
    chance = None
    if deadline is not None:
        chance = probability_by(deadline - claim.settings.setup_hours, found.busy.run, found.busy.sigma)
        late = clock.kept > deadline * (1 + (LOOSE if sum_near >= LOOSE else 0))
        ledger.holds(
            "requirements",
            ("hours", "confident"),
            not late,
            deadline,
            "later than the deadline at the asked confidence",
        )
    ledger.is_number(
        "finish", ("deadline_probability",), chance, "not the probability of the deadline", relative=max(near, 1e-7)
    )
    budget = claim.job.budget_usd
    if budget is not None:
        ledger.holds("requirements", ("cost_usd", "expected"), total / 1e6 <= budget, budget, "dearer than the budget")
    ledger.is_number("carbon", ("carbon_kg",), found.carbon_kg, "not power x hours x PUE x grid", relative=near)
    cap = claim.job.constraints.carbon_budget_kg
    if cap is not None:
        kept = found.carbon_kg is not None and found.carbon_kg <= cap * (1 + SHOWN)
        ledger.holds("requirements", ("carbon_kg",), kept, cap, "over constraints.carbon_budget_kg, or not known")


def certificate(context: Context, found: Ran, survey: Survey) -> None:
    """What was proven: no configuration of the enumeration is better, and the bound is no higher than the best."""
    ledger, of = context.ledger, context.claim.job.objective
    total = round(found.bill.total * 1e6)
    best = {"cost": survey.whole.feasible, "time": survey.whole.fastest, "carbon": survey.whole.greenest}[of]
    at = ("certificate", "objective_usd")
    ledger.is_money("bound", at, total, "not the cost of the plan", relative=max(found.relative, 1e-9))
    if ledger.has("certificate", "objective"):
        ledger.is_same("bound", ("certificate", "objective", "of"), of, "not the objective of the job")
        ledger.is_same("bound", ("certificate", "objective", "unit"), UNITS[of], "not its unit")
    mine = {"cost": total / 1e6, "time": found.clock.kept, "carbon": found.carbon_kg or 0.0}[of]
    least = mine
    if best is None:
        ledger.holds("bound", at, False, None, "no configuration meets the requirements")
    else:
        least = {"cost": best.micros / 1e6, "time": best.clock.kept, "carbon": best.carbon_kg or 0.0}[of]
        lot = best.lot
        where = f"{best.nodes} x {lot.machine.type.name} {lot.kind.name} in {':'.join(lot.place)}"
        room = 1.5e-6 + max(found.relative, 1e-11) * abs(mine)
        ledger.holds("bound", at, mine <= least + room, least, f"{where} has less {of}: {least:.9g} {UNITS[of]}")
    _bounds(context, mine, least, of)
    _gap(context)


def _bounds(context: Context, mine: float, least: float, of: str) -> None:
    """Objective and bound in dollars, and in the objective's own unit; no bound lies above what was found."""
    ledger = context.ledger
    bound = ledger.micros("certificate", "bound_usd") / 1e6
    objective = ledger.micros("certificate", "objective_usd") / 1e6
    ledger.tick("bound", ("certificate", "bound_usd"))
    near = AGREEMENT * max(1.0, objective)
    low = bound <= objective + 1e-6 and (of != "cost" or bound <= least + near)
    ledger.holds(
        "bound", ("certificate", "bound_usd"), low, least if of == "cost" else objective, "above what is to be had"
    )
    if ledger.has("certificate", "objective"):
        value = ("certificate", "objective", "value")
        ledger.is_number("bound", value, round(mine * 1e6) / 1e6, f"not the plan's {UNITS[of]}", relative=AGREEMENT)
        own = ledger.number("certificate", "objective", "bound")
        ledger.tick("bound", ("certificate", "objective", "bound"))
        low = own <= least + AGREEMENT * max(1.0, least)
        ledger.holds("bound", ("certificate", "objective", "bound"), low, least, "above what is to be had")


def _gap(context: Context) -> None:
    """The gap is what lies between objective and bound, the wider of the two where there are two."""
    ledger = context.ledger
    pairs = [(ledger.micros("certificate", "objective_usd") / 1e6, ledger.micros("certificate", "bound_usd") / 1e6)]
    if ledger.has("certificate", "objective"):
        pairs.append(
            (ledger.number("certificate", "objective", "value"), ledger.number("certificate", "objective", "bound"))
        )
    gap = max((value - bound) / max(abs(value), 1e-9) for value, bound in pairs)
    stated = ledger.number("certificate", "gap")
    ledger.tick("bound", ("certificate", "gap"))
    ledger.holds(
        "bound", ("certificate", "gap"), abs(stated - gap) <= 1e-6, gap, "not what lies between objective and bound"
    )


def sensitivity(context: Context, found: Ran, survey: Survey) -> None:
    """What another deadline or another price would change, from the frontier of the enumeration."""
    ledger, job = context.ledger, context.claim.job
    front, mine, kept = survey.frontier(), round(found.bill.total * 1e6), found.clock.kept
    of_cost = job.objective == "cost"
    same = (1 - 1e-12, 1 + 1e-12)
    slower = [(hours, micros) for hours, micros in front if micros < mine and hours > kept * same[1]] if of_cost else []
    faster = [(hours, micros) for hours, micros in front if hours < kept * same[0]] if of_cost else []
    per_hour = slope(front, job.deadline_hours) if of_cost and job.deadline_hours is not None else 0.0
    why, check = "not what the frontier of the enumeration gives", "alternatives"
    ledger.is_number(check, ("sensitivity", "deadline_usd_per_hour"), per_hour, why, relative=1e-6)
    steps = (
        ("next_cheaper", "saves_usd", (slower[0][0], mine - slower[0][1]) if slower else None),
        ("next_faster", "costs_usd", (faster[-1][0], faster[-1][1] - mine) if faster else None),
    )
    for name, money, step in steps:
        if ledger.is_there(check, ("sensitivity", name), step is not None, why) and step is not None:
            ledger.is_number(check, ("sensitivity", name, "deadline_hours"), enough(step[0]), why)
            ledger.is_money(check, ("sensitivity", name, money), step[1], why, relative=context.relative)
    _holds_until(context, found, survey, mine)


def _holds_until(context: Context, found: Ran, survey: Survey, mine: int) -> None:
    """The price up to which the plan stays cheapest: where the cheapest plan on any other offer ties with it."""
    ledger, lot = context.ledger, found.named.lot
    at = ("sensitivity", "holds_until_usd_per_node_hour")
    paid = round(found.bill.total * 1e6) - sum(
        round(part * 1e6) for part in (found.bill.storage, found.bill.egress, found.bill.power)
    )
    rivals = [each.micros for each in survey.best_of_lot.values() if not _is_of(each.lot, lot)]
    rivals += _elsewhere(context, found)
    if context.claim.job.objective != "cost" or not rivals or not paid:
        ledger.is_same("alternatives", at, None, "nothing rivals it")
        return
    shown = lot.micros if found.named.offer is None else found.named.offer.usd_micros_per_hour
    until = shown * (1 + max(0.0, min(rivals) - mine) / paid)
    ledger.is_money(
        "alternatives", at, until, "not where the next best offer ties with it", relative=1e-9 + context.relative
    )


def _is_of(one: Lot, other: Lot) -> bool:
    """Whether two rows are prices of the same machine in the same place in the same way."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("shelf", "place", "kind", "rate", "reason")
    ) and (one.machine.type.name == other.machine.type.name)


def _elsewhere(context: Context, found: Ran) -> list[int]:
    """The least cost at the second cheapest price of the plan's own lot, in another zone, if it has one."""
    mine = found.named.lot
    lot = next((each for each in context.shelves.lots if _is_of(each, mine)), None)
    if lot is None or lot.second is None:
        return []
    others = [at_price(lot, lot.second)] if mine.micros <= lot.micros else [lot]
    priced = context.enumeration.priced(others, context.claim.job.constraints.max_nodes)
    return [each.micros for each in priced if not each.broken]


def covers(context: Context, survey: Survey, cost_usd: float | None) -> dict[str, object]:
    """What the bound was held against, for people to judge."""
    lots, opened = context.shelves.lots, context.open_lots
    job, goodput = context.claim.job, context.claim.settings.goodput
    dear = [
        lot
        for lot in opened
        if cost_usd is not None and least_usd(lot, context.work, job.training, goodput) > cost_usd * (1 + SHOWN)
    ]
    return {
        "offers": context.shelves.offers,
        "offers_that_requirements_or_standing_refuse": sum(lot.size for lot in lots if lot.reason or lot.broken),
        "offers_compared": sum(lot.size for lot in opened),
        "of_these_dearer_than_the_plan_even_at_dense_peak": sum(lot.size for lot in dear),
        "configurations_compared_by_estimate": survey.configurations,
        "best_trades_of_cost_against_time": len(survey.frontier()),
        "node_counts": "every one to 8, then four to each doubling, the divisors of the layers, and the most allowed",
    }
