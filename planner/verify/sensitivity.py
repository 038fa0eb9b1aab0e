"""What another deadline or another price would change, from the frontier of the enumeration."""

from planner.verify.alternatives import enough
from planner.verify.context import Context
from planner.verify.enumeration import at_price
from planner.verify.outcome import Outcome
from planner.verify.shelves import Lot
from planner.verify.survey import Survey, slope

CHECK = "alternatives"
#: Hours closer than this are the plan's own.
SAME = 1e-12


def sensitivity(context: Context, found: Outcome, survey: Survey) -> None:
    """Steps to configurations that are cheaper with more time, or faster; all of cost, so nothing for other objectives."""
    ledger, job = context.ledger, context.claim.job
    front, mine, kept = survey.frontier(), found.micros, found.kept
    of_cost = job.objective == "cost"
    slower = [one for one in front if one[1] < mine and one[0] > kept * (1 + SAME)] if of_cost else []
    faster = [one for one in front if one[0] < kept * (1 - SAME)] if of_cost else []
    per_hour = slope(front, job.deadline_hours) if of_cost and job.deadline_hours is not None else 0.0
    why = "not what the frontier of the enumeration gives"
    ledger.is_number(CHECK, ("sensitivity", "deadline_usd_per_hour"), per_hour, why, relative=1e-6)
    steps = (
        ("next_cheaper", "saves_usd", (slower[0][0], mine - slower[0][1]) if slower else None),
        ("next_faster", "costs_usd", (faster[-1][0], faster[-1][1] - mine) if faster else None),
    )
    for name, money, step in steps:
        if ledger.is_there(CHECK, ("sensitivity", name), step is not None, why) and step is not None:
            ledger.is_number(CHECK, ("sensitivity", name, "deadline_hours"), enough(step[0]), why)
            # A difference of two costs is as far off as these together, each in whole micro-dollars.
            room = (1 + context.relative * (2 * mine + abs(step[1]))) / max(abs(step[1]), 1)
            ledger.is_money(CHECK, ("sensitivity", name, money), step[1], why, relative=room)
    _holds_until(context, found, survey)


def _holds_until(context: Context, found: Outcome, survey: Survey) -> None:
    """The price up to which a plan on one configuration stays cheapest: where the best on any other offer ties with it."""
    ledger, mine = context.ledger, found.micros
    at = ("sensitivity", "holds_until_usd_per_node_hour")
    if found.alone is None:
        ledger.is_same(CHECK, at, None, "several prices hold it together")
        return
    bill, named = found.alone.bill, found.alone.part.named
    paid = mine - sum(round(part * 1e6) for part in (bill.storage, bill.egress, bill.power))
    rivals = [each.micros for each in survey.best_of_lot.values() if not _is_of(each.lot, named.lot)]
    rivals += _elsewhere(context, named.lot)
    if context.claim.job.objective != "cost" or not rivals or not paid:
        ledger.is_same(CHECK, at, None, "nothing rivals it, or nothing is paid by the hour")
        return
    shown = named.lot.micros if named.offer is None else named.offer.usd_micros_per_hour
    until = shown * (1 + max(0.0, min(rivals) - mine) / paid)
    ledger.is_money(CHECK, at, until, "not where the next best offer ties with it", relative=1e-9 + context.relative)


def _is_of(one: Lot, other: Lot) -> bool:
    """Whether two rows are prices of the same machine in the same place in the same way."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("shelf", "place", "kind", "rate", "reason")
    ) and (one.machine.type.name == other.machine.type.name)


def _elsewhere(context: Context, mine: Lot) -> list[int]:
    """Costs at the second cheapest price of the plan's own lot, in another zone, if it has one."""
    lot = next((each for each in context.shelves.lots if _is_of(each, mine)), None)
    if lot is None or lot.second is None:
        return []
    others = [at_price(lot, lot.second)] if mine.micros <= lot.micros else [lot]
    priced = context.enumeration.priced(others, context.claim.job.constraints.max_nodes)
    return [each.micros for each in priced if not each.broken]
