"""The prices that plans rest on: those of the current snapshot, or of the one before it while the new ones are prepared.

Reading a snapshot and arranging it for the planner takes up to seconds. A service that notices another one does that in
a thread beside its requests, and until it is done each question goes on with all of the last: never with a part of each.
"""

import logging
import threading
from collections.abc import Callable

from catalog.columns import Columns
from catalog.errors import StoreFailure, UnusableInput

log = logging.getLogger("gpuplan.prices")


class CurrentColumns:
    """Columns by the id of the current snapshot; safe to share between threads.

    Before `prepare` was called once, and where preparing has failed, the question that asks waits for its columns and
    hears why there are none, as in a process that answers one question.
    """

    def __init__(self, load: Callable[[str], Columns], arrange: Callable[[Columns], None]) -> None:
        """`load` reads a snapshot, `arrange` has the planner make of it what it would make at the first question."""
        self._load, self._arrange = load, arrange
        self._changing = threading.Lock()
        self._ready: Columns | None = None
        self._preparing: str | None = None
        self._failed: str | None = None

    @property
    def started(self) -> bool:
        """Whether a snapshot was prepared, so that later ones are as well."""
        return self._ready is not None

    def of(self, current: str) -> Columns:
        """The columns of this snapshot if they are ready, else those that were last; then these are begun to be prepared."""
        ready = self._ready
        if ready is not None and ready.snapshot_id == current:
            return ready
        if ready is None or self._failed == current:
            return self._load(current)
        with self._changing:
            begun, self._preparing = self._preparing == current, current
        if not begun:
            threading.Thread(target=self._beside, args=(current,), name="new prices", daemon=True).start()
        return ready

    def prepare(self, current: str) -> None:
        """Make this snapshot ready here and now; questions rest on it from then on."""
        with self._changing:
            self._preparing = current
        columns = self._load(current)
        self._arrange(columns)
        with self._changing:
            # One that was overtaken by a newer is no longer what questions are to rest on.
            if self._preparing == current:
                self._ready, self._preparing, self._failed = columns, None, None

    def _beside(self, current: str) -> None:
        """`prepare` in its own thread, where a failure has nobody to hear it: the next question tries, and hears it."""
        try:
            self.prepare(current)
        except (StoreFailure, UnusableInput) as error:
            log.warning("snapshot %s could not be prepared: %s", current, error)
        finally:
            with self._changing:
                if self._preparing == current:
                    self._preparing, self._failed = None, current
