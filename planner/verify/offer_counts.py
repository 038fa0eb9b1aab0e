"""Check of the counts of offers considered, compared and rejected, per reason."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.planner.model.job import REQUIREMENTS
from gpuplan.planner.verify.configuration_enumeration import Sweep
from gpuplan.planner.verify.configuration_survey import SOFT, Survey
from gpuplan.planner.verify.estimator_port import REASONS, Scaling
from gpuplan.planner.verify.offer_groups import OfferGroup, Shape
from gpuplan.planner.verify.verification_context import Context
from gpuplan.planner.verify.wall_clock_hours import quantile

CHECK = "counts"
#: Standard deviations up to which hours at a confidence never fall as interruptions rise.
STEADY_UP_TO = 3.1
HOSTS_TOO_SMALL = "host memory too small for what is offloaded to it"
DEARER = "dearer than another offer of the same machine"
LATE = "misses deadline or budget at every node count"
TOO_LONG = "longer than its price kind or free windows allow, or than a thousand years"
CARBON = frozenset(("constraints.carbon_budget_kg", "objective"))
OVER_CARBON = "over constraints.carbon_budget_kg at every node count"
OVER_QUOTA = "over constraints.quotas at every node count"
UNKNOWN_CARBON = "carbon unknown, so that neither a budget nor the objective can count it"

#: The statement about node counts that a plan must make, by `max_nodes`.
EVERY_NODE_COUNT = "every whole number of nodes from 1 to {:,}; machines that do not cluster on one node, slices in every size that is sold"

Kind = tuple[int, Shape, int | None]


def counts(context: Context, survey: Survey, *, phases: int = 1) -> None:
    """Check the counts of a certificate or of an infeasible answer; a plan in phases adds a column."""
    field_coverage, planned = context.field_coverage, context.submitted_plan.planned
    rejected_offers, considered = rejected(context)
    path = ("certificate",) if planned else ()
    offers = (*path, "offers_considered")
    field_coverage.is_same(CHECK, offers, context.open_offers.offers, "not the number of offers")
    if planned:
        at = ("certificate", "configurations_considered")
        field_coverage.is_same(CHECK, at, considered, "not the number of configurations without dominated offers")
        evaluated = EVERY_NODE_COUNT.format(context.submitted_plan.job.constraints.max_nodes)
        stated = ("certificate", "enumeration", "node_counts")
        field_coverage.is_same(CHECK, stated, evaluated, "not the required node counts")
        carbon = context.submitted_plan.job.objective == "carbon"
        columns = survey.three_way() if carbon else len(survey.frontier()) + (phases > 1)
        field_coverage.is_same(CHECK, ("certificate", "columns"), columns, "not the number of points on the frontier")
    for reason in field_coverage.keys(*path, "rejected"):
        expected = rejected_offers.get(reason)
        field_coverage.is_same(
            CHECK, (*path, "rejected", reason), expected, "not the number of offers rejected for this reason"
        )
    missing = sorted(set(rejected_offers) - set(field_coverage.keys(*path, "rejected")))
    field_coverage.is_true(CHECK, (*path, "rejected"), not missing, missing, "reasons of rejected offers are missing")


def rejected(context: Context) -> tuple[dict[str, int], int]:
    """Rejected offers by reason, and the number of configurations of the others."""
    offers_by_reason: Counter[str] = Counter()
    for offer_group in context.open_offers.offer_groups:
        if offer_group.broken:
            first = next(name for name in REQUIREMENTS if name in offer_group.broken)
            offers_by_reason[f"not among {first}"] += offer_group.size
        elif offer_group.reason:
            offers_by_reason[offer_group.reason] += offer_group.size
    open_offer_groups, most = context.open_offer_groups, context.submitted_plan.job.constraints.max_nodes
    undominated_groups = undominated(context, open_offer_groups)
    tally = _tally(context.enumeration.sweeps(undominated_groups, most))
    scalings = context.enumeration.scalings(open_offer_groups, most)
    host_gib: dict[Kind, float] = {}
    for offer_group in open_offer_groups:
        host_gib[_kind(offer_group)] = max(host_gib.get(_kind(offer_group), 0.0), _host_gib(offer_group))
    for offer_group, scaling in zip(open_offer_groups, scalings, strict=True):
        if _kind(offer_group) not in tally.ran:
            offers_by_reason[_why(context, offer_group, scaling, host_gib[_kind(offer_group)])] += offer_group.size
    dearer = (
        sum(offer_group.size for offer_group in open_offer_groups if _kind(offer_group) in tally.ran)
        - tally.offer_groups
    )
    for reason, number in (
        (DEARER, dearer),
        (OVER_CARBON, tally.over_carbon),
        (UNKNOWN_CARBON, tally.unknown_carbon),
        (OVER_QUOTA, tally.over_quota),
        (LATE, tally.late),
    ):
        if number:
            offers_by_reason[reason] += number
    return dict(offers_by_reason), tally.considered


class _Tally(NamedTuple):
    """Results over undominated offer groups: the kinds that run, how many groups, and those rejected at every node
    count.

    `considered` counts the configurations that break at most deadline and budget.
    """

    ran: set[Kind]
    offer_groups: int
    considered: int
    late: int
    over_carbon: int
    unknown_carbon: int
    over_quota: int


def _tally(sweeps: Iterable[Sweep]) -> _Tally:
    ran, offer_groups, considered, late, over, unknown, over_quota = set[Kind](), 0, 0, 0, 0, 0, 0
    for sweep in sweeps:
        any_number = sweep.within(SOFT | CARBON | {"constraints.quotas"})
        if not len(any_number):
            continue
        ran.add(_kind(sweep.offer_group))
        offer_groups += 1
        whole = any_number.within(SOFT | CARBON)
        if not len(whole):
            over_quota += 1
            continue
        soft = whole.within(SOFT)
        considered += len(soft)
        if not len(soft):
            known = not bool(np.isnan(whole.carbon_kg).all())
            over, unknown = over + known, unknown + (not known)
        elif not len(soft.within(frozenset())):
            late += 1
    return _Tally(ran, offer_groups, considered, late, over, unknown, over_quota)


def _kind(offer_group: OfferGroup) -> Kind:
    return offer_group.source_number, offer_group.machine.shape, offer_group.machine.type.fixed_nodes


def undominated(context: Context, offer_groups: list[OfferGroup]) -> list[OfferGroup]:
    """The undominated offer groups: no cheaper one of the same machine, price kind and provider is at least as good in
    egress, storage, interruption rate and, if they count, zones that sell it, carbon and host memory.

    All owned machines remain, because their number is limited. At a confidence below one half, or above about 0.999, a
    wider spread may mean an earlier finish, so there only a group with equal interruption rate and zones dominates.
    """
    rising = 0.0 <= quantile(context.submitted_plan.job.confidence) <= STEADY_UP_TO
    cells: dict[tuple[Kind, str, str], list[OfferGroup]] = {}
    for offer_group in offer_groups:
        cells.setdefault((_kind(offer_group), offer_group.kind.name, offer_group.place[0]), []).append(offer_group)
    job = context.submitted_plan.job
    weighs = job.objective == "carbon" or job.constraints.carbon_budget_kg is not None
    undominated_groups = []
    for cell in cells.values():
        before: list[list[float]] = []
        for offer_group in sorted(cell, key=lambda offer_group: (offer_group.micros, offer_group.first)):
            place = context.rates.place(offer_group.place)
            mine = [place.egress, place.storage_per_hour, offer_group.rate]
            if weighs:
                kg = context.rates.kg_per_kwh(offer_group.place)
                mine.append(float("inf") if kg is None else kg)
            if not rising:
                mine.append(-offer_group.rate)
            if context.submitted_plan.settings.spot_wait_hours is None and offer_group.kind.interruptible:
                zones = min(offer_group.zones, len(spot_waits().mean_hours))
                mine += [-zones] if rising else [-zones, zones]
            if job.training.offload != "none":
                mine.append(-_host_gib(offer_group))
            mine.append(-offer_group.quota_nodes)
            beaten = any(all(other <= one for one, other in zip(mine, earlier, strict=True)) for earlier in before)
            if offer_group.machine.owned is not None or not beaten:
                undominated_groups.append(offer_group)
                before.append(mine)
    return undominated_groups


def _host_gib(offer_group: OfferGroup) -> float:
    """Memory of one host in GiB; inf where unknown, which rejects nothing."""
    memory = offer_group.machine.type.ram_gib
    return float("inf") if memory is None else float(memory)


def _why(context: Context, offer_group: OfferGroup, scaling: Scaling, host_gib: float) -> str:
    """The most frequent reason why a machine cannot run the job; its largest host has `host_gib`."""
    if not len(scaling.nodes):
        return "not among constraints.max_nodes"
    refused = scaling.reason[scaling.reason > 0]
    if len(refused):
        return REASONS[int(np.argmax(np.bincount(refused)))]
    hosts_gib = context.enumeration.hosts_gib
    if hosts_gib and not (scaling.nodes * host_gib >= hosts_gib).any():
        return HOSTS_TOO_SMALL
    most = context.submitted_plan.job.constraints.max_accelerators
    if most is not None and int(scaling.nodes[0]) * offer_group.machine.type.devices > most:
        return "not among constraints.max_accelerators"
    return TOO_LONG
