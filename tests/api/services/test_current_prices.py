"""Questions wait for the prices of a refresh, or go on with all of the last: never with a part of each."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.current_prices import CurrentColumns
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from tests.catalog.snapshots_for_tests import many_offers, snapshot
from tests.patience import until
from tests.providers.fake_clouds import SHIPPED_AT, price
from tests.providers.fake_clouds import snapshot as priced

OLD, NEW, NEWEST = snapshot(), many_offers(3), many_offers(5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store_of_snapshots = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    for priced_snapshot in (OLD, NEW, NEWEST):
        store_of_snapshots.put_snapshot(priced_snapshot, source="refresh")
    yield store_of_snapshots
    store_of_snapshots.close()


class Authenticator:
    """Lets arranging of a snapshot's columns go on when it is opened."""

    def __init__(self, *held: str) -> None:
        self.reached = {snapshot_id: threading.Event() for snapshot_id in held}
        self.opened = {snapshot_id: threading.Event() for snapshot_id in held}

    def arrange(self, columns: Columns) -> None:
        if columns.snapshot_id in self.opened:
            self.reached[columns.snapshot_id].set()
            assert self.opened[columns.snapshot_id].wait(60)


def until_ready(current: CurrentColumns, snapshot_id: str) -> Columns:
    return until(lambda: prices if (prices := current.of(snapshot_id)).snapshot_id == snapshot_id else None)


def test_a_question_waits_for_new_prices_until_they_are_whole(store: Store) -> None:
    arranged: list[str] = []
    current = CurrentColumns(store.columns, lambda columns: arranged.append(columns.snapshot_id))
    current.prepare(OLD.id)
    with ThreadPoolExecutor(8) as pool:
        prices = list(pool.map(current.of, [NEW.id] * 8))
    assert {state.snapshot_id for state in prices} == {NEW.id}
    assert arranged == [OLD.id, NEW.id]


def test_requests_go_on_with_the_last_prices_where_the_new_ones_take_too_long(store: Store) -> None:
    authenticator = Authenticator(NEW.id)
    current = CurrentColumns(store.columns, authenticator.arrange, most_wait_seconds=0.01)
    current.prepare(OLD.id)
    last = current.of(OLD.id)
    assert current.of(NEW.id) is last
    assert authenticator.reached[NEW.id].wait(60)
    assert all(current.of(NEW.id) is last for _ in range(5))
    authenticator.opened[NEW.id].set()
    assert len(until_ready(current, NEW.id)) == 3


def test_prices_that_were_overtaken_never_come_after_newer_ones(store: Store) -> None:
    authenticator = Authenticator(NEW.id, NEWEST.id)
    current = CurrentColumns(store.columns, authenticator.arrange, most_wait_seconds=0.01)
    current.prepare(OLD.id)
    current.of(NEW.id)
    assert authenticator.reached[NEW.id].wait(60)
    current.of(NEWEST.id)
    assert authenticator.reached[NEWEST.id].wait(60)
    authenticator.opened[NEWEST.id].set()
    newest = until_ready(current, NEWEST.id)
    authenticator.opened[NEW.id].set()
    time.sleep(0.05)
    assert current.of(NEWEST.id) is newest


def test_prices_that_cannot_be_prepared_fail_the_question_that_needs_them_and_not_in_silence(store: Store) -> None:
    broken = [True]

    def load(snapshot_id: str) -> Columns:
        if snapshot_id == NEW.id and broken:
            raise StoreFailure("the disk is gone")
        return store.columns(snapshot_id)

    current = CurrentColumns(load, lambda columns: None)
    current.prepare(OLD.id)
    with pytest.raises(StoreFailure, match="the disk is gone"):
        until_ready(current, NEW.id)
    broken.clear()
    assert current.of(NEW.id).snapshot_id == NEW.id


def test_without_a_service_each_question_reads_the_prices_it_needs(store: Store) -> None:
    current = CurrentColumns(store.columns, lambda columns: pytest.fail("arranged for nobody"))
    assert current.of(OLD.id).snapshot_id == OLD.id
    assert current.of(NEW.id).snapshot_id == NEW.id


@pytest.fixture
def gpuplan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """As a service begins, on prices that were shipped."""
    first = priced(price("us-east-1", observed_at=SHIPPED_AT, source="shipped"))
    monkeypatch.setattr("gpuplan.catalog.store.store.embedded_snapshot_id", lambda: first.id)
    monkeypatch.setattr("gpuplan.catalog.snapshots.embedded_snapshot.embedded_snapshot", lambda: first)
    gpuplan = open_services(Environment(database_url=f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"))
    gpuplan.warm_up()
    yield gpuplan
    gpuplan.store.close()


def test_a_service_plans_on_new_prices_from_the_next_question_on(gpuplan: Services, job: dict[str, Any]) -> None:
    first, second = gpuplan.store.current_snapshot_id(), priced(price("us-east-1", usd_micros=9_000_000))
    assert wire(gpuplan.plans.plan(job))["plan"]["snapshot_id"] == first
    gpuplan.store.put_snapshot(second, source="refresh")
    assert wire(gpuplan.plans.plan(job))["plan"]["snapshot_id"] == second.id


def test_new_prices_do_not_wait_for_a_plan_that_takes_for_ever(
    gpuplan: Services, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpuplan.plans.plan(job)
    second = priced(price("us-east-1", usd_micros=9_000_000))
    gpuplan.store.put_snapshot(second, source="refresh")
    monkeypatch.setattr("gpuplan.api.services.current_prices.MOST_PLANNING_SECONDS", 0.0)
    gpuplan.context.prepare_current()
    assert gpuplan.context.columns().snapshot_id == second.id
