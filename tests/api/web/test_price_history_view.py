"""A history as the page shows it: cut to the span that is looked at, with ranges weighed by time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.services.price_history import point_row
from gpuplan.api.web.price_history_view import Stretch, median_over_time, price_series
from gpuplan.catalog.store.price_history import Observation, PricePoint

DAY = timedelta(days=1)
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def row(
    usd: int, first: int, last: int | None, *, region: str = "us-east-1", vanished: bool = False, seen: int = 1
) -> PricePoint:
    """A price from one day to another, seen on each of its first `seen` days."""
    since = BEGIN + first * DAY
    return PricePoint(
        key=("aws", region, "", "p5.48xlarge", "on_demand"),
        usd_micros_per_hour=usd * 1_000_000,
        since=since,
        until=None if last is None else BEGIN + last * DAY,
        vanished=vanished,
        available=True,
        source="",
        observed_at=since + (seen - 1) * DAY,
        stale_since=None,
        modelled=(),
        partial=(),
        observations=tuple(Observation(since + day * DAY, day > 0) for day in range(seen)),
    )


def test_an_offer_has_its_range_its_changes_and_its_last_price() -> None:
    [series] = price_series([row(10, 0, 6), row(30, 6, 8), row(20, 8, None)], begin=None, end=BEGIN + 10 * DAY)
    assert (series.lowest, series.median, series.highest, series.now, series.changes) == (10, 10, 30, 20, 2)
    assert (series.place, series.kind) == ("aws us-east-1", "on demand")


def test_what_lies_outside_the_span_is_cut_off() -> None:
    rows = [row(10, 0, 4), row(30, 4, 8), row(20, 8, None)]
    [series] = price_series(rows, begin=BEGIN + 5 * DAY, end=BEGIN + 7 * DAY)
    assert [(stretch.usd, stretch.starts, stretch.ends) for stretch in series.stretches] == [
        (30, BEGIN + 5 * DAY, BEGIN + 7 * DAY)
    ]
    assert series.now == 30
    assert price_series(rows[:1], begin=BEGIN + 5 * DAY, end=BEGIN + 7 * DAY) == []


def test_what_vanished_has_no_last_price_and_comes_after_the_rest() -> None:
    gone = row(1, 0, 3, region="eu-west-1", vanished=True)
    all_series = price_series([gone, row(9, 0, None)], begin=None, end=BEGIN + 10 * DAY)
    assert [(series.place, series.now) for series in all_series] == [("aws us-east-1", 9), ("aws eu-west-1", None)]


def test_prices_that_held_no_time_have_a_plain_median() -> None:
    [series] = price_series([row(5, 0, None)], begin=None, end=BEGIN)
    assert (series.lowest, series.median, series.highest, series.now) == (5, 5, 5, 5)


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 50)), min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_the_median_leaves_no_more_than_half_of_the_time_on_either_side(parts: list[tuple[int, int]]) -> None:
    stretches, at = [], BEGIN
    for usd, days in parts:
        stretches.append(
            Stretch(starts=at, ends=at + days * DAY, usd=float(usd), vanished=False, row=point_row(row(usd, 0, None)))
        )
        at += days * DAY
    median = median_over_time(stretches)
    days_of = [days for _, days in parts] if any(days for _, days in parts) else [1] * len(parts)
    half = sum(days_of) / 2
    assert sum(days for (usd, _), days in zip(parts, days_of, strict=True) if usd < median) <= half
    assert sum(days for (usd, _), days in zip(parts, days_of, strict=True) if usd > median) <= half
    assert median in {float(usd) for usd, _ in parts}


@pytest.mark.parametrize("end", [BEGIN, BEGIN + DAY / 2])
def test_a_span_that_ends_before_a_price_does_not_show_it(end: datetime) -> None:
    all_series = price_series([row(5, 1, None)], begin=None, end=end)
    assert all_series == []


def test_what_was_seen_outside_of_the_span_is_no_observation_of_it() -> None:
    [series] = price_series([row(5, 0, None, seen=8)], begin=BEGIN + 2 * DAY, end=BEGIN + 4 * DAY)
    assert [one.at for _, one in series.seen] == [BEGIN + day * DAY for day in (2, 3, 4)]
    [series] = price_series([row(5, 0, None)], begin=BEGIN + 2 * DAY, end=BEGIN + 4 * DAY)
    assert (series.seen, series.now) == ((), 5)
