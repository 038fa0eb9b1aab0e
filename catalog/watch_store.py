"""Watches and their notifications in the store: each method one transaction."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.notifications import Notification, hold, note, read_notifications, read_waiting, settle
from catalog.ownership import UNRESTRICTED, Viewer, read_owners
from catalog.watches import (
    Watch,
    count_watches,
    delete_watch,
    mark_checked,
    read_watch,
    read_watches,
    tell,
    write_watch,
)

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


class WatchStore:
    """The part of a store that watches live in. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing

    def save(self, watch: Watch, *, owner: str | None = None) -> Watch:
        """Keeps a watch of this owner (None: everybody's), and gives the one kept before under the same id, if any."""
        with self._writing() as connection:
            return write_watch(connection, watch, owner)

    def every(self, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, ...]:
        """Every watch that the viewer may read, the oldest first."""
        with self._reading() as connection:
            return read_watches(connection, viewer)

    def owners(self, watch_id: str) -> tuple[str | None, ...]:
        """Whose the watch is, as what is made for it is to be theirs: None for everybody's."""
        with self._reading() as connection:
            return read_owners(connection, "watch", watch_id) or (None,)

    def count(self) -> int:
        """How many watches there are."""
        with self._reading() as connection:
            return count_watches(connection)

    def one(self, watch_id: str, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, tuple[Notification, ...]]:
        """One watch and all it had to say, the newest first. Raises `NotStored` if there is none that the viewer may read."""
        with self._reading() as connection:
            return read_watch(connection, watch_id, viewer), read_notifications(connection, watch_id)

    def forget(self, watch_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Forgets a watch and all it had to say.

        Raises `NotStored` at `watch` if there is none that the viewer may read, `NotOwned` if it is another's.
        """
        with self._writing() as connection:
            delete_watch(connection, watch_id, viewer)

    def tell(
        self,
        before: Watch,
        last_told: Mapping[str, Any],
        said: Iterable[Notification],
        *,
        ended_at: datetime | None = None,
    ) -> bool:
        """Moves what a watch last told, with the notifications of it; False if another check did so first."""
        with self._writing() as connection:
            return tell(connection, before, last_told, said, ended_at=ended_at)

    def mark_checked(self, problems: Sequence[tuple[str, str]], now: datetime) -> None:
        """Notes of watches, given as (id, problem or empty), that they were planned at `now`."""
        with self._writing() as connection:
            mark_checked(connection, problems, now)

    def waiting(self) -> tuple[Notification, ...]:
        """All that is neither delivered nor given up, the oldest first."""
        with self._reading() as connection:
            return read_waiting(connection)

    def hold(self, notification_id: str, now: datetime, until: datetime) -> bool:
        """Whether the caller may send it, up to `until`: it waits, and nobody else holds it."""
        with self._writing() as connection:
            return hold(connection, notification_id, now, until)

    def settle(
        self,
        notification_id: str,
        *,
        attempts: int,
        error: str = "",
        delivered_at: datetime | None = None,
        given_up_at: datetime | None = None,
    ) -> None:
        """Notes how sending went after so many attempts, and lets go of it."""
        with self._writing() as connection:
            settle(
                connection,
                notification_id,
                attempts=attempts,
                error=error,
                delivered_at=delivered_at,
                given_up_at=given_up_at,
            )

    def note(self, notification_id: str, error: str) -> None:
        """Notes why a notification still waits, unless somebody has settled or holds it meanwhile."""
        with self._writing() as connection:
            note(connection, notification_id, error)
