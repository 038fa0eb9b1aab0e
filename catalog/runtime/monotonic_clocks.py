"""Clocks that tolerate changes of the system time: expired keys stay expired, live processes stay live."""

import threading
import time
from datetime import UTC, datetime, timedelta

#: NTP slews clocks by less than this during any wait here; a larger jump means that the clock was set or the machine slept.
_MOST_DRIFT_SECONDS = 5.0


class SteadyClock:
    """Compares the wall clock with the monotonic clock on each call; safe for any number of threads."""

    def __init__(self) -> None:
        """Assume a correct clock until it jumps."""
        self._lock = threading.Lock()
        self._offset = time.time() - time.monotonic()
        self._jumped_at = float("-inf")

    def settled(self, span: timedelta) -> bool:
        """Whether this process has seen no clock jump for at least `span`."""
        with self._lock:
            now = time.monotonic()
            offset = time.time() - now
            if abs(offset - self._offset) > _MOST_DRIFT_SECONDS:
                self._jumped_at = now
            self._offset = offset
            return now - self._jumped_at >= span.total_seconds()


class ForwardClock:
    """The time of day, never going backwards while the process lives; safe for any number of threads.

    A clock set back would revive an expired key. At least as much time has passed since the process started as the
    monotonic clock says. A clock that was wrongly set forward and then corrected counts as it now reads.
    """

    def __init__(self) -> None:
        """Assume that the clock is correct now."""
        self._offset = time.time() - time.monotonic()

    def now(self) -> datetime:
        """The later of the wall clock and the start time plus the monotonic time since."""
        return datetime.fromtimestamp(max(time.time(), self._offset + time.monotonic()), UTC)
