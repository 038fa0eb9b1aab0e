"""Runs by the queue: kept and put in at once, executed by whichever worker is free, seen and cancelled from anywhere."""

import logging
import threading
from concurrent.futures import Future

import sqlalchemy as sa

from api.runs.pool import Busy
from api.runs.pulse import Pulse
from api.tasks.names import EXECUTE, RUNS
from api.tasks.queue import Queue, job
from api.tasks.queue_schema import upgrade_queue
from catalog.errors import StoreFailure
from catalog.run_store import RunStore
from catalog.runs import LIVE, Run, queued_run
from catalog.store import Store

log = logging.getLogger("gpuplan.runs")

#: At a minute each and with one worker, a longer queue is a wait that nobody plans with.
MOST_WAITING = 64
#: How often it is looked whether runs that somebody here waits for have ended.
_LOOK_SECONDS = 0.1


class NoWorker(Busy):
    """Nobody is there who takes runs."""


class QueuedPool:
    """Has the methods of `api.runs.pool.Pool`. The queue's tables are made on the way if need be."""

    def __init__(self, store: Store, *, waiting: int = MOST_WAITING) -> None:
        """On the queue of this store. Raises `StoreFailure` if its tables cannot be made or used."""
        upgrade_queue(store)
        self._store, self._queue, self._most = store, Queue(store), waiting
        self._changed = threading.Condition()
        self._awaited: dict[str, Future[None]] = {}
        self._stopped = False
        self._watcher: threading.Thread | None = None

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Keep the run and queue it. Raises `Busy` if too many wait or no worker is there, or `StoreFailure`."""
        require_worker(self._queue)
        runs.add(queued_run(run), owner=owner, then=lambda connection: self._put_in(connection, run.id))

    def ended(self, run_id: str) -> Future[None] | None:
        """Is done when the run has ended, wherever it runs; None once that is so."""
        try:
            status = self._store.runs.statuses([run_id]).get(run_id)
        except StoreFailure:
            return None  # whoever reads the run next is told why
        if status not in LIVE:
            return None
        with self._changed:
            found = self._awaited.setdefault(run_id, Future())
            if self._watcher is None and not self._stopped:
                self._watcher = threading.Thread(target=self._watch, name="watch of runs", daemon=True)
                self._watcher.start()
            self._changed.notify()
        return found

    def pulse(self, run_id: str) -> Pulse | None:
        """None: its process is another one, which writes its progress down every other second."""
        return None

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Ask whoever is at it to end it."""
        self._store.runs.ask_cancel(run_id)

    def stop(self) -> None:
        """Runs go on without this process; those that wait for one here wait no more."""
        with self._changed:
            self._stopped = True
            left, self._awaited = self._awaited, {}
            self._changed.notify()
        for each in left.values():
            each.set_result(None)

    def _put_in(self, connection: sa.Connection, run_id: str) -> None:
        waiting = self._queue.waiting(connection, RUNS)
        if waiting >= self._most:
            raise Busy(f"{waiting} runs wait already")
        self._queue.defer(connection, job(EXECUTE, RUNS, lock=run_id, run_id=run_id))

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._awaited or self._stopped)
                if self._stopped:
                    return
                asked = list(self._awaited)
            self._look(asked)
            threading.Event().wait(_LOOK_SECONDS)

    def _look(self, asked: list[str]) -> None:
        try:
            found = self._store.runs.statuses(asked)
        except StoreFailure as error:
            log.warning("runs could not be looked at: %s", error)
            found = {}
        over = [run_id for run_id in asked if found.get(run_id) not in LIVE]
        with self._changed:
            ended = [self._awaited.pop(run_id, None) for run_id in over]
        for each in ended:
            if each is not None:
                each.set_result(None)


def require_worker(queue: Queue) -> None:
    """Raises `NoWorker` unless a worker has said lately that it lives: what is queued would wait for nobody."""
    if not queue.workers():
        raise NoWorker("no worker is running that would take it; start `gpuplan worker` on this database")
