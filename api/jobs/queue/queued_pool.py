"""Runs on the queue: stored and queued together, executed by any worker, observed and cancelled from any process."""

import logging
import threading
from concurrent.futures import Future

import sqlalchemy as sa

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.queue.queue_names import EXECUTE, RUNS
from gpuplan.api.jobs.queue.queue_schema import upgrade_queue
from gpuplan.api.jobs.queue.task_queue import Queue, job
from gpuplan.api.jobs.thread_pool import Busy
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.run_store import LIVE, Run, RunStore, queued_run
from gpuplan.catalog.store.store import Store

log = logging.getLogger("gpuplan.runs")

#: At a minute per run and one worker, a longer queue takes too long.
MOST_WAITING = 64
#: How often to check whether awaited runs have ended.
_LOOK_SECONDS = 0.1


class NoWorker(Busy):
    """No worker is running."""


class QueuedPool:
    """Runs on the queue, with the methods of `gpuplan.api.jobs.thread_pool.Pool`. Creates the queue's tables if needed."""

    def __init__(self, store: Store, *, waiting: int = MOST_WAITING) -> None:
        """Uses the queue of this store. Raises `StoreFailure` if its tables cannot be created or used."""
        upgrade_queue(store)
        self._store, self._queue, self._most = store, Queue(store), waiting
        self._changed = threading.Condition()
        self._awaited: dict[str, Future[None]] = {}
        self._stopped = False
        self._watcher: threading.Thread | None = None

    def start(self, runs: RunStore, run: Run, *, owner: str | None = None) -> None:
        """Store the run and queue it. Raises `Busy` if too many runs wait or no worker is running, or `StoreFailure`."""
        require_worker(self._queue)
        runs.add(queued_run(run), owner=owner, then=lambda connection: self._put_in(connection, run.id))

    def ended(self, run_id: str) -> Future[None] | None:
        """A future that is done when the run has ended, in any process; None if it has already ended."""
        try:
            status = self._store.runs.statuses([run_id]).get(run_id)
        except StoreFailure:
            return None  # the next reader of the run gets the reason
        if status not in LIVE:
            return None
        with self._changed:
            future = self._awaited.setdefault(run_id, Future())
            if self._watcher is None and not self._stopped:
                self._watcher = threading.Thread(target=self._watch, name="watch of runs", daemon=True)
                self._watcher.start()
            self._changed.notify()
        return future

    def heartbeat(self, run_id: str) -> Heartbeat | None:
        """None: another process executes the run and stores its progress every two seconds."""
        return None

    def cancel(self, run_id: str, reason: str | None = None) -> None:
        """Request the end of the run from its executor."""
        self._store.runs.ask_cancel(run_id)

    def stop(self) -> None:
        """Runs continue without this process; it stops waiting for them."""
        with self._changed:
            self._stopped = True
            left, self._awaited = self._awaited, {}
            self._changed.notify()
        for future in left.values():
            future.set_result(None)

    def _put_in(self, connection: sa.Connection, run_id: str) -> None:
        waiting = self._queue.waiting(connection, RUNS)
        if waiting >= self._most:
            raise Busy(f"{waiting} runs are already waiting")
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
            statuses = self._store.runs.statuses(asked)
        except StoreFailure as error:
            log.warning("runs could not be looked at: %s", error)
            statuses = {}
        over = [run_id for run_id in asked if statuses.get(run_id) not in LIVE]
        with self._changed:
            ended = [self._awaited.pop(run_id, None) for run_id in over]
        for ended_id in ended:
            if ended_id is not None:
                ended_id.set_result(None)


def require_worker(queue: Queue) -> None:
    """Raises `NoWorker` unless a worker has a recent heartbeat: otherwise queued work would never start."""
    if not queue.workers():
        raise NoWorker("no worker is running; start `gpuplan worker` on this database")
