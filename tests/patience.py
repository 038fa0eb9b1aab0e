"""Waiting for what another thread or process does: until it is so, on however busy a machine."""

import time
from collections.abc import Callable

#: Reached only by what would never come: each test of a busy machine ends far before.
MOST_SECONDS = 90.0
MINUTE, DAY = 60, 86_400


def until[Found](look_up: Callable[[], Found | None], *, seconds: float = MOST_SECONDS) -> Found:
    """What `found` gives, as soon as that is true; an assertion fails where it never is."""
    end = time.monotonic() + seconds
    while not (now := look_up()):
        assert time.monotonic() < end, f"still {now!r} after {seconds:g} s"
        time.sleep(0.01)
    return now


def enough_left(period_seconds: int, seconds: float) -> None:
    """Waits for the next minute or day in UTC where less than `seconds` are left of this one, in which all is counted."""
    left = period_seconds - time.time() % period_seconds
    if left < seconds:
        time.sleep(left)
