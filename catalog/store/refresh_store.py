"""Refresh records, one per run, including runs that wrote no snapshot; and the refresh lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gpuplan.catalog.store.open_database import OpenDatabase
from gpuplan.catalog.store.store_part import reads, writes

if TYPE_CHECKING:
    from gpuplan.catalog.store.refresh_lock import CheckLock
from dataclasses import dataclass

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert
from gpuplan.catalog.store.schema import refreshes
from gpuplan.catalog.store.snapshot_list import NotStored

#: Default length of a listing: a quarter of a year of nights.
USUAL_LIST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRecord:
    """One run: `outcome` is whole, partial, refused or failed; `report` is the document that it printed.

    `snapshot_id` is the snapshot that it wrote, None if it wrote none. `started_at` is the time in its rows.
    """

    id: str
    started_at: datetime
    finished_at: datetime
    outcome: str
    snapshot_id: str | None
    report: dict[str, Any]


def write_refresh(connection: sa.Connection, record: RefreshRecord) -> None:
    """Add the record. Raises `ValueError` for a report that is not JSON."""
    insert(connection, refreshes, record)


def read_refreshes(connection: sa.Connection, limit: int = USUAL_LIST) -> tuple[RefreshRecord, ...]:
    """The last `limit` records, newest first."""
    newest_first = sa.select(refreshes).order_by(refreshes.c.started_at.desc(), refreshes.c.id).limit(limit)
    return tuple(RefreshRecord(**row._mapping) for row in connection.execute(newest_first))


def read_refresh(connection: sa.Connection, refresh_id: str) -> RefreshRecord:
    """The record with this id. Raises `NotStored` at `refresh` if there is none."""
    row = connection.execute(sa.select(refreshes).where(refreshes.c.id == refresh_id)).first()
    if row is None:
        message = f"no refresh {refresh_id[:80]!r} is stored here; accepted: the id of a refresh"
        raise NotStored.at("refresh", message=message)
    return RefreshRecord(**row._mapping)


def last_refresh(connection: sa.Connection) -> RefreshRecord | None:
    """The record of the last refresh, None before the first."""
    return next(iter(read_refreshes(connection, limit=1)), None)


def last_whole(connection: sa.Connection) -> datetime | None:
    """The end of the last complete refresh, None if there was none."""
    whole = sa.select(sa.func.max(refreshes.c.finished_at)).where(refreshes.c.outcome == "whole")
    finished_at: datetime | None = connection.execute(whole).scalar()
    return finished_at


def refresh_times(connection: sa.Connection) -> frozenset[datetime]:
    """The observation times that refreshes gave to their rows."""
    return frozenset(connection.execute(sa.select(refreshes.c.started_at)).scalars())


def rewrite_report(connection: sa.Connection, refresh_id: str, report: dict[str, Any]) -> None:
    """Replace the report of a refresh, for facts that became known after the prices were written.

    Raises `ValueError` for a report that is not JSON.
    """
    which = sa.update(refreshes).where(refreshes.c.id == refresh_id)
    connection.execute(which.values(report=report))


class RefreshStore(OpenDatabase):
    """Refresh records and the refresh lock."""

    rewrite_report = writes(rewrite_report)
    refresh_times = reads(refresh_times)
    refreshes = reads(read_refreshes)
    refresh = reads(read_refresh)
    last_refresh = reads(last_refresh)
    last_whole_refresh_at = reads(last_whole)

    @contextmanager
    def refreshing(self, *, shared: str | None = None) -> "Iterator[CheckLock]":
        """Exclude other refreshes of this database. Raises `RefreshRunning` at once if one is running.

        Yields a function that raises `StoreFailure` once the lock is lost: then nothing may be written. `shared` is the run
        of a refresh shared by several processes, for the process that writes it.
        """
        from gpuplan.catalog.store.refresh_lock import refresh_lock

        with refresh_lock(self.engine, self.url, shared=shared) as check_lock:
            yield check_lock
