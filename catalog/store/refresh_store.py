"""Refresh records and the refresh lock in the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gpuplan.catalog.store.open_database import OpenDatabase
from gpuplan.catalog.store.refresh_records import (
    RefreshRecord,
    last_whole,
    read_refresh,
    read_refreshes,
    refresh_times,
    rewrite_report,
)

if TYPE_CHECKING:
    from gpuplan.catalog.store.refresh_lock import CheckLock


class RefreshStore(OpenDatabase):
    """Refresh records and the refresh lock."""

    def rewrite_report(self, refresh_id: str, report: dict[str, Any]) -> None:
        """Add facts that became known after the prices were written to the report of a refresh."""
        with self._writing() as connection:
            rewrite_report(connection, refresh_id, report)

    def refresh_times(self) -> frozenset[datetime]:
        """The observation times of refreshes: a row with another time came with a release."""
        with self._reading() as connection:
            return refresh_times(connection)

    def refreshes(self) -> tuple[RefreshRecord, ...]:
        """The records of the last refreshes, newest first."""
        with self._reading() as connection:
            return read_refreshes(connection)

    def refresh(self, refresh_id: str) -> RefreshRecord:
        """The record of one refresh. Raises `NotStored` at `refresh` if there is none."""
        with self._reading() as connection:
            return read_refresh(connection, refresh_id)

    def last_refresh(self) -> RefreshRecord | None:
        """The record of the last refresh, None before the first."""
        with self._reading() as connection:
            return next(iter(read_refreshes(connection, limit=1)), None)

    def last_whole_refresh_at(self) -> datetime | None:
        """The end of the last complete refresh, None if there was none."""
        with self._reading() as connection:
            return last_whole(connection)

    @contextmanager
    def refreshing(self, *, shared: str | None = None) -> "Iterator[CheckLock]":
        """Exclude other refreshes of this database. Raises `RefreshRunning` at once if one is running.

        Yields a function that raises `StoreFailure` once the lock is lost: then nothing may be written. `shared` is the run
        of a refresh shared by several processes, for the process that writes it.
        """
        from gpuplan.catalog.store.refresh_lock import refresh_lock

        with refresh_lock(self.engine, self.url, shared=shared) as check_lock:
            yield check_lock
