"""What PostgreSQL's own tools take away and bring back is used as it is: the tables, the queue, the numbers in use."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.queue.queued_pool import QueuedPool
from gpuplan.api.jobs.run_document import ANSWERS_AT
from gpuplan.api.jobs.run_execution import KINDS
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.authorization import record
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.store.backup_file import existing_tables, sums
from gpuplan.catalog.store.run_store import Run
from gpuplan.catalog.store.store import Store
from tests.api.jobs.queue.conftest import work_off


@pytest.fixture
def other_database(postgresql_server: str) -> Iterator[str]:
    """The URL of an empty database beside that of the tests."""
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE gpuplan_restored")
        yield postgresql_server.replace("/postgres?", "/gpuplan_restored?")
        connection.execute("DROP DATABASE gpuplan_restored WITH (FORCE)")


def programs(url: str) -> Path:
    """Where the server's own programs are, of its very release."""
    with psycopg.connect(url) as connection:
        [folder] = connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone() or [""]
    return Path(folder)


def held(store: Store) -> object:
    with store.engine.connect() as connection:
        return sums(connection, existing_tables(connection))


def queue_a_run(gpuplan: Services, name: str) -> None:
    now = datetime.now(UTC)
    run = Run(id=name, kind="quick", status="queued", request={}, created_at=now, beat_at=now)
    QueuedPool(gpuplan.store).start(gpuplan.store.runs, run)


def test_a_dump_that_is_restored_goes_on_where_it_was(
    gpuplan: Services,
    database: str,
    other_database: str,
    postgresql_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quick(_: Services, run: Run, heartbeat: Heartbeat) -> dict[str, Any]:
        return {"of": run.id}

    monkeypatch.setitem(KINDS, "quick", quick)
    monkeypatch.setitem(ANSWERS_AT, "quick", "/v1/quick/{}")
    gpuplan.store.current_snapshot_id()
    gpuplan.store.access.record(record("plan", "before", datetime.now(UTC)))
    queue_a_run(gpuplan, "before")
    tools, dump = programs(postgresql_server), tmp_path / "dump"
    subprocess.run([tools / "pg_dump", "--format=custom", f"--file={dump}", database], check=True)
    restore = [str(tools / "pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={other_database}", str(dump)]
    subprocess.run(restore, check=True)
    restored = open_services(Environment(database_url=other_database))
    assert held(restored.store) == held(gpuplan.store)
    queue_a_run(restored, "after")
    restored.store.access.record(record("plan", "after", datetime.now(UTC)))
    work_off(restored)
    assert [restored.runs.one(name).answer for name in ("before", "after")] == [{"of": "before"}, {"of": "after"}]
    numbers = [entry.number for entry in restored.store.access.audit()]
    assert numbers == sorted(set(numbers), reverse=True)
    restored.store.close()
