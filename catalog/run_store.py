"""Runs in the store: each method one transaction."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

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
    read_run,
    write_run,
)

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


class RunStore:
    """The part of a store that runs live in. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing

    def add(self, run: Run) -> None:
        """Keeps a run; one that is there already stays as it is."""
        with self._writing() as connection:
            write_run(connection, run)

    def one(self, run_id: str, now: datetime) -> Run:
        """The run as it stands at `now`: failed, if its process has been silent for too long.

        Raises `NotStored` at `run` if there is none.
        """
        with self._reading() as connection:
            run = read_run(connection, run_id)
        if run.status not in LIVE or now - run.beat_at < SILENCE:
            return run
        with self._writing() as connection:
            give_up(connection, run_id, run.beat_at, now)
            return read_run(connection, run_id)

    def forget(self, run_id: str) -> None:
        """Forgets a run, if it is there."""
        with self._writing() as connection:
            delete_run(connection, run_id)

    def begin(self, run_id: str, now: datetime) -> bool:
        """Whether the caller may begin it: it was queued, and is running from now on."""
        with self._writing() as connection:
            return begin(connection, run_id, now)

    def beat(self, run_id: str, progress: Mapping[str, Any], now: datetime) -> Heard:
        """Notes that somebody is at it and how far it is, and says what they should do."""
        with self._writing() as connection:
            return beat(connection, run_id, progress, now)

    def end(
        self,
        run_id: str,
        status: Status,
        now: datetime,
        *,
        progress: Mapping[str, Any],
        answer: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> bool:
        """Writes how it ended; False if that is written already."""
        with self._writing() as connection:
            return end(connection, run_id, status, now, progress=progress, answer=answer, error=error)

    def ask_cancel(self, run_id: str) -> None:
        """Asks whoever is at it to end it; nothing happens to one that has ended."""
        with self._writing() as connection:
            ask_cancel(connection, run_id)
