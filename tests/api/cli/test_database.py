"""`gpuplan db`: upgrade, check, back up, restore and go back, as people type it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.store.backup import back_up
from gpuplan.catalog.store.schema_upgrade import HEAD
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

pytestmark = pytest.mark.slow(reason="makes stores")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> str:
    """The URL of an empty database of either kind, which the command line uses."""
    sqlite = f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"
    url: str = sqlite if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", url)
    return url


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    new_store = Store.open(database)
    new_store.put_snapshot(many_offers(20), source="refresh")
    yield new_store
    new_store.close()


def test_tables_are_made_looked_at_and_taken_back(database: str, run: Callable[..., Any]) -> None:
    assert f"no tables yet; this release has {HEAD}" in run("db", "current").out
    assert run("db", "upgrade").out.endswith("queue made up to date\n" if "postgresql" in database else f"{HEAD}\n")
    assert run("db", "upgrade").code == 0
    assert f"revision {HEAD}; this release has {HEAD}" in run("db", "current").out
    refused = run("db", "downgrade", "0001")
    assert (refused.code, "accepted: 0004" in refused.err) == (2, True)
    assert run("db", "downgrade", "0004").code == 0
    assert f"revision 0004; this release has {HEAD}" in run("db", "current").out
    assert run("db", "check").code == 3
    assert run("db", "upgrade").code == 0
    assert run("db", "check").out.endswith(": usable\n")


def test_a_backup_is_restored_where_nothing_is(
    store: Store, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup.zip"
    done = run("db", "backup", file)
    assert (done.code, done.err) == (0, "")
    assert f"at revision {HEAD}" in done.out
    again = run("db", "backup", file)
    assert (again.code, again.err.count("\n")) == (2, 1)
    over = run("db", "restore", file)
    assert (over.code, "is not empty" in over.err) == (2, True)
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{tmp_path / 'new' / 'gpuplan.sqlite3'}")
    restored = run("db", "restore", file)
    assert (restored.code, "verified" in restored.out) == (0, True)
    (tmp_path / "text").write_text("no backup")
    bad = run("db", "restore", tmp_path / "text")
    assert (bad.code, bad.err.startswith("gpuplan: FILE: ")) == (2, True)


@pytest.mark.usefixtures("database")
def test_what_was_restored_is_usable_at_once(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    with closing(Store.open(f"sqlite:///{tmp_path / 'elsewhere.sqlite3'}")) as elsewhere:
        elsewhere.put_snapshot(many_offers(20), source="refresh")
        back_up(elsewhere, file)
    assert run("db", "restore", file).code == 0
    checked = run("db", "check")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.endswith(": usable\n")


def test_an_index_that_is_spoilt_is_said_though_every_row_can_be_read(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gpuplan.sqlite3"
    with closing(Store.open(f"sqlite:///{file}")) as store:
        store.save_plan("plan-of-mine", "s", {}, {"outcome": "planned"}, NIGHT)
        with store.engine.connect() as connection:
            index = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_plans_1'"
            page = connection.exec_driver_sql(index).scalar_one()
            size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    content = bytearray(file.read_bytes())
    begin = (page - 1) * size
    content[begin : begin + size] = content[begin : begin + size].replace(b"plan-of-mine", b"plan-of-thee")
    file.write_bytes(content)
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{file}")
    checked = run("db", "check")
    assert (checked.code, checked.out) == (3, "")
    assert "it is damaged: row 1 missing from index sqlite_autoindex_plans_1" in checked.err
    assert checked.err.count("\n") == 1


def test_a_worker_needs_postgresql(run: Callable[..., Any]) -> None:
    refused = run("worker")
    assert (refused.code, "accepted: postgresql://" in refused.err) == (2, True)
