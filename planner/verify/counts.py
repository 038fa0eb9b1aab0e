"""How many offers were considered, compared and rejected, and for which reason: counted anew, offer by offer."""

from collections import Counter

from planner.estimate.machines import REASONS
from planner.job import REQUIREMENTS
from planner.verify.clock import quantile
from planner.verify.context import Context
from planner.verify.enumeration import Priced
from planner.verify.estimates import Row, Shape, runs_on, shape_of
from planner.verify.shelves import Lot
from planner.verify.survey import SOFT, Survey

CHECK = "counts"
#: Standard deviations up to which hours at a confidence never fall as interruptions rise.
STEADY_UP_TO = 3.1
DEARER = "dearer than another offer of the same machine"
LATE = "misses deadline or budget at every node count"
TOO_LONG = "longer than its price kind or free windows allow, or than a thousand years"
CARBON = frozenset(("constraints.carbon_budget_kg", "objective"))
OVER_CARBON = "over constraints.carbon_budget_kg at every node count"
UNKNOWN_CARBON = "carbon unknown, so that neither a budget nor the objective can count it"

#: What a plan has to have evaluated, by the most nodes that the job allows.
EVERY_NODE_COUNT = "every whole number of nodes from 1 to {:,}; machines that do not cluster on one node, slices in every size that is sold"

Kind = tuple[int, Shape, int | None]


def counts(context: Context, survey: Survey, *, phases: int = 1) -> None:
    """The counts of a certificate, or of an infeasible answer; a plan in phases is a column of its own."""
    ledger, planned = context.ledger, context.claim.planned
    found, considered = rejected(context)
    path = ("certificate",) if planned else ()
    offers = (*path, "offers_considered")
    ledger.is_same(CHECK, offers, context.shelves.offers, "not how many offers there are")
    if planned:
        at = ("certificate", "configurations_considered")
        ledger.is_same(CHECK, at, considered, "not how many configurations are left once dearer equals are out")
        evaluated = EVERY_NODE_COUNT.format(context.claim.job.constraints.max_nodes)
        stated = ("certificate", "enumeration", "node_counts")
        ledger.is_same(CHECK, stated, evaluated, "not the node counts that have to be evaluated")
        carbon = context.claim.job.objective == "carbon"
        columns = survey.three_way() if carbon else len(survey.frontier()) + (phases > 1)
        ledger.is_same(CHECK, ("certificate", "columns"), columns, "not how many best trades there are")
    for reason in ledger.keys(*path, "rejected"):
        expected = found.get(reason)
        ledger.is_same(CHECK, (*path, "rejected", reason), expected, "not how many offers are out for this reason")
    missing = sorted(set(found) - set(ledger.keys(*path, "rejected")))
    ledger.holds(CHECK, (*path, "rejected"), not missing, missing, "reasons for which offers are out are missing")


def rejected(context: Context) -> tuple[dict[str, int], int]:
    """Offers by the reason they are out for, and how many configurations the others make."""
    found: Counter[str] = Counter()
    for lot in context.shelves.lots:
        if lot.broken:
            first = next(name for name in REQUIREMENTS if name in lot.broken)
            found[f"not among {first}"] += lot.size
        elif lot.reason:
            found[lot.reason] += lot.size
    open_lots, most = context.open_lots, context.claim.job.constraints.max_nodes
    kept = undominated(context, open_lots)
    every = [each for each in context.enumeration.priced(kept, most) if each.broken - CARBON <= SOFT]
    ran = {_kind(each.lot) for each in every}
    rows, node_counts = context.enumeration.rows(open_lots, most)
    for lot in open_lots:
        if _kind(lot) not in ran:
            found[_why(context, lot, rows, node_counts[lot.shelf])] += lot.size
    placed = {id(each.lot) for each in every}
    dearer = sum(lot.size for lot in open_lots if _kind(lot) in ran) - len(placed)
    if dearer:
        found[DEARER] += dearer
    considered = [each for each in every if each.broken <= SOFT]
    for reason, number in _by_carbon(every).items():
        found[reason] += number
    late = len({id(each.lot) for each in considered}) - len({id(each.lot) for each in considered if not each.broken})
    if late:
        found[LATE] += late
    return dict(found), len(considered)


def _kind(lot: Lot) -> Kind:
    return lot.shelf, shape_of(lot.machine), lot.machine.type.fixed_nodes


def undominated(context: Context, lots: list[Lot]) -> list[Lot]:
    """Lots that no cheaper one of the same machine, kind and provider equals or betters in all that their place decides.

    Own machines are all kept: there are only so many of each. At a confidence below one half, and above some 0.999, a
    wider spread may be an earlier finish, so there a lot is beaten by those alone that are taken away as often.
    """
    rising = 0.0 <= quantile(context.claim.job.confidence) <= STEADY_UP_TO
    cells: dict[tuple[Kind, str, str], list[Lot]] = {}
    for lot in lots:
        cells.setdefault((_kind(lot), lot.kind.name, lot.place[0]), []).append(lot)
    job = context.claim.job
    weighs = job.objective == "carbon" or job.constraints.carbon_budget_kg is not None
    kept = []
    for cell in cells.values():
        before: list[list[float]] = []
        for lot in sorted(cell, key=lambda each: (each.micros, each.first)):
            place = context.rates.place(lot.place)
            mine = [place.egress, place.storage_per_hour, lot.rate]
            if weighs:
                kg = context.rates.kg_per_kwh(lot.place)
                mine.append(float("inf") if kg is None else kg)
            if not rising:
                mine.append(-lot.rate)
            beaten = any(all(other <= one for one, other in zip(mine, each, strict=True)) for each in before)
            if lot.machine.own is not None or not beaten:
                kept.append(lot)
                before.append(mine)
    return kept


def _why(context: Context, lot: Lot, rows: dict[tuple[Shape, int], Row], counts_: list[int]) -> str:
    """The reason that most node counts of a machine share."""
    machine = lot.machine.type
    nodes = runs_on(machine, counts_, counts_[-1])
    if not nodes:
        return "not among constraints.max_nodes"
    shape = shape_of(lot.machine)
    reasons = Counter(rows[shape, count].reason for count in nodes)
    del reasons[""]
    if reasons:
        return min(reasons, key=lambda reason: (-reasons[reason], REASONS.index(reason)))
    most = context.claim.job.constraints.max_accelerators
    if most is not None and all(count * machine.devices > most for count in nodes):
        return "not among constraints.max_accelerators"
    return TOO_LONG


def _by_carbon(every: list[Priced]) -> dict[str, int]:
    """Lots that carbon leaves nothing of: over the cap at every node count, or of carbon that nobody knows."""
    tried = {id(each.lot) for each in every}
    known = {id(each.lot) for each in every if each.carbon_kg is not None}
    kept = {id(each.lot) for each in every if not each.broken & CARBON}
    found = {OVER_CARBON: len(tried & known - kept), UNKNOWN_CARBON: len(tried - known - kept)}
    return {reason: number for reason, number in found.items() if number}
