"""The release before goes on while a database is upgraded under it, and after it was taken back again; in both databases."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.backup_file import existing_tables, sums
from gpuplan.catalog.store.database import connect, database_url
from gpuplan.catalog.store.run_store import Run, queued_run
from gpuplan.catalog.store.schema_upgrade import HEAD, alembic_config, downgrade, revision_of, to_head
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

BEFORE = "0004"
OpenStore = Callable[[str], Store]


@pytest.fixture
def old(url: str) -> Iterator[sa.Engine]:
    """The database of the release before."""
    engine = connect(database_url(url))
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        command.upgrade(alembic_config(connection), BEFORE)
    yield engine
    engine.dispose()


class OldRelease:
    """Reads and writes as the release before does: it names the columns that it knows, and no others."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine, self.tables = engine, sa.MetaData()
        with engine.connect() as connection:
            self.tables.reflect(connection)

    def write(self, number: int) -> None:
        run: dict[str, object] = {
            "id": f"old-{number}",
            "kind": "portfolio",
            "status": "queued",
            "request": "{}",
            "progress": "{}",
        }
        run |= {"created_at": number, "beat_at": number, "cancel_asked": False}
        plan = {"id": f"old-{number}", "snapshot_id": "s", "job": "{}", "outcome": "{}", "created_at": number}
        with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            connection.execute(sa.insert(self.tables.tables["runs"]), run)
            connection.execute(sa.insert(self.tables.tables["plans"]), plan)

    def read(self) -> dict[str, int]:
        with self.engine.connect() as connection:
            return {
                name: len(connection.execute(sa.select(self.tables.tables[name])).all()) for name in ("runs", "plans")
            }


@pytest.mark.slow(reason="long cases")
def test_old_readers_and_writers_go_on_while_the_tables_are_upgraded_and_taken_back(url: str, old: sa.Engine) -> None:
    release = OldRelease(old)
    failures: list[BaseException] = []
    written: list[int] = []
    done = threading.Event()

    def go_on() -> None:
        try:
            while not done.is_set():
                release.write(len(written))
                written.append(1)
                assert release.read() == {"runs": len(written), "plans": len(written)}
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    engine = connect(database_url(url))
    try:
        for _ in range(2):
            to_head(engine, database_url(url))
            downgrade(engine, database_url(url), BEFORE)
        to_head(engine, database_url(url))
    finally:
        done.set()
        thread.join()
        engine.dispose()
    assert failures == []
    assert written
    assert release.read() == {"runs": len(written), "plans": len(written)}


def test_a_downgrade_keeps_everything_that_the_release_before_knew(old: sa.Engine, url: str) -> None:
    release = OldRelease(old)
    release.write(1)
    with old.connect() as connection:
        before = sums(connection, existing_tables(connection))
    store = Store.open(url)
    store.put_snapshot(many_offers(20), source="refresh")
    now = NIGHT + timedelta(days=1)
    store.runs.add(queued_run(Run(id="q", kind="portfolio", status="queued", request={}, created_at=now, beat_at=now)))
    with store.engine.connect() as connection:
        upgraded = sums(connection, existing_tables(connection))
    downgrade(store.engine, store.url, BEFORE)
    with store.engine.connect() as connection:
        assert revision_of(connection) == BEFORE
        after = sums(connection, existing_tables(connection))
        silent = connection.exec_driver_sql("SELECT beat_at = created_at FROM runs WHERE id = 'q'").scalar_one()
    store.close()
    assert after.keys() == before.keys()
    assert {name: after[name] for name in after if name != "runs"} == {
        name: upgraded[name] for name in after if name != "runs"
    }
    assert after["runs"].rows == 2
    assert silent  # so that the release before, which has no queue, says of it that nobody is at it


def test_only_an_earlier_release_that_knows_these_tables_can_be_gone_back_to(store: Store) -> None:
    for revision in ("0001", HEAD, "9999", ""):
        with pytest.raises(UnusableInput, match=rf"cannot go from {HEAD} back to '{revision}'; accepted: 0004"):
            downgrade(store.engine, store.url, revision)
    store.ping()


def test_this_release_goes_on_with_tables_of_a_later_one_that_says_it_may(url: str, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.exec_driver_sql("ALTER TABLE plans ADD COLUMN note TEXT")
    store.ping()
    store.save_plan("p", "s", {}, {}, NIGHT)
    again = Store.open(url)
    assert again.plan("p").id == "p"
    again.close()
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compatible_since SET revision = '9998'")
    with pytest.raises(StoreFailure, match="start again"):
        store.ping()
    with pytest.raises(StoreFailure, match="written by a newer gpuplan"):
        Store.open(url)


def test_an_upgrade_does_not_hold_up_everyone_behind_a_long_reader(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = connect(database_url(postgresql_url))
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), BEFORE)
    monkeypatch.setattr("gpuplan.catalog.store.schema_upgrade._MOST_WAIT_SECONDS", 0.1)
    with engine.connect() as reader:
        reader.exec_driver_sql("SELECT * FROM runs")
        with pytest.raises(StoreFailure, match="nothing was changed, try again"):
            Store.open(postgresql_url)
    Store.open(postgresql_url).close()
    engine.dispose()


def test_every_revision_since_can_be_undone() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    later = [walk_revision for walk_revision in scripts.walk_revisions() if walk_revision.revision > BEFORE]
    assert later
    assert all(hasattr(item.module, "downgrade") for item in later)
