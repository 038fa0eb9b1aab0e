"""What a machine cost over time, as the snapshots that plans rested on say it."""

import shutil
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_of
from gpuplan.catalog.store.price_history import PricePoint
from gpuplan.catalog.store.price_points import Key
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, offer, snapshot

NAME = "p5.48xlarge"


def night(day: int) -> datetime:
    return NIGHT + timedelta(days=day)


def on(day: int, usd_micros: int = 98_320_000, **changes: Any) -> Offer:
    return offer(usd_micros, **{"observed_at": night(day)} | changes)


def written(store: Store, *snapshots: Snapshot) -> list[str]:
    return [store.put_snapshot(snapshot, source="refresh") for snapshot in snapshots]


def intervals(points: list[PricePoint]) -> list[tuple[int, datetime, datetime | None, bool]]:
    return [(point.usd_micros_per_hour, point.since, point.until, point.vanished) for point in points]


def test_a_point_stands_only_where_the_price_changed(store: Store) -> None:
    ids = written(store, *(snapshot(on(day, usd)) for day, usd in enumerate((5, 5, 7, 7, 5))))
    assert intervals(store.price_points(NAME, ids[-1])) == [
        (5, night(0), night(2), False),
        (7, night(2), night(4), False),
        (5, night(4), None, False),
    ]


def test_an_offer_that_vanished_says_when_and_one_that_came_back_has_a_gap(store: Store) -> None:
    other = "eu-west-1"
    ids = written(
        store,
        snapshot(on(0, 5), on(0, 9, region=other)),
        snapshot(on(1, 5)),
        snapshot(on(2, 5), on(2, 9, region=other)),
        snapshot(on(3, 9, region=other)),
    )
    points = store.price_points(NAME, ids[-1])
    assert [point.key[1] for point in points] == [other, other, "us-east-1"]
    assert intervals(points) == [
        (9, night(0), night(1), True),
        (9, night(2), None, False),
        (5, night(0), night(3), True),
    ]


def test_a_price_that_a_refresh_could_not_confirm_is_one_point_and_says_since_when(store: Store) -> None:
    stale: dict[str, Any] = {"observed_at": night(0), "stale_since": night(1)}
    ids = written(store, snapshot(on(0)), snapshot(on(0, **stale), on(1, 7, region="up")))
    points = [price_point for price_point in store.price_points(NAME, ids[-1]) if price_point.key[1] == "us-east-1"]
    assert [(point.stale_since, point.observed_at, point.until) for point in points] == [(night(1), night(0), None)]
    [before] = store.price_points(NAME, ids[0])
    assert before.stale_since is None


def test_a_change_of_risk_or_availability_is_no_change_of_price(store: Store) -> None:
    changed = on(1, interruptions_per_hour=0.5, available=False)
    ids = written(store, snapshot(on(0)), snapshot(changed))
    [point] = store.price_points(NAME, ids[-1])
    assert (point.since, point.until, point.available) == (night(0), None, False)


def test_a_history_ends_with_the_snapshot_it_is_asked_for(store: Store) -> None:
    ids = written(store, *(snapshot(on(day, usd)) for day, usd in enumerate((5, 7, 9))))
    assert intervals(store.price_points(NAME, ids[1])) == [(5, night(0), night(1), False), (7, night(1), None, False)]
    assert store.price_points("p4d.24xlarge", ids[1]) == []


def test_old_prices_that_came_with_a_release_after_newer_ones_leave_no_mark(store: Store) -> None:
    first = written(store, snapshot(on(10, 5)))
    store.put_snapshot(snapshot(on(0, 3, source="embedded")), source="embedded")
    last = written(store, snapshot(on(11, 5)), snapshot(on(12, 6)))
    assert store.current_snapshot_id() == last[-1]
    points = store.price_points(NAME, last[-1])
    assert intervals(points) == [(5, night(10), night(12), False), (6, night(12), None, False)]
    assert first[0] != last[0]


def test_a_reading_that_a_snapshot_beside_the_line_moved_on_is_told_as_the_line_has_it(store: Store) -> None:
    written(store, snapshot(on(10, 5, source="cloud")))
    store.put_snapshot(snapshot(on(0, 5, source="release")), source="embedded")
    [last] = written(store, snapshot(on(11, 6, source="cloud")))
    assert [price_point.source for price_point in store.price_points(NAME, last)] == ["cloud", "cloud"]


def test_times_never_run_backwards_when_the_clock_does(store: Store) -> None:
    ids = written(store, snapshot(on(5, 5)), snapshot(on(3, 6)), snapshot(on(6, 7)))
    points = store.price_points(NAME, ids[-1])
    assert [point.since for point in points] == [night(5), night(5), night(6)]


PRICED = st.builds(
    offer,
    st.integers(1, 3),
    region=st.sampled_from(["us-east-1", "eu-west-1"]),
    zone=st.sampled_from(["", "a"]),
    stale_since=st.sampled_from([None, NIGHT]),
    source=st.sampled_from(["", "somewhere"]),
    available=st.booleans(),
)


def series(line: list[Snapshot]) -> list[tuple[Key, int, datetime, datetime | None, bool, str, datetime | None]]:
    """The history as whole snapshots say it, without the tables."""
    times = [snapshot.observed_at for snapshot in line]
    offers = [{offer.key: offer for offer in snapshot.offers} for snapshot in line]
    result = []
    for key in sorted({key for by_key in offers for key in by_key}):
        prices = [by_key[key].usd_micros_per_hour if key in by_key else None for by_key in offers]
        begins = [i for i, price in enumerate(prices) if i == 0 or price != prices[i - 1]]
        for first, after in pairwise([*begins, len(line)]):
            price = prices[first]
            if price is not None:
                last, ended = offers[after - 1][key], after < len(line)
                gone = ended and prices[after] is None
                until = times[after] if ended else None
                result.append((key, price, times[first], until, gone, last.source, last.stale_since))
    return result


def observed(line: list[Snapshot]) -> list[tuple[Key, int, datetime, bool]]:
    """When which price of which offer was read, and whether without a gap, as whole snapshots say it."""
    offers = [{offer.key: offer for offer in snapshot.offers} for snapshot in line]
    result = []
    for key in sorted({key for by_key in offers for key in by_key}):
        price, last, gap = None, None, True
        for by_key in offers:
            item = by_key.get(key)
            if item is None:
                price, last, gap = None, None, True
                continue
            if item.usd_micros_per_hour != price:
                price, last = item.usd_micros_per_hour, None
            if item.observed_at != last:
                result.append((key, price, item.observed_at, not gap))
                last, gap = item.observed_at, False
            gap = gap or item.stale_since is not None
    return result


def test_a_price_is_seen_when_it_was_read_and_with_a_gap_where_it_was_not(store: Store) -> None:
    stale: dict[str, Any] = {"observed_at": night(1), "stale_since": night(2)}
    ids = written(
        store,
        snapshot(on(0, 5)),
        snapshot(on(1, 5)),
        snapshot(on(1, 5, **stale), on(2, 7, region="up")),
        snapshot(on(3, 5), on(3, 7, region="up")),
        snapshot(on(4, 6), on(4, 7, region="up")),
    )
    points = [price_point for price_point in store.price_points(NAME, ids[-1]) if price_point.key[1] == "us-east-1"]
    assert [point.observations for point in points] == [
        ((night(0), False), (night(1), True), (night(3), False)),
        ((night(4), True),),
    ]
    [single] = store.price_points(NAME, ids[0])
    assert single.observations == ((night(0), False),)


@pytest.mark.slow(reason="one long case")
@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(PRICED, min_size=1, max_size=4, unique_by=lambda item: item.key), min_size=1, max_size=6))
def test_the_history_from_the_tables_is_that_of_the_whole_snapshots(
    empty_store: Path, nights: list[list[Offer]]
) -> None:
    line = []
    for day, offers in enumerate(nights):
        seen = on(day, 1, region="a-region-that-is-always-read")
        read = [offer if offer.stale_since else replace(offer, observed_at=night(day)) for offer in offers]
        line.append(snapshot_of(TYPES, [*read, seen]))
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{shutil.copy(empty_store, folder)}")
        ids = written(store, *line)
        points = store.price_points(NAME, ids[-1])
        store.close()
    result = [
        (
            point.key,
            point.usd_micros_per_hour,
            point.since,
            point.until,
            point.vanished,
            point.source,
            point.stale_since,
        )
        for point in points
    ]
    assert result == series(line)
    assert [(point.key, point.usd_micros_per_hour, *one) for point in points for one in point.observations] == observed(
        line
    )
