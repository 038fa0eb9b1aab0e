"""Who sells an accelerator, and from how much."""

from dataclasses import dataclass

import numpy as np

from gpuplan.api.services.accelerator_prices import Cheapest
from gpuplan.api.services.offer_selection import Shapes
from gpuplan.catalog.model.price_kinds import PriceKind, price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns

#: How an accelerator is paid, in the order of a table.
WAYS = ("on demand", "interruptible", "committed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seller:
    """A provider with the number of its offers and places, and its least price per accelerator-hour by way of paying."""

    provider: str
    offers: int
    regions: int
    least: dict[str, Cheapest]


def sellers(columns: Columns, name: str) -> list[Seller]:
    """The providers that sell this accelerator, the cheapest first. Compared are whole prices of machines that can be had."""
    has_it = np.fromiter((machine.accelerator == name for machine in columns.instance_types), np.bool_)
    indices = np.flatnonzero(has_it[columns.type_index])
    prices = columns.usd_per_hour[indices] / Shapes.of(columns).accelerators[columns.type_index[indices]]
    usable = columns.plannable[indices] & columns.verified[indices]
    ways = [way_of(price_kinds()[kind]) for kind in columns.kinds]
    by_provider: dict[str, Seller] = {}
    regions: dict[str, set[str]] = {}
    for at in np.argsort(prices, kind="stable").tolist():
        index = int(indices[at])
        provider, region = columns.regions[columns.region_index[index]]
        regions.setdefault(provider, set()).add(region)
        seller = by_provider.get(provider) or Seller(provider=provider, offers=0, regions=0, least={})
        way = ways[columns.kind_index[index]]
        if usable[at] and way is not None and way not in seller.least:
            seller.least[way] = Cheapest(usd_per_hour=float(prices[at]), offer=columns.offer(index))
        by_provider[provider] = Seller(
            provider=provider, offers=seller.offers + 1, regions=len(regions[provider]), least=seller.least
        )
    return sorted(by_provider.values(), key=_lowest)


def way_of(kind: PriceKind) -> str | None:
    """How a price kind is paid; None for one that fits none of the ways."""
    if kind.is_plain:
        return "on demand"
    if kind.interruptible:
        return "interruptible"
    return "committed" if kind.term_hours else None


def _lowest(seller: Seller) -> tuple[float, str]:
    return min((one.usd_per_hour for one in seller.least.values()), default=np.inf), seller.provider
