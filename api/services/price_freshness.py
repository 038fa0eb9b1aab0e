"""How fresh each provider's prices are, in a few words that are true at the moment they are asked for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gpuplan.catalog.store.store_counts import ProviderPrices

#: `fresh`: all read within the limit, and confirmed by the last refresh. `partly old`: some are older or unconfirmed.
#: `old`: none was read within the limit.
Freshness = Literal["fresh", "partly old", "old"]

_WORST_FIRST = ("old", "partly old", "fresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFreshness:
    """A provider's prices, their freshness, and the hours since the newest and the oldest of them was read."""

    prices: ProviderPrices
    freshness: Freshness
    newest_hours: float
    oldest_hours: float


def provider_freshness(
    prices: Iterable[ProviderPrices], *, now: datetime, limit_hours: float
) -> list[ProviderFreshness]:
    """The freshness of each provider at `now`, those that are not fresh first."""
    rows = []
    for price in prices:
        newest, oldest = ((now - at).total_seconds() / 3600 for at in (price.newest_at, price.oldest_at))
        freshness: Freshness = "old" if newest > limit_hours else "fresh"
        if freshness == "fresh" and (price.stale or oldest > limit_hours):
            freshness = "partly old"
        rows.append(ProviderFreshness(prices=price, freshness=freshness, newest_hours=newest, oldest_hours=oldest))
    return sorted(rows, key=lambda row: _WORST_FIRST.index(row.freshness))
