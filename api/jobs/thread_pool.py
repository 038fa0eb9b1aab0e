"""Runs in threads of this process with a limit on concurrency: for one machine with a store of its own.

Executing a run needs only its id, since the store has the rest; progress, cancellation and answers also go through the
store. On PostgreSQL `gpuplan.api.jobs.queue.queued_pool` has the same methods, and workers take the runs.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Protocol

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.run_store import Run, RunStore

log = logging.getLogger("gpuplan.runs")

#: A search uses a core for minutes, and plans must still be answered meanwhile.
AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
#: At a minute per run, a longer queue takes too long.
MOST_WAITING = 8
#: How long a stopping service waits for its runs to store their best plans.
STOP_SECONDS = 8.0
#: How often a waiting run checks whether it was cancelled.
_LOOK_SECONDS = 0.2


class Busy(Exception):
    """The queue of runs is full."""


class RunPool(Protocol):
    """The interface of run pools that a service uses."""

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Store a run of this owner and queue it. Raises `Busy`, or `StoreFailure` if it cannot be
        stored.
        """

    def ended(self, run_id: str) -> Future[None] | None:
        """A future that is done when the run has ended; None if it has ended or cannot be observed here."""

    def heartbeat(self, run_id: str) -> Heartbeat | None:
        """The heartbeat of a run of this process, until it ends."""

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Request the end of the run from its executor."""

    def stop(self) -> None:
        """Stop with the service."""


class Pool:
    """Executes runs in daemon threads, `at_once` of them; up to `waiting` more are queued and keep a heartbeat in the
    store.
    """

    def __init__(
        self, execute: Callable[[Heartbeat], None], *, at_once: int = AT_ONCE, waiting: int = MOST_WAITING
    ) -> None:
        """`execute` does the work of a run, given its heartbeat."""
        self._execute, self._most = execute, at_once + waiting
        self._turn = threading.BoundedSemaphore(at_once)
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Heartbeat, Future[None]]] = {}

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Store the run and queue it. Raises `Busy`, or `StoreFailure` if it cannot be stored."""
        heartbeat, ended = Heartbeat(runs, run.id), Future[None]()
        with self._lock:
            if len(self._open) >= self._most:
                raise Busy(f"{len(self._open)} runs are already running or waiting")
            self._open[run.id] = heartbeat, ended
        try:
            runs.add(run, owner=owner)
            threading.Thread(target=self._run, args=(heartbeat, ended), name=run.id, daemon=True).start()
        except BaseException:
            self._close(run.id, ended)
            raise

    def ended(self, run_id: str) -> Future[None] | None:
        """A future that is done when the run has ended; None if it runs elsewhere or has ended."""
        open_run = self._open.get(run_id)
        return open_run and open_run[1]

    def heartbeat(self, run_id: str) -> Heartbeat | None:
        """The heartbeat of a run of this process, until it ends."""
        open_run = self._open.get(run_id)
        return open_run and open_run[0]

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Request the end of a run of this process; other processes request it through the store."""
        if (run_heartbeat := self.heartbeat(run_id)) is not None:
            run_heartbeat.cancel(reason)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Request the end of all runs, and wait this long for them to store their results."""
        with self._lock:
            every = list(self._open.values())
        for heartbeat, _ in every:
            heartbeat.cancel("the service was stopped")
        wait([ended for _, ended in every], timeout=seconds)

    def _run(self, heartbeat: Heartbeat, ended: "Future[None]") -> None:
        try:
            with heartbeat:
                while not self._turn.acquire(timeout=_LOOK_SECONDS):
                    if heartbeat.cancelled():
                        self._execute(heartbeat)
                        return
                try:
                    self._execute(heartbeat)
                finally:
                    self._turn.release()
        except StoreFailure as error:
            # The stored run remains unchanged and is abandoned after enough missed heartbeats.
            log.error("run %s: its end could not be written: %s", heartbeat.run_id, error)
        finally:
            self._close(heartbeat.run_id, ended)

    def _close(self, run_id: str, ended: "Future[None]") -> None:
        with self._lock:
            del self._open[run_id]
        ended.set_result(None)
