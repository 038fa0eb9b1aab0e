"""Every way a database can fail is one line that names it and says what to do."""

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

import gpuplan.catalog.store.database
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.store import Store
from tests.catalog.snapshots_for_tests import NIGHT, many_offers

NOBODY = 65534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the tests' SQLite file is."""
    return tmp_path / "gpuplan.sqlite3"


@contextmanager
def refused(*message: str) -> Iterator[None]:
    """The block must end in a `StoreFailure` of one short line that says all of this."""
    with pytest.raises(StoreFailure) as caught:
        yield
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    for item in message:
        assert item in line, line


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user who may write nowhere: root may write even where nobody has the permission."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_is_no_database_is_left_as_it_is(file: Path) -> None:
    file.write_bytes(b"price,usd\n" * 500)
    with refused(str(file), "file is not a database", "move it away or point GPUPLAN_DATABASE_URL elsewhere"):
        Store.open(f"sqlite:///{file}")
    assert file.read_bytes() == b"price,usd\n" * 500


def _filled(file: Path) -> str:
    """A store of 2,000 offers, all of it in the one file; gives back the snapshot's id."""
    store = Store.open(f"sqlite:///{file}")
    result = store.put_snapshot(many_offers(2_000), source="refresh")
    store.close()
    return result


def test_a_truncated_file_is_named(file: Path) -> None:
    snapshot_id = _filled(file)
    os.truncate(file, file.stat().st_size // 3)
    with refused(str(file), "malformed", "restore a copy"):
        Store.open(f"sqlite:///{file}").snapshot(snapshot_id)


def test_a_file_with_a_corrupt_header_is_named(file: Path) -> None:
    _filled(file)
    with file.open("r+b") as stream:
        stream.write(b"\xff" * 100)
    with refused(str(file), "file is not a database"):
        Store.open(f"sqlite:///{file}")


def test_a_file_with_corrupt_pages_is_named(file: Path) -> None:
    snapshot_id = _filled(file)
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (file.stat().st_size - 4096))
    with refused(str(file), "malformed"):
        Store.open(f"sqlite:///{file}").snapshot(snapshot_id)


def test_a_directory_in_place_of_the_file_is_named(file: Path) -> None:
    file.mkdir()
    with refused(str(file), "GPUPLAN_DATABASE_URL"):
        Store.open(f"sqlite:///{file}")


def test_a_path_through_a_file_is_named(file: Path) -> None:
    file.write_text("")
    with refused(str(file / "deeper.db"), "GPUPLAN_DATABASE_URL"):
        Store.open(f"sqlite:///{file / 'deeper.db'}")


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    with without_privileges(), refused(str(locked), "Permission denied", "make it writable"):
        Store.open(f"sqlite:///{locked / 'gpuplan.sqlite3'}")


def test_a_database_that_is_only_readable_is_named(file: Path) -> None:
    _filled(file)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    store = Store.open(f"sqlite:///{file}")
    sa.event.listen(store.engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only=ON"))
    with refused(str(file), "readonly", "make the file and its directory writable"):
        store.close()
        store.save_plan("p", "s", {}, {}, NIGHT)
    store.close()


def test_a_full_disk_leaves_the_last_snapshot_readable(file: Path, open_store: Callable[[str], Store]) -> None:
    good = _filled(file)
    store = open_store(f"sqlite:///{file}")
    pages = file.stat().st_size // 4096 + 4
    store.close()
    sa.event.listen(store.engine, "connect", lambda connection, _: connection.execute(f"PRAGMA max_page_count={pages}"))
    with refused(str(file), "full", "free some space"):
        store.put_snapshot(many_offers(9_000, {0: 5}), source="refresh")
    assert [snapshot.id for snapshot in store.snapshots()] == [good]
    assert len(store.snapshot(good).offers) == 2_000


def test_a_file_removed_while_in_use_is_noticed(file: Path, open_store: Callable[[str], Store]) -> None:
    _filled(file)
    store = open_store(f"sqlite:///{file}")
    store.ping()
    file.unlink()
    with refused(str(file), "No such file"):
        store.ping()
    with refused(str(file), "No such file"):
        store.put_snapshot(many_offers(3), source="refresh")
    assert not file.exists()


def test_a_file_emptied_while_in_use_is_noticed(file: Path, open_store: Callable[[str], Store]) -> None:
    _filled(file)
    store = open_store(f"sqlite:///{file}")
    store.close()
    os.truncate(file, 0)
    with refused(str(file), "no such table"):
        store.snapshots()
    with refused(str(file), "start again"):
        store.ping()


def test_a_database_that_another_process_keeps_locked_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, open_store: Callable[[str], Store]
) -> None:
    _filled(file)
    monkeypatch.setattr(gpuplan.catalog.store.database, "_PRAGMAS", ("busy_timeout=50",))
    store = open_store(f"sqlite:///{file}")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with refused(str(file), "database is locked", "another process has been writing"):
        store.save_plan("p", "s", {}, {}, NIGHT)
    other.close()


def test_a_database_of_another_program_is_left_alone(url: str) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE plans (name TEXT)")
    with refused("already exists", "holds tables of another program"):
        Store.open(url)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["plans"]
    engine.dispose()


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "gpuplan.db", "/var/lib/gpuplan.db", "sqlite", "://", "\x00", "\u00fc" * 9000),
        *("postgresql://host:port/db", "postgresql://u:p@[::1"),
        *("sqlite:////tmp/\x00", "sqlite:////tmp/a%00b", "sqlite:////tmp/\udcff"),
    ],
)
def test_a_malformed_url_is_unusable_input_that_names_the_variable(text: str) -> None:
    with pytest.raises(
        UnusableInput, match="GPUPLAN_DATABASE_URL: not a database URL; accepted: sqlite:////"
    ) as caught:
        Store.open(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text", ["mysql://u:secret@h/db", "oracle://h/db", "postgresql+asyncpg://u:secret@h/db", "https://h/"]
)
def test_an_unsupported_database_is_unusable_input(text: str) -> None:
    with pytest.raises(
        UnusableInput, match=r"GPUPLAN_DATABASE_URL: database '.*' is not supported; accepted: "
    ) as caught:
        Store.open(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["sqlite://", "sqlite:///:memory:", "sqlite:////tmp/x?mode=memory", "sqlite://host/x"])
def test_sqlite_without_a_plain_file_is_unusable_input(text: str) -> None:
    with pytest.raises(UnusableInput, match="GPUPLAN_DATABASE_URL: SQLite needs a file"):
        Store.open(text)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnusableInput, match=r"PostgreSQL needs psycopg: pip install 'gpuplan\[service\]'"):
        Store.open("postgresql://somebody:secret@127.0.0.1:1/gpuplan")


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(
        StoreFailure, match=r"postgresql.*somebody:.*@127.0.0.1:1/gpuplan.*check that it is running"
    ) as caught:
        Store.open("postgresql://somebody:s3cret@127.0.0.1:1/gpuplan")
    assert "s3cret" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named(postgresql_url: str) -> None:
    with refused("does not exist", "create the database"):
        Store.open(postgresql_url.replace("?", "_not_there?"))


def test_an_unknown_connection_option_is_named(postgresql_url: str) -> None:
    with refused("flavour", "correct what follows the ?"):
        Store.open(postgresql_url + "&flavour=sweet&password=s3cret")


def test_a_server_that_goes_away_is_noticed_and_found_again(
    postgresql_server: str, postgresql_url: str, open_store: Callable[[str], Store]
) -> None:
    store = open_store(postgresql_url)
    name = postgresql_url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    administration = sa.create_engine(
        postgresql_server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
    )
    with administration.connect() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        with refused(name, "not currently accepting connections"):
            store.ping()
        connection.exec_driver_sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    administration.dispose()
    store.ping()


@contextmanager
def role(store: Store, name: str, options: str) -> Iterator[str]:
    """A role of the server that may see the schema and no more, while the block runs: the store's URL for it."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN {options}; GRANT USAGE ON SCHEMA public TO {name}")
    try:
        yield store.url.set(username=name).render_as_string(hide_password=False)
    finally:
        with store.engine.begin() as connection:
            connection.exec_driver_sql(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_server_whose_connections_are_used_up_is_named(
    postgresql_url: str, open_store: Callable[[str], Store]
) -> None:
    with (
        role(open_store(postgresql_url), "guest", "CONNECTION LIMIT 0") as url,
        refused("guest", "raise max_connections"),
    ):
        Store.open(url)


def test_a_user_who_may_not_make_tables_is_named(postgresql_url: str, open_store: Callable[[str], Store]) -> None:
    with role(open_store(postgresql_url), "reader", "") as url, refused("permission denied", "give it the database"):
        Store.open(url)


def test_a_server_that_falls_silent_counts_as_lost_within_half_a_minute_unless_the_url_says_otherwise(
    postgresql_url: str, open_store: Callable[[str], Store]
) -> None:
    def asked(url: str) -> list[str | None]:
        with open_store(url).engine.connect() as connection:
            message = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
            return [message.get(name) for name in ("connect_timeout", "keepalives_idle", "tcp_user_timeout")]

    assert asked(postgresql_url) == ["5", "15", "30000"]
    assert asked(postgresql_url + "&connect_timeout=9&tcp_user_timeout=2000") == ["9", "15", "2000"]


def test_a_new_file_and_its_journal_are_for_their_owner_alone_and_one_that_is_there_keeps_its_mode(
    file: Path, open_store: Callable[[str], Store]
) -> None:
    mask = os.umask(0o022)
    try:
        store = open_store(f"sqlite:///{file}")
        store.ensure_embedded()
        modes = {
            item.name: item.stat().st_mode & 0o777 for item in file.parent.iterdir() if item.name.startswith(file.name)
        }
        assert modes == dict.fromkeys((file.name, f"{file.name}-shm", f"{file.name}-wal"), 0o600)
        file.chmod(0o640)
        open_store(f"sqlite:///{file}").current_snapshot_id()
        assert file.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)
