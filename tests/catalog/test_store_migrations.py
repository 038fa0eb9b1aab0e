"""A database is brought to this release's tables when it is opened, and never past them."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from catalog.errors import StoreFailure
from catalog.migrate import HEAD, alembic_config
from catalog.schema import metadata
from catalog.store import Store
from tests.catalog.snapshots_for_tests import NIGHT


def test_the_head_that_is_compared_is_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD


def test_the_revisions_make_the_tables_that_the_code_uses(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "target_metadata": metadata})
        assert compare_metadata(context, metadata) == []


def test_a_database_of_a_newer_release_is_left_alone(url: str, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreFailure, match=r"written by a newer gpuplan \(revision 9999\); upgrade gpuplan or point"):
        Store.open(url)
    with pytest.raises(StoreFailure, match="its tables are not those of this gpuplan"):
        store.ping()


def test_a_migration_that_fails_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch, open_store: Callable[[str], Store]
) -> None:
    from alembic import command

    upgrade = command.upgrade

    def upgrade_and_fail(*args: str) -> None:
        upgrade(*args)  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "upgrade", upgrade_and_fail)
    with pytest.raises(StoreFailure, match="No space left on device"):
        Store.open(url)
    monkeypatch.undo()
    store = open_store(url)
    store.save_plan("p", "s", {}, {}, NIGHT)
    assert store.plan("p").id == "p"


def test_opening_a_database_at_head_imports_no_alembic_and_is_quick(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    Store.open(url).close()
    code = f"import sys; from catalog.store import Store; Store.open({url!r}).ping(); print('alembic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        Store.open(url).close()
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.030


def test_sqlite_is_opened_with_write_ahead_log_and_foreign_keys(
    tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    with store.engine.connect() as connection:
        found = {
            pragma: connection.exec_driver_sql(f"PRAGMA {pragma}").scalar()
            for pragma in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert found == {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 20_000, "foreign_keys": 1}


def test_without_a_url_the_store_is_a_file_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    store = Store.open(None)
    store.close()
    assert Path(store.name).is_file()
    assert tmp_path in Path(store.name).parents


@pytest.mark.parametrize("name", ["with space", "per%cent", "que?ry", "ha#sh", "é"])
def test_a_file_name_may_have_any_character(tmp_path: Path, name: str) -> None:
    url = sa.URL.create("sqlite", database=str(tmp_path / name / f"{name}.db"))
    store = Store.open(url.render_as_string())
    store.ping()
    store.close()
    assert (tmp_path / name / f"{name}.db").stat().st_size > 0
