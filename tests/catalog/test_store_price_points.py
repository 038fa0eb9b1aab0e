"""A refresh writes what it changes, and every earlier snapshot still reads as it was."""

import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.catalog.store.schema import instance_types, prices, readings
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, many_offers, offer, snapshot

OFFERS = st.builds(
    offer,
    st.integers(1, 3),
    region=st.sampled_from(["us-east-1", "eu-west-1"]),
    zone=st.sampled_from(["", "a", "b"]),
    price_kind=st.sampled_from(["on_demand", "spot"]),
    observed_at=st.sampled_from([NIGHT + timedelta(days=i) for i in range(3)]),
    stale_since=st.sampled_from([None, NIGHT]),
    interruptions_per_hour=st.sampled_from([None, 0.5]),
    source=st.sampled_from(["", "somewhere"]),
    partial=st.sampled_from([(), ("disk",)]),
    available=st.booleans(),
)
NIGHTS = st.lists(st.lists(OFFERS, min_size=1, max_size=12, unique_by=lambda item: item.key), min_size=1, max_size=6)


@pytest.mark.slow(reason="one long case")
@settings(max_examples=12, deadline=None)
@given(NIGHTS)
def test_whatever_changes_from_night_to_night_every_snapshot_reads_as_it_was(
    empty_store: Path, nights: list[list[Offer]]
) -> None:
    written = [snapshot_of(TYPES[: 1 + len(offers) % 2], offers) for offers in nights]
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{shutil.copy(empty_store, folder)}")
        for item in written:
            store.put_snapshot(item, source="refresh")
        for item in written:
            assert store.snapshot(item.id) == item
        store.close()


def _rows(store: Store, table: sa.Table) -> int:
    with store.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_a_night_that_confirms_every_price_writes_one_reading_per_place(store: Store) -> None:
    for night in range(3):
        store.put_snapshot(many_offers(200, observed_at=NIGHT + timedelta(days=night)), source="refresh")
    assert _rows(store, prices) == 200
    assert _rows(store, readings) == 3 * 10
    assert _rows(store, instance_types) == len(TYPES)


def test_a_night_that_changes_four_prices_writes_four(store: Store) -> None:
    store.put_snapshot(many_offers(200), source="refresh")
    changed = many_offers(200, dict.fromkeys((3, 50, 51, 199), 9000000), observed_at=NIGHT + timedelta(days=1))
    store.put_snapshot(changed, source="refresh")
    assert _rows(store, prices) == 204
    assert _rows(store, readings) == 20


def test_a_place_that_goes_stale_and_recovers_writes_no_price(store: Store) -> None:
    def night(day: int, *, stale: bool) -> list[Offer]:
        seen = NIGHT + timedelta(days=day)
        fresh = [offer(i + 1, region="up", zone=str(i), observed_at=seen) for i in range(20)]
        when = {"observed_at": NIGHT, "stale_since": seen} if stale else {"observed_at": seen}
        return fresh + [offer(i + 1, region="down", zone=str(i), **when) for i in range(20)]

    for day, stale in enumerate([False, True, True, False]):
        store.put_snapshot(snapshot(*night(day, stale=stale)), source="refresh")
    assert _rows(store, prices) == 40


def test_rows_that_part_from_their_reading_are_rewritten_alone(store: Store) -> None:
    store.put_snapshot(many_offers(100), source="refresh")
    apart = [offer(1_000_000 + i, region=f"region-{i % 10}", zone=f"zone-{i}") for i in range(100)]
    apart[7] = offer(1_000_007, region="region-7", zone="zone-7", source="another source")
    store.put_snapshot(snapshot(*apart), source="refresh")
    assert _rows(store, prices) == 101
    assert _rows(store, readings) == 11


def test_a_year_of_nightly_refreshes_of_60_000_prices_stays_under_500_mb(
    tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    file = tmp_path / "gpuplan.sqlite3"
    offers, nights, daily_change = 1_500, 8, 30
    store = open_store(f"sqlite:///{file}")
    sizes = []
    for night in range(nights):
        changes = {(night * daily_change + i) % offers: 2_000_000 + night for i in range(daily_change)}
        store.put_snapshot(many_offers(offers, changes, observed_at=NIGHT + timedelta(days=night)), source="refresh")
        with store.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql("BEGIN")
        sizes.append(file.stat().st_size)
    scale = 60_000 / offers
    a_night = (sizes[-1] - sizes[0]) / (nights - 1)
    assert scale * (sizes[0] + 365 * a_night) < 500e6
