"""One refresh at a time on one database: a lock that its system lets go when the process that holds it dies."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

from catalog.database import named_failures, shown, sqlite_file
from catalog.errors import StoreFailure
from catalog.refresh_parts import shared_refresh

#: The number of the advisory lock; it follows the one of `catalog.database` and must never change.
ADVISORY_LOCK = 0x4767C53A


#: Raises `StoreFailure` if the lock was lost.
StillHeld = Callable[[], None]


class RefreshRunning(StoreFailure):
    """Another refresh holds the lock; the message says who, and since when, as far as that is known."""


@contextmanager
def refresh_lock(engine: sa.Engine, url: sa.URL, *, shared: str | None = None) -> Iterator[StillHeld]:
    """Holds the lock of this database, and gives what raises `StoreFailure` once it was lost.

    Raises `RefreshRunning` at once if another process or thread has it.

    SQLite: a lock on a file beside the database. PostgreSQL: an advisory lock of a session of its own,
    so that machines exclude each other too. A refresh that several processes share holds it only while it begins
    and while it is written; in between its run keeps others out, all but the one that writes it (`shared`).
    """
    path = sqlite_file(url)
    if path is None:
        with _session_lock(engine, url, shared) as still_held:
            yield still_held
    else:
        with _file_lock(path, url):
            yield lambda: None  # a file stays locked for as long as its process lives


@contextmanager
def _file_lock(path: Path, url: sa.URL) -> Iterator[None]:
    holder = path.with_name(path.name + ".refresh-holder")
    lock = filelock.FileLock(path.with_name(path.name + ".refresh-lock"), timeout=0, thread_local=False)
    with named_failures(url):
        try:
            lock.acquire()
        except filelock.Timeout:
            raise _running(_said_by(holder)) from None
    try:
        with named_failures(url):
            holder.write_text(json.dumps({"holder": _ourselves(), "since": _now()}), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _said_by(holder: Path) -> tuple[str, str]:
    """Who holds the lock since when, as that process wrote it down; empty where it has not yet."""
    try:
        said = json.loads(holder.read_text(encoding="utf-8"))
        return str(said["holder"]), str(said["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""


@contextmanager
def _session_lock(engine: sa.Engine, url: sa.URL, shared: str | None) -> Iterator[StillHeld]:
    with named_failures(url):
        # Without a transaction, which would keep old rows from being cleaned up for as long as a refresh takes.
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with named_failures(url):
            connection.detach()  # closing it then ends the session, and with it the lock
            _call(connection, "set_config('application_name', :text, false)", text=f"gpuplan refresh {_ourselves()}")
            if not _call(connection, "pg_try_advisory_lock(:number)", number=ADVISORY_LOCK):
                raise _running(_holder_of_session(connection))
        try:
            with named_failures(url):
                if (other := shared_refresh(connection, shared)) is not None:
                    raise _running((f"{other.id}, by the queue", other.created_at.isoformat(timespec="seconds")))
            yield lambda: _ask(connection, url)
        finally:
            _give_back(connection)
    finally:
        connection.close()


def _give_back(connection: sa.Connection) -> None:
    """Give the lock back at once: the server ends a session some moments after it was closed, and the lock with it."""
    with suppress(sa.exc.SQLAlchemyError):  # of a session that was lost, and with it the lock
        _call(connection, "pg_advisory_unlock(:number)", number=ADVISORY_LOCK)


def _ask(connection: sa.Connection, url: sa.URL) -> None:
    """The lock ends with its session, as when the server is restarted; then another refresh may have run since."""
    try:
        _call(connection, "1")
    except sa.exc.SQLAlchemyError as error:  # asked again on the lost session it is no longer an error of the driver
        lost = "the session that kept other refreshes out was lost; nothing was written, run it again"
        raise StoreFailure(f"database {shown(url)}: {lost}") from error


def _call(connection: sa.Connection, expression: str, **values: Any) -> Any:
    return connection.execute(sa.text(f"SELECT {expression}"), values).scalar()


_HOLDER = sa.text(
    "SELECT a.application_name, a.state_change FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE l.locktype = 'advisory' AND l.granted AND l.objid = :number "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def _holder_of_session(connection: sa.Connection) -> tuple[str, str]:
    """Who holds the lock: the session has said nothing since it took it, so its state changed then."""
    row = connection.execute(_HOLDER, {"number": ADVISORY_LOCK}).first()
    if row is None or row.state_change is None:
        return "", ""
    since = row.state_change.astimezone(UTC).isoformat(timespec="seconds")
    return str(row.application_name).removeprefix("gpuplan refresh "), since


def _running(found: tuple[str, str]) -> RefreshRunning:
    holder, since = found
    who = f" ({holder}, since {since})" if holder else ""
    return RefreshRunning(f"another refresh is running{who}; wait until it has ended")


def _ourselves() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
