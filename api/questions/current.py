"""The prices that plans rest on: those of the current snapshot, once they are whole.

Reading a snapshot and arranging it for the planner takes about a second. The question that finds another snapshot
waits for that, and so do those beside it: whoever has seen a refresh end plans on its prices. It is done in a thread of
its own, so that no question that is cut off or goes on for ever takes it along. Where it takes too long, questions go on
with all of the last prices meanwhile: never with a part of each.
"""

import logging
import threading
from collections.abc import Callable

from catalog.columns import Columns
from catalog.errors import StoreFailure, UnusableInput

log = logging.getLogger("gpuplan.prices")

#: What a question gives to new prices: several times what preparing takes of a core that it has for itself.
MOST_WAIT_SECONDS = 5.0


class CurrentColumns:
    """Columns by the id of the current snapshot; safe to share between threads.

    Before `prepare` was called once, and where preparing has failed, the question that asks waits for its columns and
    hears why there are none, as in a process that answers one question.
    """

    def __init__(
        self,
        load: Callable[[str], Columns],
        arrange: Callable[[Columns], None],
        *,
        most_wait_seconds: float = MOST_WAIT_SECONDS,
    ) -> None:
        """`load` reads a snapshot, `arrange` has the planner make of it what it would make at the first question."""
        self._load, self._arrange, self._most_wait_seconds = load, arrange, most_wait_seconds
        self._changing = threading.Condition()
        self._ready: Columns | None = None
        self._preparing: str | None = None
        self._failed: str | None = None

    @property
    def started(self) -> bool:
        """Whether a snapshot was prepared, so that later ones are as well."""
        return self._ready is not None

    def of(self, current: str) -> Columns:
        """The columns of this snapshot, prepared while the question waits; those that were last if that takes too long."""
        ready = self._ready
        if ready is not None and ready.snapshot_id == current:
            return ready
        if ready is None or self._failed == current:
            return self._load(current)
        with self._changing:
            begun, self._preparing = self._preparing == current, current
        if not begun:
            threading.Thread(target=self._beside, args=(current,), name="new prices", daemon=True).start()
        with self._changing:
            self._changing.wait_for(lambda: self._preparing != current, self._most_wait_seconds)
            now, failed = self._ready or ready, self._failed == current
        return self._load(current) if failed else now

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
                self._changing.notify_all()

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
                    self._changing.notify_all()
