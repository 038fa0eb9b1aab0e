"""A backup is what the store held at one moment, and comes back whole and verified, or not at all; in either database."""

import json
import threading
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.backup import back_up
from gpuplan.catalog.store.backup_file import existing_tables, sums
from gpuplan.catalog.store.database import sqlite_file
from gpuplan.catalog.store.restore import restore
from gpuplan.catalog.store.run_store import Run, queued_run
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

OpenStore = Callable[[str], Store]


def text(store: Store) -> str:
    return store.url.render_as_string(hide_password=False).replace("+psycopg", "")


def held(store: Store) -> object:
    with store.engine.connect() as connection:
        return sums(connection, existing_tables(connection))


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with rows in tables of every kind: numbers, texts, booleans, fractions, bytes, references to itself."""
    for night in range(3):
        changed = many_offers(40, {1: 7 + night}, observed_at=NIGHT + timedelta(days=night))
        store.put_snapshot(changed, source="refresh")
    store.save_plan("plan-é", "s", {"a": [1.5, None]}, {"outcome": "planned"}, NIGHT)
    store.remember("key", "scope", "hash", {"answer": "\\u0000"})
    run = Run(id="r", kind="portfolio", status="queued", request={}, created_at=NIGHT, beat_at=NIGHT)
    store.runs.add(queued_run(run))
    with store.engine.begin() as connection:
        part = sa.text("INSERT INTO refresh_parts VALUES ('r', 'aws', '', :content, '')")
        connection.execute(part, {"content": b"\x00\xff"})
    return store


@pytest.fixture
def other_url(url: str, filled: Store, tmp_path: Path) -> str:
    """The URL of another, empty database of the kind that `filled` is not of, or of the same if that is SQLite."""
    return f"sqlite:///{tmp_path / 'restored' / 'gpuplan.sqlite3'}"


def test_what_comes_back_is_what_was_there(
    filled: Store, other_url: str, tmp_path: Path, open_store: OpenStore
) -> None:
    before = held(filled)
    taken = back_up(filled, tmp_path / "backup")
    assert taken.tables == before
    assert restore(tmp_path / "backup", other_url) == taken
    restored = open_store(other_url)
    assert restored.snapshots() == filled.snapshots()
    last = filled.current_snapshot_id()
    assert restored.snapshot(last) == filled.snapshot(last)
    assert restored.plan("plan-é") == filled.plan("plan-é")
    assert restored.recall("key", "scope", "hash") == {"answer": "\\u0000"}
    assert oct((tmp_path / "backup").stat().st_mode & 0o777) == "0o600"
    file = sqlite_file(restored.url)
    assert file is None or oct(file.stat().st_mode & 0o777) == "0o600"


def test_a_store_moves_from_one_machine_to_postgresql(
    tmp_path: Path, open_store: OpenStore, postgresql_url: str
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    store.put_snapshot(many_offers(40), source="refresh")
    store.put_snapshot(many_offers(40, {3: 5}, observed_at=NIGHT + timedelta(days=1)), source="refresh")
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO audit (at, identity, name, via, action, subject, outcome, request_id, address)"
            " VALUES (1, 'i', 'n', 'key', 'plan', 's', 'done', 'r', 'a')"
        )
    back_up(store, tmp_path / "backup")
    restore(tmp_path / "backup", postgresql_url)
    moved = open_store(postgresql_url)
    assert held(moved) == held(store)
    with moved.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO audit (at, identity, name, via, action, subject, outcome, request_id, address)"
            " VALUES (2, 'i', 'n', 'key', 'plan', 's', 'done', 'r', 'a')"
        )
        assert connection.exec_driver_sql("SELECT number FROM audit ORDER BY number").scalars().all() == [1, 2]


def test_a_backup_sees_one_moment_while_others_write(filled: Store, tmp_path: Path, other_url: str) -> None:
    done, failed = threading.Event(), []

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                filled.put_snapshot(
                    many_offers(40, {2: 10 + number}, observed_at=NIGHT + timedelta(hours=number)), source="refresh"
                )
            except Exception as error:  # noqa: BLE001
                failed.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(2):
            back_up(filled, tmp_path / f"backup-{number}")
    finally:
        done.set()
        writer.join()
    assert failed == []
    restore(tmp_path / "backup-1", other_url)
    restored = Store.open(other_url)
    for snapshot in restored.snapshots():
        assert len(restored.snapshot(snapshot.id).offers) == 40
    restored.close()


def test_nothing_is_written_over_what_is_there(filled: Store, tmp_path: Path) -> None:
    back_up(filled, tmp_path / "backup")
    existing, before = (tmp_path / "backup").read_bytes(), held(filled)
    with pytest.raises(UnusableInput, match=r"GPUPLAN_DATABASE_URL: .*is not empty"):
        restore(tmp_path / "backup", text(filled))
    assert held(filled) == before
    with pytest.raises(UnusableInput, match="exists already"):
        back_up(filled, tmp_path / "backup")
    assert (tmp_path / "backup").read_bytes() == existing
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def rewritten(path: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with another content of one of its files."""
    changed = path.with_name("changed")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.namelist():
            new.writestr(item, change(old.read(item)) if item == name else old.read(item))
    return changed


#: What is changed in a manifest, and what is then said of the file.
CHANGES: tuple[tuple[Callable[[bytes], bytes], str], ...] = (
    (lambda content: content.replace(b'"rows": 1', b'"rows": 2'), "its contents differ from its manifest in"),
    (lambda content: content.replace(b'"format": 1', b'"format": 9'), "format 9 is none that this gpuplan reads"),
    (lambda content: json.dumps(json.loads(content) | {"revision": "9999"}).encode(), "of a newer gpuplan"),
    (lambda content: b"[]", "no backup of gpuplan, or damaged"),
)


def test_a_file_that_is_cut_off_or_no_backup_or_holds_not_what_it_says_is_refused_whole(
    filled: Store, tmp_path: Path, other_url: str
) -> None:
    back_up(filled, tmp_path / "backup")
    for change, message in CHANGES:
        with pytest.raises(UnusableInput, match=message):
            restore(rewritten(tmp_path / "backup", "manifest.json", change), other_url)
    whole = (tmp_path / "backup").read_bytes()
    with zipfile.ZipFile(tmp_path / "backup") as archive:
        largest = max(archive.infolist(), key=lambda item: item.compress_size)
    middle = largest.header_offset + largest.compress_size // 2
    for name, content in (
        ("cut", whole[: len(whole) // 2]),
        ("flipped", whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]),
        ("text", b"not a backup"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnusableInput, match="FILE: "):
            restore(tmp_path / name, other_url)
    with pytest.raises(UnusableInput, match="there is no file"):
        restore(tmp_path / "nothing", other_url)
    assert not Store.is_there(other_url)
