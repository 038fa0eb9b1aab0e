"""A lock that allows one refresh per database; the system releases it when its process dies."""

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

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.database import named_failures, shown, sqlite_file
from gpuplan.catalog.store.refresh_parts import shared_refresh

#: The number of the advisory lock; it follows that of `gpuplan.catalog.store.database` and must never change.
ADVISORY_LOCK = 0x4767C53A


#: Raises `StoreFailure` if the lock was lost.
CheckLock = Callable[[], None]


class RefreshRunning(StoreFailure):
    """Another refresh holds the lock; the message names its holder and start if known."""


@contextmanager
def refresh_lock(engine: sa.Engine, url: sa.URL, *, shared: str | None = None) -> Iterator[CheckLock]:
    """Hold the lock of this database; yields a function that raises `StoreFailure` once the lock is lost.

    Raises `RefreshRunning` at once if another process or thread has it.

    SQLite: a lock on a file beside the database. PostgreSQL: an advisory lock of its own session, so that machines exclude
    each other too. A refresh shared by several processes holds it only while it begins and while it is written; in between,
    its run keeps other refreshes out, except the one that writes it (`shared`).
    """
    path = sqlite_file(url)
    if path is None:
        with _session_lock(engine, url, shared) as check_lock:
            yield check_lock
    else:
        with _file_lock(path, url):
            yield lambda: None  # a file stays locked as long as its process lives


@contextmanager
def _file_lock(path: Path, url: sa.URL) -> Iterator[None]:
    holder = path.with_name(path.name + ".refresh-holder")
    lock = filelock.FileLock(path.with_name(path.name + ".refresh-lock"), timeout=0, thread_local=False)
    with named_failures(url):
        try:
            lock.acquire()
        except filelock.Timeout:
            raise _running(_reason_of(holder)) from None
    try:
        with named_failures(url):
            holder.write_text(json.dumps({"holder": _ourselves(), "since": _now()}), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _reason_of(holder: Path) -> tuple[str, str]:
    """The holder and its start time as that process recorded them; empty if it has not yet."""
    try:
        document = json.loads(holder.read_text(encoding="utf-8"))
        return str(document["holder"]), str(document["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""


@contextmanager
def _session_lock(engine: sa.Engine, url: sa.URL, shared: str | None) -> Iterator[CheckLock]:
    with named_failures(url):
        # Autocommit: a transaction would block the cleanup of old rows for the whole refresh.
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with named_failures(url):
            connection.detach()  # closing it then ends the session and its lock
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
    """Release the lock at once: the server ends a session some moments after it is closed."""
    with suppress(sa.exc.SQLAlchemyError):  # the session, and with it the lock, may be lost
        _call(connection, "pg_advisory_unlock(:number)", number=ADVISORY_LOCK)


def _ask(connection: sa.Connection, url: sa.URL) -> None:
    """Check the session: the lock ends with it, for example at a server restart, and another refresh may have run since."""
    try:
        _call(connection, "1")
    except sa.exc.SQLAlchemyError as error:  # a second query on the lost session raises no driver error
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
    """The holder of the lock; its session has been idle since it took the lock, so its state changed then."""
    row = connection.execute(_HOLDER, {"number": ADVISORY_LOCK}).first()
    if row is None or row.state_change is None:
        return "", ""
    since = row.state_change.astimezone(UTC).isoformat(timespec="seconds")
    return str(row.application_name).removeprefix("gpuplan refresh "), since


def _running(holder_and_start: tuple[str, str]) -> RefreshRunning:
    holder, since = holder_and_start
    running_as = f" ({holder}, since {since})" if holder else ""
    return RefreshRunning(f"another refresh is running{running_as}; wait until it has ended")


def _ourselves() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
