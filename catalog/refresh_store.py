"""The part of the store that says what refreshes did, and lets one run at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from catalog.open_database import OpenDatabase
from catalog.refreshes import (
    RefreshRecord,
    last_whole,
    read_refresh,
    read_refreshes,
    refresh_times,
    rewrite_report,
)

if TYPE_CHECKING:
    from catalog.refresh_lock import StillHeld


class RefreshStore(OpenDatabase):
    """What refreshes did."""

    def rewrite_report(self, refresh_id: str, report: dict[str, Any]) -> None:
        """Puts what became known after the prices were written into the report of a refresh."""
        with self._writing() as connection:
            rewrite_report(connection, refresh_id, report)

    def refresh_times(self) -> frozenset[datetime]:
        """The times that the rows of refreshes carry: a row of another time came with a release."""
        with self._reading() as connection:
            return refresh_times(connection)

    def refreshes(self) -> tuple[RefreshRecord, ...]:
        """What the last refreshes did, the newest first."""
        with self._reading() as connection:
            return read_refreshes(connection)

    def refresh(self, refresh_id: str) -> RefreshRecord:
        """What one refresh did. Raises `NotStored` at `refresh` if there is none."""
        with self._reading() as connection:
            return read_refresh(connection, refresh_id)

    def last_refresh(self) -> RefreshRecord | None:
        """What the last refresh did, None before the first."""
        with self._reading() as connection:
            return next(iter(read_refreshes(connection, limit=1)), None)

    def last_whole_refresh_at(self) -> datetime | None:
        """When the last refresh ended that left nothing out, None if there never was one."""
        with self._reading() as connection:
            return last_whole(connection)

    @contextmanager
    def refreshing(self, *, shared: str | None = None) -> "Iterator[StillHeld]":
        """Keeps every other refresh of this database out. Raises `RefreshRunning` at once if one runs already.

        Gives what raises `StoreFailure` once the lock was lost: nothing may be written then.
        `shared` is the run of a refresh that several processes share, for the one that writes it.
        """
        from catalog.refresh_lock import refresh_lock

        with refresh_lock(self.engine, self.url, shared=shared) as still_held:
            yield still_held
