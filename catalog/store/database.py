"""Database connections: URL, driver, transactions, and failures as one-line errors."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import quote

import sqlalchemy as sa
from platformdirs import user_data_path

from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.runtime.extras import require_extra


class Record(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


VARIABLE = "GPUPLAN_DATABASE_URL"
FILE_NAME = "gpuplan.sqlite3"
ACCEPTED = "sqlite:////absolute/path/to/file or postgresql://user:password@host:5432/database"

#: A writer holds its lock for well under a second (a whole catalogue); a longer wait means it hangs.
BUSY_MILLISECONDS = 20_000
CONNECT_SECONDS = 5

#: Timeouts (libpq's names) after which a silent server counts as lost, unless the URL sets them. A dead machine closes no
#: connection, and TCP alone would block every request for a quarter of an hour or two hours.
_LOST_AFTER = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}

#: With WAL, readers continue while one process writes. NORMAL then loses nothing on kill -9 and at most the last
#: transactions on power failure, never consistency (sqlite.org/pragma.html#pragma_synchronous).
_PRAGMAS = (f"busy_timeout={BUSY_MILLISECONDS}", "foreign_keys=ON", "synchronous=NORMAL")

#: Connection limits of the whole server, of its ordinary users, or of one user.
_NO_MORE_CONNECTIONS = "all connections that it allows are taken; raise max_connections, or end those who hold them"
#: Advice by substring of the database's message; the first match counts.
_ADVICE = (
    ("file is not a database", "it is not a gpuplan database; move it away or point GPUPLAN_DATABASE_URL elsewhere"),
    ("malformed", "it is damaged; restore a copy, or move it away and run again to start from the embedded prices"),
    ("disk is full", "nothing was written; free some space and run again"),
    ("No space left", "nothing was written; free some space and run again"),
    ("disk I/O error", "nothing was written; check the disk and run again"),
    ("lock timeout", "others use its tables at this moment; nothing was changed, try again"),
    ("locked", f"another process has been writing for {BUSY_MILLISECONDS // 1000} s; end it or try again"),
    ("readonly", "make the file and its directory writable, or point GPUPLAN_DATABASE_URL elsewhere"),
    ("read-only", "make the database writable, or point GPUPLAN_DATABASE_URL elsewhere"),
    ("unable to open", "the file was removed or may not be opened; check it, or point GPUPLAN_DATABASE_URL elsewhere"),
    ("no such table", "it was emptied while in use, or belongs to another program; start again"),
    ("already exists", "it holds tables of another program; point GPUPLAN_DATABASE_URL elsewhere"),
    ("too many clients", _NO_MORE_CONNECTIONS),
    ("too many connections", _NO_MORE_CONNECTIONS),
    ("connection slots", _NO_MORE_CONNECTIONS),
    ("starting up", "it has just been started; try again in a moment"),
    ("shutting down", "it is being stopped; try again once it is back"),
    ("no pg_hba.conf entry", "let this address and user in by the server's pg_hba.conf"),
    ("permission denied", "its user may not do that; give it the database (ALTER DATABASE ... OWNER TO ...)"),
    ("password authentication failed", "check user and password in GPUPLAN_DATABASE_URL"),
    ("does not exist", "create the database, or correct GPUPLAN_DATABASE_URL"),
    ("invalid connection option", "correct what follows the ? in GPUPLAN_DATABASE_URL"),
)
_OTHERWISE = "check that it is running and can be reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Differences between databases: driver, its package, and the lock that serialises migrations.

    `migration_lock` is a statement that waits until no other process migrates, `write_lock` until no other writes a
    snapshot; None if a write transaction is exclusive anyway.
    """

    driver: str
    migration_lock: str | None
    write_lock: str | None


#: The number of the advisory lock is arbitrary but must never change: SHA-256("gpuplan") begins with 4767c539.
DIALECTS = {
    "sqlite": Dialect(driver="sqlite", migration_lock=None, write_lock=None),
    "postgresql": Dialect(
        driver="postgresql+psycopg",
        migration_lock=f"SELECT pg_advisory_xact_lock({0x4767C539})",
        write_lock="LOCK TABLE snapshots IN EXCLUSIVE MODE",
    ),
}
_SPELLINGS = {"sqlite": "sqlite", "sqlite+pysqlite": "sqlite", "postgres": "postgresql", "postgresql": "postgresql"}
_SPELLINGS |= {"postgresql+psycopg": "postgresql"}


def database_url(text: str | None) -> sa.URL:
    """The URL of the store; None means a SQLite file in the user's data directory.

    Raises `UnusableInput` at GPUPLAN_DATABASE_URL unless it is the URL of a supported database.
    """
    if text is None:
        return sa.URL.create("sqlite", database=str(user_data_path("gpuplan", appauthor=False) / FILE_NAME))
    url = _parsed(text)
    name = _SPELLINGS.get(url.drivername)
    if name is None:
        raise UnusableInput.at(
            VARIABLE, message=f"database {url.drivername[:40]!r} is not supported; accepted: {ACCEPTED}"
        )
    if name == "sqlite" and (url.database in {None, "", ":memory:"} or url.query or url.host):
        raise UnusableInput.at(VARIABLE, message="SQLite needs a file and no options: sqlite:////absolute/path/to/file")
    if name == "sqlite":
        url = url.set(
            database=str(Path(url.database or "").absolute())
        )  # absolute, so that a later chdir has no effect
    return url.set(drivername=DIALECTS[name].driver)


def _parsed(text: str) -> sa.URL:
    try:
        url = sa.make_url(text.strip())
    except (sa.exc.ArgumentError, ValueError):
        url = None
    if url is None or not (text + (url.database or "")).isprintable():
        raise UnusableInput.at(VARIABLE, message=f"not a database URL; accepted: {ACCEPTED}")
    return url


def connect(url: sa.URL) -> sa.Engine:
    """An engine for the database; creates a missing SQLite file and directory; reads nothing yet.

    Raises `StoreFailure` if the file cannot be created, `UnusableInput` if the driver is not installed.
    """
    path = sqlite_file(url)
    if path is None:
        return _postgresql_engine(url)
    with named_failures(url):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # it holds hashes of keys and tokens of Slack; an existing file keeps its mode
    # mode=rw: a file removed while in use is an error, not a new empty database.
    file_url = url.set(database=f"file:{quote(str(path.absolute()))}", query={"mode": "rw", "uri": "true"})
    engine = sa.create_engine(file_url)
    sa.event.listen(engine, "connect", _set_pragmas)
    sa.event.listen(engine, "begin", _begin)
    return engine


def sqlite_file(url: sa.URL) -> Path | None:
    """The file behind the URL, if it is one."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def lost_after(url: sa.URL) -> dict[str, int]:
    """Connection parameters (libpq's names) that detect a silent PostgreSQL server, except those set in the URL."""
    return {name: value for name, value in _LOST_AFTER.items() if name not in url.query}


def _postgresql_engine(url: sa.URL) -> sa.Engine:
    require_extra(f"database {shown(url)}: PostgreSQL", "psycopg")
    # Pre-ping: a server that was restarted costs one reconnect, not one failed request.
    return sa.create_engine(url, pool_pre_ping=True, connect_args=lost_after(url))


def _set_pragmas(connection: Any, _record: Any) -> None:
    # The driver's own BEGIN comes too late for a read and is never IMMEDIATE; `_begin` emits it instead.
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    # Use the driver directly: a statement through SQLAlchemy takes longer than the whole transaction of a short read.
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def writer(engine: sa.Engine) -> sa.Engine:
    """An engine on the same connections whose transactions write; frequent writers create it once."""
    return engine if engine.get_execution_options().get("writes") else engine.execution_options(writes=True)


@contextmanager
def writing(engine: sa.Engine, *, alone: bool = False) -> Iterator[sa.Connection]:
    """A write transaction, committed at the end or rolled back; `alone`: at most one such writer at a time."""
    with writer(engine).begin() as connection:
        lock = DIALECTS[engine.dialect.name].write_lock
        if alone and lock is not None:
            connection.exec_driver_sql(lock)
        yield connection


def insert(connection: sa.Connection, table: sa.Table, record: Record) -> None:
    """Insert a record, whose fields have the names of the columns."""
    connection.execute(sa.insert(table), row_of(table, record))


def row_of(table: sa.Table, record: Record) -> dict[str, Any]:
    """The fields of a record that the table has columns for."""
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name in table.c}


def insert_or_ignore(connection: sa.Connection, table: sa.Table, record: Mapping[str, Any] | Record) -> bool:
    """Insert a row or a record unless its key exists. Returns whether it was inserted."""
    row = dict(record) if isinstance(record, Mapping) else row_of(table, record)
    return bool(connection.execute(_ignoring(table, connection.dialect.name), row).rowcount == 1)


def upsert(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any], *, add: str) -> int:
    """Insert a row, or add its `add` column to that of the row with the same key; returns the sum."""
    return int(connection.execute(_adding(table, connection.dialect.name, add), dict(row)).scalar_one())


@cache
def _ignoring(table: sa.Table, dialect: str) -> Any:
    # The driver's cursor, which knows the number of rows, is gone once SQLAlchemy has read what PostgreSQL returns.
    return _insert_of(table, dialect).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


@cache
def _adding(table: sa.Table, dialect: str, add: str) -> Any:
    statement = _insert_of(table, dialect)
    total = {add: table.c[add] + statement.excluded[add]}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=total).returning(table.c[add])


def _insert_of(table: sa.Table, dialect: str) -> Any:
    # Imported by name: the unused dialect would add 10 ms to every start.
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def shown(url: sa.URL) -> str:
    """The database for display: the file's path, or the URL without its password."""
    path = sqlite_file(url)
    return str(path) if path is not None else url.set(password=None, query={}).render_as_string()


@contextmanager
def named_failures(url: sa.URL) -> Iterator[None]:
    """Convert errors of the database or its file into a `StoreFailure` that names it and says what to do."""
    try:
        yield
    except OSError as error:
        advice = "make it writable, or point GPUPLAN_DATABASE_URL elsewhere"
        raise StoreFailure(f"database {shown(url)}: {error.strerror or error}; {advice}") from error
    except sa.exc.StatementError as error:
        if not isinstance(error, sa.exc.DBAPIError) and isinstance(error.orig, ValueError | TypeError):
            raise error.orig from None  # a value that its column does not take
        raise StoreFailure(_line(url, str(error.orig))) from error
    except sqlite3.Error as error:
        raise StoreFailure(_line(url, str(error))) from error
    except sa.exc.TimeoutError as error:
        raise StoreFailure(f"database {shown(url)}: every connection is in use; try again") from error


def _line(url: sa.URL, message: str) -> str:
    first = (message.strip().splitlines() or ["no reason given"])[0]
    if url.password:
        first = first.replace(str(url.password), "***")
    advice = next((advice for fragment, advice in _ADVICE if fragment in message), _OTHERWISE)
    return f"database {shown(url)}: {first}; {advice}"
