"""A run's pulse: while it goes on, its progress is written every other second and the wish to cancel it is heard."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from api.telemetry.context import bind, bound, restore
from catalog.errors import StoreFailure
from catalog.run_store import RunStore

log = logging.getLogger("gpuplan.runs")

#: Nobody who looks at a run is told older news than this.
BEAT_SECONDS = 2.0


class Pulse:
    """Of one run, inside `with`. Beats that the store does not take are logged and tried again."""

    def __init__(
        self,
        runs: RunStore,
        run_id: str,
        *,
        beat_seconds: float = BEAT_SECONDS,
        attempt: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Of the run with this id, which is in the store; of this `attempt` at it, if a queue hands it out.

        `interrupted` says whether the process has to end: then the work ends too, and another process begins anew.
        """
        self._runs, self.run_id, self._every = runs, run_id, beat_seconds
        self.attempt, self._interrupted = attempt, interrupted
        self._progress: dict[str, Any] = {}
        self._cancel, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"pulse of {run_id}", daemon=True)
        self.reason: str | None = None
        self._logged = bound()

    @property
    def progress(self) -> dict[str, Any]:
        """How far it is."""
        return self._progress

    def tell(self, progress: dict[str, Any]) -> None:
        """How far it is now; a new object each time, since the last one may be being written."""
        self._progress = progress

    def cancel(self, reason: str | None = None) -> None:
        """Ask whoever is at it to end soon; the first reason counts."""
        self.reason = self.reason or reason
        self._cancel.set()

    def cancelled(self) -> bool:
        """Whether to end soon."""
        return self._cancel.is_set() or self._interrupted()

    def to_put_back(self) -> bool:
        """Whether nobody but the process wants the work to end."""
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
                self.cancel("nobody waits for it any more" if heard == "given up" else None)
