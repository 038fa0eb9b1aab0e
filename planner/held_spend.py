"""Savings plans that are held, for one job: which nodes a plan of so many dollars per hour pays for whole.

A plan of c USD per hour covers n nodes at the rate r if n r <= c, and their hours then cost nothing more. What c covers
in part is not counted, nor what else the user runs on it in that hour: plans of one job know of no other. Several plans
that cover the same machine count together. A forecast shares them among its jobs exactly (`planner.buying`).
"""

import math
from dataclasses import replace

from catalog.columns import Columns
from catalog.errors import Fault, UnusableInput
from catalog.offer import Offer
from catalog.spend_plans import Pool
from planner.discounts import discounted
from planner.settings import HeldCommitment, HeldSpend, PlannerSettings

#: As many as the settings file may hold of one type.
MOST_NODES = 100_000


def with_spending(settings: PlannerSettings, columns: Columns) -> PlannerSettings:
    """The same settings with the nodes that held savings plans cover among those held; named ones stay as they are.

    Raises `UnusableInput` for a plan that covers nothing in the snapshot.
    """
    if not settings.held_spend:
        return settings
    rates = charged(columns, settings)
    known = {(each.provider, each.region, each.instance_type, each.price_kind) for each in settings.held}
    usd: dict[tuple[str, str, str, str], float] = {}
    rate: dict[tuple[str, str, str, str], float] = {}
    for each, offers in zip(settings.held_spend, rates, strict=True):
        for key, micros in {_key(offer): offer.usd_micros_per_hour for offer in reversed(offers)}.items():
            usd[key] = usd.get(key, 0.0) + each.usd_per_hour
            rate[key] = micros / 1e6
    nodes = {key: min(MOST_NODES, math.floor(usd[key] / rate[key] + 1e-9)) for key in usd if key not in known}
    covered = tuple(
        HeldCommitment(provider=key[0], region=key[1], instance_type=key[2], price_kind=key[3], nodes=count)
        for key, count in sorted(nodes.items())
        if count
    )
    return replace(settings, held=settings.held + covered)


def charged(columns: Columns, settings: PlannerSettings) -> list[list[Offer]]:
    """For each held savings plan the offers that it is charged for, in the order of the snapshot.

    Raises `UnusableInput` for one that covers none.
    """
    columns = discounted(columns, settings.discounts)
    found, faults = [], []
    for i, each in enumerate(settings.held_spend):
        pool = Pool(provider=each.provider, price_kind=each.price_kind, region=each.region, family=each.family)
        kind = columns.kinds.index(each.price_kind) if each.price_kind in columns.kinds else -1
        rows = [columns.offer(int(i)) for i in (columns.kind_index == kind).nonzero()[0]]
        mine = [offer for offer in rows if pool.covers(offer)]
        found.append(mine)
        if not mine:
            faults.append(Fault(("settings", "held_spend", i), _nothing(each, columns, rows)))
    if faults:
        raise UnusableInput(*faults)
    return found


def _nothing(each: HeldSpend, columns: Columns, rows: list[Offer]) -> str:
    """Why a plan covers nothing, and what would be accepted."""
    of_provider = [row for row in rows if row.provider == each.provider]
    if not of_provider:
        return (
            f"covers nothing: the snapshot has no rates of {each.price_kind} on {each.provider}; "
            "refresh the prices, or leave the plan out"
        )
    families = sorted({row.instance_type.partition(".")[0] for row in of_provider if each.region in ("", row.region)})
    regions = sorted({row.region for row in of_provider})
    known = f"families {', '.join(families[:6])}" if families else f"regions {', '.join(regions[:6])}"
    return f"covers nothing in the snapshot; {each.price_kind} has rates for {known}"


def _key(offer: Offer) -> tuple[str, str, str, str]:
    return offer.provider, offer.region, offer.instance_type, offer.price_kind
