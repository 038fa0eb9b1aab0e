"""A database is brought to this release's tables when it is opened, and never past them."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import gpuplan.catalog.store.schema_upgrade
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.run_store import Run
from gpuplan.catalog.store.schema import metadata
from gpuplan.catalog.store.schema_upgrade import HEAD, alembic_config
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT


def test_the_head_that_is_compared_is_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD


def _differences(connection: sa.Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "target_metadata": metadata})
    return list(compare_metadata(context, metadata))


def test_the_revisions_make_the_tables_that_a_new_database_gets(url: str, open_store: Callable[[str], Store]) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), "head")
        assert _differences(connection) == []
        by_revisions = _tables(connection)
        for table in by_revisions:
            connection.exec_driver_sql(f"DROP TABLE {table}" + (" CASCADE" if "postgresql" in url else ""))
    engine.dispose()
    with open_store(url).engine.connect() as connection:
        assert _differences(connection) == []
        assert _tables(connection) == by_revisions


def _tables(connection: sa.Connection) -> dict[str, object]:
    """Every table with its columns, keys and indexes, as the database tells them."""
    seen = sa.inspect(connection)
    return {
        table: (
            [(column["name"], str(column["type"]), column["nullable"]) for column in seen.get_columns(table)],
            seen.get_pk_constraint(table),
            sorted(str(constraint) for constraint in seen.get_unique_constraints(table)),
            sorted(str(foreign_key) for foreign_key in seen.get_foreign_keys(table)),
            sorted(str(index) for index in seen.get_indexes(table)),
            sorted(str(constraint["name"]) for constraint in seen.get_check_constraints(table)),
        )
        for table in sorted(seen.get_table_names(), reverse=True)
    }


NEXT_REVISION = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "9998", "{HEAD}"
def upgrade() -> None:
    op.add_column("plans", sa.Column("note", sa.Text))
"""


def test_a_database_of_an_older_release_is_upgraded_and_keeps_its_rows(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, open_store: Callable[[str], Store]
) -> None:
    store.save_plan("p", "s", {}, {"outcome": "planned"}, NIGHT)
    shutil.copytree(Path(gpuplan.catalog.store.schema_upgrade.__file__).parent / "migrations", tmp_path / "migrations")
    (tmp_path / "migrations" / "versions" / "9998_note.py").write_text(NEXT_REVISION)
    monkeypatch.setattr(gpuplan.catalog.store.schema_upgrade, "SCRIPTS", str(tmp_path / "migrations"))
    monkeypatch.setattr(gpuplan.catalog.store.schema_upgrade, "HEAD", "9998")
    upgraded = open_store(store.url.render_as_string(hide_password=False).replace("+psycopg", ""))
    with upgraded.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT id, note FROM plans").all() == [("p", None)]
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").all() == [("9998",)]


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(gpuplan.catalog.store.schema_upgrade.__file__).parent / "migrations", tmp_path / "migrations")
    wrong = NEXT_REVISION + '    op.add_column("no_such_table", sa.Column("note", sa.Text))\n'
    (tmp_path / "migrations" / "versions" / "9998_note.py").write_text(wrong)
    with monkeypatch.context() as patched:
        patched.setattr(gpuplan.catalog.store.schema_upgrade, "SCRIPTS", str(tmp_path / "migrations"))
        patched.setattr(gpuplan.catalog.store.schema_upgrade, "HEAD", "9998")
        with pytest.raises(StoreFailure, match="no_such_table"):
            Store.open(store.url.render_as_string(hide_password=False).replace("+psycopg", ""))
    with store.engine.connect() as connection:
        assert _differences(connection) == []
    store.ping()


def test_a_database_of_a_newer_release_is_left_alone(url: str, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.exec_driver_sql("UPDATE compatible_since SET revision = '9999'")
    with pytest.raises(StoreFailure, match=r"written by a newer gpuplan \(revision 9999\); upgrade gpuplan or point"):
        Store.open(url)
    with pytest.raises(
        StoreFailure, match=r"not those of this gpuplan .*; start again with the gpuplan that wrote them"
    ):
        store.ping()


def test_a_database_of_an_older_release_is_told_how_to_come_to_this_one(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(StoreFailure, match=r"\(revision 0001, not \d+\); bring them there with gpuplan db upgrade"):
        store.ping()


def test_making_the_tables_on_a_full_disk_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch, open_store: Callable[[str], Store]
) -> None:
    def create_and_fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(gpuplan.catalog.store.schema_upgrade._VERSION, "create", create_and_fail)
        with pytest.raises(StoreFailure, match="No space left on device"):
            Store.open(url)
    store = open_store(url)
    store.save_plan("p", "s", {}, {}, NIGHT)
    assert store.plan("p").id == "p"


def test_opening_a_database_new_or_at_head_imports_no_alembic_and_is_quick(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    code = f"import sys; from gpuplan.catalog.store.store import Store; Store.open({url!r}).ping(); print('alembic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    times = []
    for _ in range(5):
        begun = time.process_time()
        Store.open(url).close()
        times.append(time.process_time() - begun)
    assert min(times) < 0.030


def test_sqlite_is_opened_with_write_ahead_log_and_foreign_keys(
    tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    with store.engine.connect() as connection:
        result = {
            pragma: connection.exec_driver_sql(f"PRAGMA {pragma}").scalar()
            for pragma in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert result == {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 20_000, "foreign_keys": 1}


def test_without_a_url_the_store_is_a_file_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    store = Store.open(None)
    store.close()
    assert Path(store.name).is_file()
    assert tmp_path in Path(store.name).parents


def test_a_relative_path_stays_where_it_was_when_the_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Callable[[str], Store]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///here.db")
    monkeypatch.chdir("/")
    store.close()
    store.ping()
    assert store.name == str(tmp_path / "here.db")


@pytest.mark.parametrize("name", ["with space", "per%cent", "que?ry", "ha#sh", "é"])
def test_a_file_name_may_have_any_character(tmp_path: Path, name: str) -> None:
    url = sa.URL.create("sqlite", database=str(tmp_path / name / f"{name}.db"))
    store = Store.open(url.render_as_string())
    store.ping()
    store.close()
    assert (tmp_path / name / f"{name}.db").stat().st_size > 0


def test_a_database_without_runs_gets_them_and_keeps_what_it_has(url: str, open_store: Callable[[str], Store]) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), "0003")
        connection.exec_driver_sql(
            "INSERT INTO plans (id, snapshot_id, job, outcome, created_at) VALUES ('p', 's', '{}', '{}', 0)"
        )
    engine.dispose()
    store = open_store(url)
    assert store.plan("p").snapshot_id == "s"
    store.runs.add(Run(id="r", kind="portfolio", status="queued", request={}, created_at=NIGHT, beat_at=NIGHT))
    assert store.runs.one("r", NIGHT).status == "queued"
