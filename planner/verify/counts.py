"""How many offers were considered, compared and rejected, and for which reason: counted anew, offer by offer."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from planner.job import REQUIREMENTS
from planner.verify.clock import quantile
from planner.verify.context import Context
from planner.verify.enumeration import Sweep
from planner.verify.estimates import REASONS, Scaling, Shape, shape_of
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
    tally = _tally(context.enumeration.sweeps(kept, most))
    scalings = context.enumeration.scalings(open_lots, most)
    for lot, scaling in zip(open_lots, scalings, strict=True):
        if _kind(lot) not in tally.ran:
            found[_why(context, lot, scaling)] += lot.size
    dearer = sum(lot.size for lot in open_lots if _kind(lot) in tally.ran) - tally.lots
    for reason, number in (
        (DEARER, dearer),
        (OVER_CARBON, tally.over_carbon),
        (UNKNOWN_CARBON, tally.unknown_carbon),
        (LATE, tally.late),
    ):
        if number:
            found[reason] += number
    return dict(found), tally.considered


class _Tally(NamedTuple):
    """Of the lots that no cheaper equal beats: those that run, the kinds among them, and what leaves nothing of the others.

    `considered` counts configurations that break nothing but deadline and budget.
    """

    ran: set[Kind]
    lots: int
    considered: int
    late: int
    over_carbon: int
    unknown_carbon: int


def _tally(sweeps: Iterable[Sweep]) -> _Tally:
    ran, lots, considered, late, over, unknown = set[Kind](), 0, 0, 0, 0, 0
    for sweep in sweeps:
        whole = sweep.within(SOFT | CARBON)
        if not len(whole):
            continue
        ran.add(_kind(sweep.lot))
        lots += 1
        soft = whole.within(SOFT)
        considered += len(soft)
        if not len(soft):
            known = not bool(np.isnan(whole.carbon_kg).all())
            over, unknown = over + known, unknown + (not known)
        elif not len(soft.within(frozenset())):
            late += 1
    return _Tally(ran, lots, considered, late, over, unknown)


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


def _why(context: Context, lot: Lot, scaling: Scaling) -> str:
    """The reason that most node counts of a machine share."""
    if not len(scaling.nodes):
        return "not among constraints.max_nodes"
    refused = scaling.reason[scaling.reason > 0]
    if len(refused):
        return REASONS[int(np.argmax(np.bincount(refused)))]
    most = context.claim.job.constraints.max_accelerators
    if most is not None and int(scaling.nodes[0]) * lot.machine.type.devices > most:
        return "not among constraints.max_accelerators"
    return TOO_LONG
