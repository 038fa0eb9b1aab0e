"""What refreshes did is kept, with the snapshot in one transaction or without one."""

from datetime import timedelta
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.refresh_store import RefreshRecord
from gpuplan.catalog.store.store import NotStored, Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers


def record(name: str, day: int, outcome: str = "whole", snapshot_id: str | None = None) -> RefreshRecord:
    report: dict[str, Any] = {"summary": f"refresh: {outcome}", "providers": []}
    started = NIGHT + timedelta(days=day)
    return RefreshRecord(
        id=name,
        started_at=started,
        finished_at=started + timedelta(seconds=41),
        outcome=outcome,
        snapshot_id=snapshot_id,
        report=report,
    )


def test_a_refresh_and_its_snapshot_are_written_together(store: Store) -> None:
    fresh = many_offers(4)
    store.record_refresh(record("r1", 1, snapshot_id=fresh.id), fresh)
    assert store.current_snapshot_id() == fresh.id
    assert store.snapshot(fresh.id) == fresh
    assert store.refresh("r1") == record("r1", 1, snapshot_id=fresh.id)


def test_a_refresh_without_a_snapshot_leaves_the_last_one_current(store: Store) -> None:
    store.record_refresh(record("r1", 1), many_offers(4))
    store.record_refresh(record("r2", 2, "failed"), None)
    assert store.current_snapshot_id() == many_offers(4).id
    assert store.last_refresh() == record("r2", 2, "failed")


def test_refreshes_are_listed_newest_first(store: Store) -> None:
    assert (store.refreshes(), store.last_refresh(), store.last_whole_refresh_at()) == ((), None, None)
    for day, outcome in enumerate(("whole", "partial", "refused")):
        store.record_refresh(record(f"r{day}", day, outcome), None)
    assert [refresh.id for refresh in store.refreshes()] == ["r2", "r1", "r0"]
    assert store.last_whole_refresh_at() == record("r0", 0).finished_at


def test_a_record_that_the_database_refuses_takes_its_snapshot_with_it(store: Store) -> None:
    with pytest.raises(StoreFailure, match="outcome"):
        store.record_refresh(record("r1", 1, "splendid"), many_offers(4))
    assert (store.refreshes(), store.snapshots()) == ((), [])


def test_a_refresh_that_is_not_stored_is_said_so(store: Store) -> None:
    with pytest.raises(NotStored, match="refresh: no refresh 'r9' is stored here"):
        store.refresh("r9")


def test_a_report_is_completed_with_what_became_known_later(store: Store) -> None:
    store.record_refresh(record("r1", 1), many_offers(4))
    store.rewrite_report("r1", {"summary": "and then"})
    remaining = store.refresh("r1")
    assert (remaining.report, remaining.started_at) == ({"summary": "and then"}, record("r1", 1).started_at)


def test_the_times_of_all_refreshes_are_known(store: Store) -> None:
    for day, outcome in enumerate(("whole", "failed")):
        store.record_refresh(record(f"r{day}", day, outcome), None)
    assert store.refresh_times() == {NIGHT, NIGHT + timedelta(days=1)}
