"""What two snapshots do not say the same of: cheaper and dearer apart, counted over all, filtered for the page."""

import pytest

from gpuplan.api.schemas.prices import OfferChangeRow
from gpuplan.api.services.offer_changes import WHAT, ChangedOffer, changed, grouped, what_happened


def row(
    what: list[str],
    before: str | None,
    after: str | None,
    *,
    provider: str = "aws",
    instance_type: str = "p5.48xlarge",
) -> OfferChangeRow:
    return OfferChangeRow(
        provider=provider,
        region="us-east-1",
        zone="",
        instance_type=instance_type,
        price_kind="on_demand",
        what=tuple(what),
        usd_per_hour_before=before,
        usd_per_hour_after=after,
        change_percent=None,
        stale_since=None,
    )


ROWS = [
    row(["changed"], "10.00", "5.00"),
    row(["changed", "fresh_again"], "9.5", "10.00", provider="gcp", instance_type="a3-highgpu-8g"),
    row(["new"], None, "1.00", instance_type="p6-b200.48xlarge"),
    row(["vanished"], "1.00", None),
    row(["became_stale"], "1.00", "1.00"),
]


def test_each_change_has_its_words_and_a_price_is_compared_as_a_number() -> None:
    assert [what_happened(row) for row in ROWS] == [["cheaper"], ["dearer", "fresh"], ["new"], ["gone"], ["stale"]]


def test_counts_are_of_all_rows_whatever_is_shown() -> None:
    changes = changed(ROWS, what="cheaper")
    assert changes.rows == [ChangedOffer(row=ROWS[0], words=("cheaper",))]
    counts = dict.fromkeys(WHAT, 0) | {"cheaper": 1, "new": 1, "gone": 1, "stale": 1}
    assert changes.counts["aws"] == counts
    assert changes.total == counts | {"dearer": 1, "fresh": 1}
    assert changes.moved == 4


def test_an_offer_that_can_no_longer_be_had_is_told_although_its_price_stayed() -> None:
    closed = row(["became_unavailable", "became_stale"], "1.00", "1.00")
    changes = changed([closed])
    assert [change.words for change in changes.rows] == [("unavailable", "stale")]
    assert (changes.moved, list(grouped([closed]))) == (1, ["unavailable"])


def test_an_offer_whose_price_stayed_is_shown_only_if_its_staleness_is_asked_for() -> None:
    assert "stale" not in {word for change in changed(ROWS).rows for word in change.words}
    assert [change.row.what for change in changed(ROWS, what="stale").rows] == [("became_stale",)]
    assert changed(ROWS[4:]).moved == 0


def test_each_offer_stands_in_one_group_in_the_order_of_what_matters() -> None:
    groups = grouped(ROWS)
    assert list(groups) == ["dearer", "cheaper", "new", "gone", "stale"]
    assert sum(map(len, groups.values())) == len(ROWS)


@pytest.mark.parametrize(("pattern", "count"), [("P5*", 2), ("p6-b200.48xlarge", 1), ("h100", 0)])
def test_instance_types_match_by_pattern_without_case(pattern: str, count: int) -> None:
    assert len(changed(ROWS, instance_type=pattern).rows) == count


def test_the_order_is_kept() -> None:
    assert [change.row for change in changed(ROWS).rows] == ROWS[:4]
