"""The freshness of a provider's prices says what is true now."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuplan.api.services.price_freshness import provider_freshness
from gpuplan.catalog.store.store_counts import ProviderPrices

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("newest_hours", "oldest_hours", "stale", "freshness"),
    [(1, 2, 0, "fresh"), (1, 2, 1, "partly old"), (1, 37, 0, "partly old"), (37, 90, 90, "old"), (36, 36, 0, "fresh")],
)
def test_a_badge_says_fresh_only_where_every_price_is(
    newest_hours: float, oldest_hours: float, stale: int, freshness: str
) -> None:
    prices = ProviderPrices(
        provider="aws",
        offers=90,
        stale=stale,
        newest_at=NOW - timedelta(hours=newest_hours),
        oldest_at=NOW - timedelta(hours=oldest_hours),
    )
    [row] = provider_freshness([prices], now=NOW, limit_hours=36)
    assert (row.freshness, row.newest_hours, row.oldest_hours) == (freshness, newest_hours, oldest_hours)
    # What is true at one moment is told anew at the next.
    [later] = provider_freshness([prices], now=NOW + timedelta(hours=36.5), limit_hours=36)
    assert later.freshness == "old"
