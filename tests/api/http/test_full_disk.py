"""A full disk is said as one, leaves nothing half-written, and is forgotten when there is room again."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.store.backup_file import existing_tables, sums
from gpuplan.catalog.store.store import Store
from tests.providers.fake_clouds import SHIPPED_AT, price, snapshot

Serve = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
#: As PostgreSQL says it (SQLSTATE 53100), to whoever inserts.
FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100'; END $$;
"""
TABLES = ("plans", "runs", "idempotency_keys", "refreshes")


@pytest.fixture(params=["sqlite", "postgresql"])
def full(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A gpuplan on a store of either kind, and a way to have its disk be full for a while."""
    shipped = snapshot(price("us-east-1", usd_micros=96_000_000, observed_at=SHIPPED_AT, source="shipped"))
    monkeypatch.setattr("gpuplan.catalog.store.store.embedded_snapshot_id", lambda: shipped.id)
    monkeypatch.setattr("gpuplan.catalog.snapshots.embedded_snapshot.embedded_snapshot", lambda: shipped)
    on_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'g.sqlite3'}" if on_sqlite else request.getfixturevalue("postgresql_url")
    gpuplan = open_services(Environment(database_url=url))
    yield gpuplan, (no_page_left if on_sqlite else refusing_rows)
    gpuplan.store.close()


@contextmanager
def no_page_left(store: Store) -> Iterator[None]:
    def limit(connection: Any, _record: object) -> None:
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    store.engine.dispose()
    sa.event.listen(store.engine, "connect", limit)
    try:
        yield
    finally:
        sa.event.remove(store.engine, "connect", limit)
        store.engine.dispose()


@contextmanager
def refusing_rows(store: Store) -> Iterator[None]:
    with store.engine.begin() as connection:
        connection.exec_driver_sql(FULL)
        for table in TABLES:
            trigger = f"CREATE TRIGGER full_{table} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()"
            connection.exec_driver_sql(trigger)
    try:
        yield
    finally:
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP FUNCTION full_disk CASCADE")


def held(store: Store) -> object:
    with store.engine.connect() as connection:
        return sums(
            connection,
            [
                existing_table
                for existing_table in existing_tables(connection)
                if existing_table.name in {*TABLES, "snapshots"}
            ],
        )


def test_it_is_said_nothing_is_kept_by_half_and_it_heals(full: Any, served: Serve, job: dict[str, Any]) -> None:
    gpuplan, filling = full
    store = gpuplan.store
    # Long enough to need a page of its own.
    asked: dict[str, Any] = {"json": job | {"name": "x" * 200}, "headers": {"Idempotency-Key": "k"}}
    with served(create_service(gpuplan)) as client:
        before = held(store)
        with filling(store):
            for _ in range(20):  # more than there are connections
                refused = client.post("/v1/plans", **asked)
                assert refused.status_code == 503
            problem = refused.json()
            assert "free some space" in problem["detail"]
            assert refused.headers["content-type"] == "application/problem+json"
            assert int(refused.headers["Retry-After"]) > 0
            assert client.get("/healthz").status_code == 200
            assert client.get("/v1/snapshots").status_code == 200
        assert held(store) == before
        planned = client.post("/v1/plans", **asked)
        assert planned.json()["outcome"] == "planned"
        assert client.post("/v1/plans", **asked).json() == planned.json()
        assert datetime.now(UTC) > gpuplan.store.plan(planned.json()["plan"]["id"]).created_at
