"""Where a machine has a price: what clouds are asked about it, and what it costs where they answer."""

from collections.abc import Sequence

import numpy as np

from gpuplan.api.services.capacity_candidates import Candidate
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns

#: Regions that are asked about when none is named: those with a price, at most so many per machine.
MOST_REGIONS = 20


def offers_of(columns: Columns, machine: str) -> list[Offer]:
    """Every offer of an instance type. Raises `UnusableInput` at `machine` for one without any."""
    types = [i for i, row in enumerate(columns.instance_types) if row.name == machine]
    offers = [columns.offer(int(i)) for i in np.flatnonzero(np.isin(columns.type_index, types))]
    if not offers:
        message = f"no instance type is called {machine[:80]!r}; gpuplan offers --instance-type 'p5*' lists names"
        raise UnusableInput.at("machine", message=message)
    return offers


def priced_candidates(
    columns: Columns, machine: str, nodes: int, kind: str, regions: Sequence[str] = ()
) -> list[Candidate]:
    """Where the machine has a price of this kind, the cheapest regions first, or the named regions.

    Raises `UnusableInput` for a machine, region or price kind that the snapshot does not have.
    """
    if kind not in price_kinds():
        raise UnusableInput.at("kind", message=f"{kind[:40]!r} is no price kind; accepted: {', '.join(price_kinds())}")
    offers = offers_of(columns, machine)
    cheapest: dict[tuple[str, str], int] = {}
    for offer in offers:
        place = offer.provider, offer.region
        if offer.price_kind == kind:
            cheapest[place] = min(offer.usd_micros_per_hour, cheapest.get(place, offer.usd_micros_per_hour))
    places = sorted(cheapest, key=lambda place: (cheapest[place], place))[:MOST_REGIONS]
    if regions:
        sold = {(offer.provider, offer.region) for offer in offers}
        places = [place for place in sorted(sold) if place[1] in regions]
        if strange := set(regions) - {region for _, region in places}:
            known = ", ".join(sorted({region for _, region in sold}))
            message = f"{machine} has no price in {min(strange)[:60]!r}; accepted: {known}"
            raise UnusableInput.at("region", message=message)
    if not places:
        kinds = ", ".join(sorted({offer.price_kind for offer in offers}))
        raise UnusableInput.at("kind", message=f"{machine} has no {kind} price; accepted: {kinds}")
    return [
        Candidate(provider=provider, instance_type=machine, region=region, nodes=nodes, kind=kind)
        for provider, region in places
    ]
