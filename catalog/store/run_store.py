"""Background runs in the store: one transaction per method."""

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.runtime.monotonic_clocks import SteadyClock
from gpuplan.catalog.store import stored_runs
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, refuse_others
from gpuplan.catalog.store.store_part import StorePart, Transaction, reads, writes
from gpuplan.catalog.store.stored_runs import (
    LIVE,
    SILENCE,
    Run,
    ask_cancel,
    give_up,
    give_up_refreshes,
    read_run,
    write_run,
)


class RunStore(StorePart):
    """The runs in the store."""

    has_live_refresh = reads(stored_runs.has_live_refresh)
    failed_refreshes = reads(stored_runs.read_failed_refreshes)
    statuses = reads(stored_runs.read_statuses)
    forget = writes(stored_runs.delete_run)
    begin = writes(stored_runs.begin)
    take = writes(stored_runs.take)
    put_back = writes(stored_runs.put_back)
    beat = writes(stored_runs.beat)
    end = writes(stored_runs.end)

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """Starts to watch this machine's clock."""
        super().__init__(reading=reading, writing=writing)
        self._clock = SteadyClock()

    def add(self, run: Run, *, owner: str | None = None, then: Callable[[sa.Connection], None] | None = None) -> None:
        """Add a run of this owner (None: everybody); an existing run stays unchanged and gains the owner.

        `then` writes in the same transaction.
        """
        with self._writing() as connection:
            write_run(connection, run, owner)
            if then is not None:
                then(connection)

    def one(self, run_id: str, now: datetime, viewer: Viewer = UNRESTRICTED) -> Run:
        """The run at `now`; failed if its process has been silent for too long.

        A run is not failed shortly after this machine's clock was set, nor if a queue manages it. Raises `NotStored` at
        `run` if the viewer cannot read one with this id.
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
        """Mark refreshes as failed whose process has been silent for too long, and return their number.

        `alone` is for the holder of the refresh lock: then no other process can be refreshing, regardless of recent
        heartbeats.
        """
        if not alone and not self._clock.settled(SILENCE):
            return 0
        with self._writing() as connection:
            return give_up_refreshes(connection, None if alone else now - SILENCE, now)

    def ask_cancel(self, run_id: str, viewer: Viewer = UNRESTRICTED) -> None:
        """Request the cancellation of a run; has no effect on one that has ended. Raises `NotOwned` for another owner's run."""
        with self._writing() as connection:
            refuse_others(connection, "run", run_id, viewer)
            ask_cancel(connection, run_id)
