"""Snapshots, plans and responses go in and come out the same on every database."""

import threading
import time
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
import sqlalchemy as sa

import gpuplan.catalog.snapshots.embedded_snapshot
import gpuplan.catalog.store.plan_store
import gpuplan.catalog.store.store
from gpuplan.catalog.model.offer import InstanceType
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.catalog.snapshots.snapshot import Snapshot, snapshot_id_of
from gpuplan.catalog.store.price_points import TYPE_FIELDS
from gpuplan.catalog.store.schema import instance_types, prices
from gpuplan.catalog.store.store import NotStored, Store
from tests.catalog.snapshots_for_tests import NIGHT, TYPES, many_offers, offer, snapshot

RICH = snapshot(
    offer(98_320_001),
    offer(31_000_000, price_kind="spot", zone="use1-az4", interruptions_per_hour=0.0125, modelled=("price", "rate")),
    offer(5_000_000_000, region="eu-west-1", available=False, observed_approximately=True),
    offer(1, region="eu-west-2", stale_since=NIGHT + timedelta(days=1), source='a "quoted", źródło'),
    offer(7, provider="azure", region="eastus", instance_type="NV6ads_A10_v5", partial=("disk: not stated",)),
)


def test_a_snapshot_comes_back_as_it_went_in(store: Store) -> None:
    store.put_snapshot(RICH, source="refresh")
    result = store.snapshot(RICH.id)
    assert result == RICH
    assert snapshot_id_of(result.instance_types, result.offers) == RICH.id


def test_a_time_given_in_another_zone_is_the_same_time_in_utc(store: Store) -> None:
    existing = datetime(2026, 11, 1, 5, 0, tzinfo=timezone(timedelta(hours=2)))
    stored = snapshot(offer(observed_at=existing))
    store.put_snapshot(stored, source="refresh")
    result = store.snapshot(stored.id).offers[0].observed_at
    assert result == existing
    assert result.tzinfo is UTC


def test_every_fact_of_an_instance_type_has_a_column() -> None:
    assert tuple(field.name for field in fields(InstanceType)) == TYPE_FIELDS
    assert set(TYPE_FIELDS) <= set(instance_types.c.keys())


def test_columns_are_those_of_the_rows(store: Store) -> None:
    store.put_snapshot(RICH, source="refresh")
    expected = columns_of(RICH.id, RICH.observed_at, RICH.instance_types, RICH.offers)
    result = store.columns(RICH.id)
    for field in fields(Columns):
        ours, theirs = getattr(result, field.name), getattr(expected, field.name)
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype, field.name
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
        elif field.name == "offers":
            assert list(ours) == list(theirs)
            assert list(ours[1:3]) == list(theirs[1:3])
        else:
            assert ours == theirs, field.name


def test_columns_are_read_once_for_many_threads(store: Store) -> None:
    store.put_snapshot(RICH, source="refresh")
    columnses: list[Columns] = []
    threads = [threading.Thread(target=lambda: columnses.append(store.columns(RICH.id))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(columnses) == 16
    assert all(columnse is columnses[0] for columnse in columnses)


def test_only_a_few_snapshots_stay_in_memory(store: Store) -> None:
    stored = [many_offers(3, {0: 5_000 + i}) for i in range(6)]
    for item in stored:
        store.put_snapshot(item, source="refresh")
    first = store.columns(stored[0].id)
    for item in stored[1:]:
        store.columns(item.id)
    assert store.columns(stored[0].id) is not first


def test_the_same_snapshot_is_written_once(store: Store) -> None:
    store.put_snapshot(RICH, source="refresh")
    before = store.snapshots()
    assert store.put_snapshot(RICH, source="embedded") == RICH.id
    assert store.snapshots() == before


def test_offers_of_an_unknown_instance_type_are_refused_whole(store: Store) -> None:
    wrong = Snapshot(id="x" * 32, observed_at=NIGHT, instance_types=TYPES[:1], offers=RICH.offers)
    with pytest.raises(ValueError, match="instance types that the snapshot lacks"):
        store.put_snapshot(wrong, source="refresh")
    assert store.snapshots() == []


def test_snapshots_are_listed_with_their_origin_newest_first(store: Store) -> None:
    first, second = many_offers(4), many_offers(5, observed_at=NIGHT + timedelta(days=1))
    store.put_snapshot(first, source="embedded")
    store.put_snapshot(second, source="refresh")
    newest, oldest = store.snapshots()
    assert (newest.id, newest.source, newest.parent, newest.offer_count) == (second.id, "refresh", first.id, 5)
    assert (oldest.id, oldest.source, oldest.parent, oldest.observed_at) == (first.id, "embedded", None, NIGHT)
    assert abs(datetime.now(UTC) - newest.created_at) < timedelta(minutes=1)


def test_the_refresh_written_last_is_current_even_if_its_newest_rows_are_older(store: Store) -> None:
    first, last = many_offers(4, observed_at=NIGHT + timedelta(days=1)), many_offers(4)
    store.put_snapshot(first, source="refresh")
    store.put_snapshot(last, source="refresh")
    assert store.current_snapshot_id() == last.id


def test_embedded_prices_of_a_newer_release_do_not_push_out_a_newer_refresh(store: Store) -> None:
    refreshed = many_offers(4, observed_at=NIGHT + timedelta(days=10))
    store.put_snapshot(many_offers(3), source="embedded")
    store.put_snapshot(refreshed, source="refresh")
    store.put_snapshot(many_offers(4, {0: 9}, observed_at=NIGHT + timedelta(days=5)), source="embedded")
    assert store.current_snapshot_id() == refreshed.id


def test_embedded_prices_of_a_newer_release_push_out_an_older_refresh(store: Store) -> None:
    shipped = many_offers(4, {0: 9}, observed_at=NIGHT + timedelta(days=20))
    store.put_snapshot(many_offers(3), source="embedded")
    store.put_snapshot(many_offers(4, observed_at=NIGHT + timedelta(days=10)), source="refresh")
    store.put_snapshot(shipped, source="embedded")
    assert store.current_snapshot_id() == shipped.id


def test_a_snapshot_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    store.put_snapshot(RICH, source="refresh")
    assert store.snapshot(RICH.id[:6].upper()).id == RICH.id
    assert store.columns(RICH.id[:6]) is store.columns(RICH.id)


def test_an_ambiguous_beginning_names_the_snapshots(store: Store) -> None:
    twins = [replace(many_offers(2, {0: 10 + i}), id=f"abc{i}" * 8) for i in range(2)]
    for twin in twins:
        store.put_snapshot(twin, source="refresh")
    with pytest.raises(NotStored, match=r"several snapshots begin with 'abc'; nearest: abc1.*, abc0"):
        store.snapshot("abc")


def test_a_missing_snapshot_is_answered_with_the_nearest(store: Store) -> None:
    store.put_snapshot(replace(RICH, id="0" * 32), source="refresh")
    for wanted in ("ffff", "", "  ", "%", "x" * 5000, "'; drop table prices", "\x00"):
        with pytest.raises(NotStored, match=f"snapshot: no snapshot .*; nearest: {'0' * 32}") as caught:
            store.columns(wanted)
        assert caught.value.faults[0].pointer == "/snapshot"
        assert len(str(caught.value)) < 400


def test_an_empty_store_says_that_it_has_no_snapshot(store: Store) -> None:
    with pytest.raises(NotStored, match="none is stored yet"):
        store.snapshot("abc")


def test_a_price_kind_of_a_newer_release_is_named(store: Store) -> None:
    strange = snapshot(offer(price_kind="barter"))
    store.put_snapshot(strange, source="refresh")
    with pytest.raises(StoreFailure, match="price kinds barter come from a newer gpuplan"):
        store.columns(strange.id)


def test_the_embedded_snapshot_is_loaded_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Snapshot] = []

    def embedded() -> Snapshot:
        loaded.append(RICH)
        return RICH

    monkeypatch.setattr(gpuplan.catalog.snapshots.embedded_snapshot, "embedded_snapshot", embedded)
    monkeypatch.setattr(gpuplan.catalog.store.store, "embedded_snapshot_id", lambda: RICH.id)
    assert store.current_snapshot_id() == RICH.id
    store.ensure_embedded()
    assert store.current_snapshot_id() == RICH.id
    assert len(loaded) == 1
    assert [snapshot.source for snapshot in store.snapshots()] == ["embedded"]


def test_a_new_release_brings_its_embedded_snapshot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpuplan.catalog.snapshots.embedded_snapshot, "embedded_snapshot", lambda: many_offers(3))
    store.ensure_embedded()
    newer = many_offers(3, {0: 77}, observed_at=NIGHT + timedelta(days=30))
    monkeypatch.setattr(gpuplan.catalog.snapshots.embedded_snapshot, "embedded_snapshot", lambda: newer)
    monkeypatch.setattr(gpuplan.catalog.store.store, "embedded_snapshot_id", lambda: newer.id)
    store.ensure_embedded()
    assert store.current_snapshot_id() == newer.id
    assert len(store.snapshots()) == 2


def test_a_release_without_its_prices_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpuplan.catalog.store.store, "data_table", lambda _: [])
    with pytest.raises(StoreFailure, match=r"the embedded catalogue cannot be read .*; reinstall gpuplan"):
        store.current_snapshot_id()


def test_the_real_embedded_snapshot_goes_in_and_out(tmp_path: object, open_store: Callable[[str], Store]) -> None:
    store = open_store(f"sqlite:///{tmp_path}/gpuplan.sqlite3")
    embedded = gpuplan.catalog.snapshots.embedded_snapshot.embedded_snapshot()
    begun = time.process_time()
    store.ensure_embedded()
    assert time.process_time() - begun < 1.0
    assert store.snapshot(store.current_snapshot_id()) == embedded
    assert len(store.columns(embedded.id)) == len(embedded.offers)


def test_a_plan_comes_back_as_it_was_saved(store: Store) -> None:
    job = {"name": "résumé", "deadline": "14d"}
    outcome = {"outcome": "planned", "plan": {"cost_usd": "12.30", "hours": 0.1 + 0.2, "phases": [None, True]}}
    store.save_plan("p1", "s1", job, outcome, NIGHT)
    result = store.plan("p1")
    assert (result.id, result.snapshot_id, result.created_at) == ("p1", "s1", NIGHT)
    assert result.job == job
    assert list(result.outcome["plan"]) == ["cost_usd", "hours", "phases"]
    assert result.outcome == outcome


def test_a_plan_saved_again_stays_as_it_was(store: Store) -> None:
    store.save_plan("p1", "s1", {}, {"outcome": "planned"}, NIGHT)
    store.save_plan("p1", "s1", {}, {"outcome": "planned"}, NIGHT + timedelta(hours=1))
    assert store.plan("p1").created_at == NIGHT


def test_a_missing_plan_is_named(store: Store) -> None:
    with pytest.raises(NotStored, match="plan: no plan 'p9' is stored here"):
        store.plan("p9")


def test_what_json_cannot_say_is_never_saved(store: Store) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.save_plan("p1", "s1", {}, {"hours": float("nan")}, NIGHT)


def test_a_time_without_a_zone_is_never_saved(store: Store) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        store.save_plan("p1", "s1", {}, {}, NIGHT.replace(tzinfo=None))


def test_a_repeated_request_gets_the_first_response(store: Store) -> None:
    assert store.recall("k", "POST /v1/plans", "h1") is None
    assert store.remember("k", "POST /v1/plans", "h1", {"status": 201}) == {"status": 201}
    assert store.remember("k", "POST /v1/plans", "h1", {"status": 500}) == {"status": 201}
    assert store.recall("k", "POST /v1/plans", "h1") == {"status": 201}
    assert store.recall("k", "POST /v1/portfolios", "h1") is None


def test_a_key_used_for_another_request_is_refused(store: Store) -> None:
    store.remember("k", "POST /v1/plans", "h1", {})
    with pytest.raises(UnusableInput, match="Idempotency-Key: 'k' was used for another request"):
        store.recall("k", "POST /v1/plans", "h2")
    with pytest.raises(UnusableInput, match="used for another request"):
        store.remember("k", "POST /v1/plans", "h2", {})


def test_a_response_is_forgotten_after_its_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.remember("k", "POST /v1/plans", "h1", {"status": 201})
    monkeypatch.setattr(gpuplan.catalog.store.plan_store, "KEEP_RESPONSES", timedelta(0))
    assert store.recall("k", "POST /v1/plans", "h1") is None
    store.remember("k2", "POST /v1/plans", "h1", {})
    monkeypatch.undo()
    assert store.recall("k", "POST /v1/plans", "h1") is None


def test_a_store_answers_that_it_is_there(store: Store) -> None:
    store.ping()


def test_a_store_opened_again_has_everything(url: str, open_store: Callable[[str], Store]) -> None:
    open_store(url).put_snapshot(RICH, source="refresh")
    again = open_store(url)
    assert again.snapshot(RICH.id) == RICH
    with again.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(prices)).scalar() == len(RICH.offers)
