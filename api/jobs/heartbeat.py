"""The heartbeat of a run: every two seconds it stores the progress and checks for cancellation."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from gpuplan.api.observability.log_context import bind, bound, restore
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.run_store import RunStore

log = logging.getLogger("gpuplan.runs")

#: The greatest age of the progress that readers of a run see.
BEAT_SECONDS = 2.0


class Heartbeat:
    """Heartbeat of one run, used as a context manager. Beats that cannot be stored are logged and retried."""

    def __init__(
        self,
        runs: RunStore,
        run_id: str,
        *,
        beat_seconds: float = BEAT_SECONDS,
        attempt: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Heartbeat of the stored run with this id; `attempt` is its number of executions from the queue.

        `interrupted` returns whether the process must end: then the work stops, and another process starts it again.
        """
        self._runs, self.run_id, self._every = runs, run_id, beat_seconds
        self.attempt, self._interrupted = attempt, interrupted
        self._progress: JsonObject = {}
        self._cancel, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"pulse of {run_id}", daemon=True)
        self.reason: str | None = None
        self._logged = bound()

    @property
    def progress(self) -> JsonObject:
        """The current progress."""
        return self._progress

    def tell(self, progress: JsonObject) -> None:
        """Set the progress. Pass a new object each time, because the previous one may be in use by the writer."""
        self._progress = progress

    def cancel(self, reason: str | None = None) -> None:
        """Request the end of the run; the first reason applies."""
        self.reason = self.reason or reason
        self._cancel.set()

    def cancelled(self) -> bool:
        """Whether the run should end soon."""
        return self._cancel.is_set() or self._interrupted()

    def to_put_back(self) -> bool:
        """Whether the work must end because of its process, not because of a user."""
        return self.attempt is not None and self._interrupted() and not self._cancel.is_set()

    def __enter__(self) -> Self:
        self._logged = bind(run_id=self.run_id)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        restore(self._logged)

    def _beat(self) -> None:
        while not self._over.wait(self._every):
            try:
                heard = self._runs.beat(self.run_id, self._progress, datetime.now(UTC), self.attempt)
            except StoreFailure as error:
                log.warning("run %s: its progress could not be written: %s", self.run_id, error)
                continue
            if heard != "go on" and not self._over.is_set():
                self.cancel("its requester no longer waits for it" if heard == "given up" else None)
