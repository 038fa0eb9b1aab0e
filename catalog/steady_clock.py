"""Clocks for what must hold although this machine's clock is set: what is over stays over, what is alive stays alive."""

import threading
import time
from datetime import UTC, datetime, timedelta

#: Clocks that are kept by NTP are slewed by less than this in any wait of ours; more is a clock that was set, or a
#: machine that slept.
_MOST_DRIFT_SECONDS = 5.0


class SteadyClock:
    """Compares the wall clock with the monotonic one each time it is asked; for any number of threads."""

    def __init__(self) -> None:
        """The clock is taken to be right until it jumps."""
        self._lock = threading.Lock()
        self._offset = time.time() - time.monotonic()
        self._jumped_at = float("-inf")

    def settled(self, span: timedelta) -> bool:
        """Whether the clock has gone on evenly for at least `span` as far as this process knows."""
        with self._lock:
            now = time.monotonic()
            offset = time.time() - now
            if abs(offset - self._offset) > _MOST_DRIFT_SECONDS:
                self._jumped_at = now
            self._offset = offset
            return now - self._jumped_at >= span.total_seconds()


class ForwardClock:
    """The time of day, which never goes back while the process lives; for any number of threads.

    A clock that is set back would revive a key that has expired: from the start of the process on, at least as much
    time has passed as the monotonic clock says. A clock that was set forward by mistake, and back, counts as it stands.
    """

    def __init__(self) -> None:
        """The clock is taken to be right now."""
        self._offset = time.time() - time.monotonic()

    def now(self) -> datetime:
        """The later of the wall clock's time and that since the start."""
        return datetime.fromtimestamp(max(time.time(), self._offset + time.monotonic()), UTC)
