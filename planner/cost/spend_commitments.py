"""Existing savings plans of the user, for one job: the nodes that an hourly spend commitment pays for completely.

A plan of c USD per hour covers n nodes at the rate r if n r <= c; their hours then cost nothing more. A node that c
covers partly does not count. Other machines that the user runs under the plan are ignored, because one job is planned
without the others. Several plans that cover the same machine add up. A forecast divides them among its jobs exactly
(`gpuplan.planner.procurement`).
"""

import math
from dataclasses import replace

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.spend_plans import Pool
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.cost.negotiated_discounts import discounted
from gpuplan.planner.model.settings import ExistingCommitment, ExistingSpendCommitment, PlannerSettings

#: Most nodes of one type that the settings file accepts.
MOST_NODES = 100_000


def with_spending(settings: PlannerSettings, columns: Columns) -> PlannerSettings:
    """The settings with the nodes that savings plans cover added to the existing commitments, which stay unchanged.

    Raises `UnusableInput` for a plan that covers nothing in the snapshot.
    """
    if not settings.held_spend:
        return settings
    rates = charged(columns, settings)
    known = {
        (commitment.provider, commitment.region, commitment.instance_type, commitment.price_kind)
        for commitment in settings.held
    }
    usd: dict[tuple[str, str, str, str], float] = {}
    rate: dict[tuple[str, str, str, str], float] = {}
    for commitment, offers in zip(settings.held_spend, rates, strict=True):
        for key, micros in {_key(offer): offer.usd_micros_per_hour for offer in reversed(offers)}.items():
            usd[key] = usd.get(key, 0.0) + commitment.usd_per_hour
            rate[key] = micros / 1e6
    nodes = {key: min(MOST_NODES, math.floor(usd[key] / rate[key] + 1e-9)) for key in usd if key not in known}
    covered = tuple(
        ExistingCommitment(provider=key[0], region=key[1], instance_type=key[2], price_kind=key[3], nodes=count)
        for key, count in sorted(nodes.items())
        if count
    )
    return replace(settings, held=settings.held + covered)


def charged(columns: Columns, settings: PlannerSettings) -> list[list[Offer]]:
    """The offers that each existing savings plan covers, in the order of the snapshot.

    Raises `UnusableInput` for a plan that covers none.
    """
    columns = discounted(columns, settings.discounts)
    covered_offers, faults = [], []
    for i, commitment in enumerate(settings.held_spend):
        pool = Pool(
            provider=commitment.provider,
            price_kind=commitment.price_kind,
            region=commitment.region,
            family=commitment.family,
        )
        kind = columns.kinds.index(commitment.price_kind) if commitment.price_kind in columns.kinds else -1
        rows = [columns.offer(int(i)) for i in (columns.kind_index == kind).nonzero()[0]]
        mine = [offer for offer in rows if pool.covers(offer)]
        covered_offers.append(mine)
        if not mine:
            faults.append(Fault(("settings", "held_spend", i), _nothing(commitment, rows)))
    if faults:
        raise UnusableInput(*faults)
    return covered_offers


def _nothing(commitment: ExistingSpendCommitment, rows: list[Offer]) -> str:
    """Why a plan covers nothing, and which values would be accepted."""
    of_provider = [row for row in rows if row.provider == commitment.provider]
    if not of_provider:
        return (
            f"covers nothing: the snapshot has no rates of {commitment.price_kind} on {commitment.provider}; "
            "refresh the prices, or leave the plan out"
        )
    families = sorted(
        {row.instance_type.partition(".")[0] for row in of_provider if commitment.region in ("", row.region)}
    )
    regions = sorted({row.region for row in of_provider})
    known = f"families {', '.join(families[:6])}" if families else f"regions {', '.join(regions[:6])}"
    return f"covers nothing in the snapshot; {commitment.price_kind} has rates for {known}"


def _key(offer: Offer) -> tuple[str, str, str, str]:
    return offer.provider, offer.region, offer.instance_type, offer.price_kind
