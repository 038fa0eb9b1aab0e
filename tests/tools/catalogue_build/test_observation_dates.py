"""When a price was read."""

from datetime import UTC, datetime

import pytest

from tools.catalogue_build.fact_tables import observed


@pytest.mark.parametrize(
    ("as_of", "at", "approximately"),
    [
        ("2026-07-30", datetime(2026, 7, 30, tzinfo=UTC), False),
        ("2026-03..2026-07", datetime(2026, 3, 1, tzinfo=UTC), True),
        ("2025", datetime(2025, 1, 1, tzinfo=UTC), True),
        ("2025-06", datetime(2025, 6, 1, tzinfo=UTC), True),
    ],
)
def test_a_vague_date_is_its_earliest_day_and_says_so(as_of: str, at: datetime, approximately: bool) -> None:
    assert observed(as_of) == (at, approximately)


def test_an_undated_price_is_as_old_as_its_table_can_be() -> None:
    source = "skypilot-catalog v8/aws/vms.csv@00148f2a (hand-transcribed)"
    assert observed("undated", read_from=source, price_kind="spot") == (datetime(2025, 12, 1, tzinfo=UTC), True)


@pytest.mark.parametrize("as_of", ["undated", "soon", "", "2026-13-01"])
def test_a_date_that_says_nothing_is_refused(as_of: str) -> None:
    with pytest.raises(ValueError):
        observed(as_of, read_from="an unknown table", price_kind="spot")
