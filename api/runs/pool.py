"""Runs in threads of this process, a bounded number at once: for one machine, and a store that only it can reach.

Whoever executes a run needs its id and nothing else, since the store holds the rest; progress, cancelling and the
answer go through the store too. On PostgreSQL `api.runs.queued` has the same methods, and workers take the runs.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Protocol

from api.runs.pulse import Pulse
from catalog.errors import StoreFailure
from catalog.run_store import RunStore
from catalog.runs import Run

log = logging.getLogger("gpuplan.runs")

#: A search keeps a core busy for minutes, and plans must still be answered beside it.
AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
#: At a minute each, a longer queue is a wait that nobody plans with.
MOST_WAITING = 8
#: What a service that stops grants its runs to write down the best that they found.
STOP_SECONDS = 8.0
#: A waiting run looks this often whether it was cancelled.
_LOOK_SECONDS = 0.2


class Busy(Exception):
    """As many runs wait as may."""


class RunPool(Protocol):
    """What a service asks of whatever executes its runs."""

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Keep the run of this owner and execute it in its turn. Raises `Busy`, or `StoreFailure` if it cannot be kept."""

    def ended(self, run_id: str) -> Future[None] | None:
        """Is done when the run has ended; None if it has, or if nobody here can tell."""

    def pulse(self, run_id: str) -> Pulse | None:
        """The pulse of a run of this process, while it goes on."""

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Ask whoever is at the run to end it."""

    def stop(self) -> None:
        """The service stops."""


class Pool:
    """Executes runs in daemon threads, `at_once` of them; up to `waiting` more are queued, alive in the store."""

    def __init__(
        self, execute: Callable[[Pulse], None], *, at_once: int = AT_ONCE, waiting: int = MOST_WAITING
    ) -> None:
        """With what does the work of a run, given its pulse."""
        self._execute, self._most = execute, at_once + waiting
        self._turn = threading.BoundedSemaphore(at_once)
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Pulse, Future[None]]] = {}

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Keep the run and execute it when its turn comes. Raises `Busy`, or `StoreFailure` if it cannot be kept."""
        pulse, ended = Pulse(runs, run.id), Future[None]()
        with self._lock:
            if len(self._open) >= self._most:
                raise Busy(f"{len(self._open)} runs are under way or wait already")
            self._open[run.id] = pulse, ended
        try:
            runs.add(run, owner=owner)
            threading.Thread(target=self._run, args=(pulse, ended), name=run.id, daemon=True).start()
        except BaseException:
            self._close(run.id, ended)
            raise

    def ended(self, run_id: str) -> Future[None] | None:
        """Is done when the run has ended; None if it runs elsewhere or has ended already."""
        found = self._open.get(run_id)
        return found and found[1]

    def pulse(self, run_id: str) -> Pulse | None:
        """The pulse of a run of this process, while it goes on."""
        found = self._open.get(run_id)
        return found and found[0]

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Ask a run of this process to end; the wish of others is heard in the store."""
        if (found := self.pulse(run_id)) is not None:
            found.cancel(reason)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask all runs to end, and wait so long for them to write what they found."""
        with self._lock:
            every = list(self._open.values())
        for pulse, _ in every:
            pulse.cancel("the service was stopped")
        wait([ended for _, ended in every], timeout=seconds)

    def _run(self, pulse: Pulse, ended: "Future[None]") -> None:
        try:
            with pulse:
                while not self._turn.acquire(timeout=_LOOK_SECONDS):
                    if pulse.cancelled():
                        self._execute(pulse)
                        return
                try:
                    self._execute(pulse)
                finally:
                    self._turn.release()
        except StoreFailure as error:
            # Its row stays as it is, and is given up when nothing was heard of it for long enough.
            log.error("run %s: its end could not be written: %s", pulse.run_id, error)
        finally:
            self._close(pulse.run_id, ended)

    def _close(self, run_id: str, ended: "Future[None]") -> None:
        with self._lock:
            del self._open[run_id]
        ended.set_result(None)
