"""Runs in the store: each method one transaction."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.ownership import UNRESTRICTED, Viewer, refuse_others
from catalog.runs import (
    LIVE,
    SILENCE,
    Heard,
    Run,
    Status,
    ask_cancel,
    beat,
    begin,
    delete_run,
    end,
    give_up,
    give_up_refreshes,
    has_live_refresh,
    put_back,
    read_failed_refreshes,
    read_run,
    read_statuses,
    take,
    write_run,
)
from catalog.steady_clock import SteadyClock

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


class RunStore:
    """The part of a store that runs live in. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing
        self._clock = SteadyClock()

    def add(self, run: Run, *, owner: str | None = None, then: Callable[[sa.Connection], None] | None = None) -> None:
        """Keeps a run of this owner (None: everybody's); one that is there already stays as it is, and is theirs too.

        What `then` does is kept with it, or neither is.
        """
        with self._writing() as connection:
            write_run(connection, run, owner)
            if then is not None:
                then(connection)

    def one(self, run_id: str, now: datetime, viewer: Viewer = UNRESTRICTED) -> Run:
        """The run as it stands at `now`: failed, if its process has been silent for too long.

        Not while this machine's clock was set a moment ago, nor where a queue takes care of it. Raises `NotStored` at
        `run` if there is none that the viewer may read.
        """
        with self._reading() as connection:
            run = read_run(connection, run_id, viewer)
        settled = self._clock.settled(SILENCE)
        if run.status not in LIVE or run.attempt is not None or now - run.beat_at < SILENCE or not settled:
            return run
        with self._writing() as connection:
            give_up(connection, run_id, run.beat_at, now)
            return read_run(connection, run_id)

    def give_up_refreshes(self, now: datetime, *, alone: bool = False) -> int:
        """Ends refreshes as failed whose process has been silent for too long, and says how many.

        `alone` is for who holds the lock of a refresh: then no other process is at one, however lately it was heard of.
        """
        if not alone and not self._clock.settled(SILENCE):
            return 0
        with self._writing() as connection:
            return give_up_refreshes(connection, None if alone else now - SILENCE, now)

    def has_live_refresh(self) -> bool:
        """Whether any process seems to be at a refresh that no queue hands out."""
        with self._reading() as connection:
            return has_live_refresh(connection)

    def failed_refreshes(self, limit: int) -> tuple[Run, ...]:
        """The last refreshes that failed without leaving a report, the newest first."""
        with self._reading() as connection:
            return read_failed_refreshes(connection, limit)

    def forget(self, run_id: str) -> None:
        """Forgets a run, if it is there."""
        with self._writing() as connection:
            delete_run(connection, run_id)

    def begin(self, run_id: str, now: datetime) -> bool:
        """Whether the caller may begin it: it was queued, and is running from now on."""
        with self._writing() as connection:
            return begin(connection, run_id, now)

    def take(self, run_id: str, now: datetime) -> int | None:
        """The number of the attempt that the caller begins at a run of a queue; None if it has ended."""
        with self._writing() as connection:
            return take(connection, run_id, now)

    def put_back(self, run_id: str, attempt: int, now: datetime) -> bool:
        """Whether this attempt has become one that waits again, for another process to begin anew."""
        with self._writing() as connection:
            return put_back(connection, run_id, attempt, now)

    def beat(self, run_id: str, progress: Mapping[str, Any], now: datetime, attempt: int | None = None) -> Heard:
        """Notes that somebody is at it and how far it is, and says what they should do."""
        with self._writing() as connection:
            return beat(connection, run_id, progress, now, attempt)

    def end(
        self,
        run_id: str,
        status: Status,
        now: datetime,
        *,
        progress: Mapping[str, Any] | None,
        answer: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        attempt: int | None = None,
    ) -> bool:
        """Writes how it ended; False if that is written already, or another attempt is at it."""
        with self._writing() as connection:
            return end(connection, run_id, status, now, progress=progress, answer=answer, error=error, attempt=attempt)

    def statuses(self, run_ids: Collection[str]) -> dict[str, Status]:
        """How these runs stand, of those that there are."""
        with self._reading() as connection:
            return read_statuses(connection, run_ids)

    def ask_cancel(self, run_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Asks whoever is at it to end it; nothing happens to one that has ended. Raises `NotOwned` for another's."""
        with self._writing() as connection:
            refuse_others(connection, "run", run_id, viewer)
            ask_cancel(connection, run_id)
