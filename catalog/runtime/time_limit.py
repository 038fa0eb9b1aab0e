"""An optional time limit for the current computation; services set one so that no thread computes for ever.

Long loops call `go_on()` regularly, and solvers get `seconds_left()`; both raise when the time is up. Without a limit a
call costs 0.1 microseconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

#: The minimum given to a solver, which checks its clock only occasionally.
_LEAST_SECONDS = 0.05


class OutOfTime(Exception):
    """The computation exceeded its time limit and has no result."""

    def __init__(self, seconds: float) -> None:
        """Stores the limit that was exceeded."""
        super().__init__(f"not done within {seconds:g} s")
        self.seconds = seconds

    def __reduce__(self) -> tuple[type["OutOfTime"], tuple[float]]:
        """Support pickling, because it may come from another process."""
        return type(self), (self.seconds,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    seconds: float
    until: float


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed_time", default=None)


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Limit the time of the enclosed work; None keeps the current limit."""
    if seconds is None:
        yield
        return
    token = _allowed.set(_Allowed(seconds=seconds, until=time.monotonic() + seconds))
    try:
        yield
    finally:
        _allowed.reset(token)


def go_on() -> None:
    """Raises `OutOfTime` once the current computation has exceeded its limit."""
    allowed = _allowed.get()
    if allowed is not None and time.monotonic() >= allowed.until:
        raise OutOfTime(allowed.seconds)


def seconds_left() -> float | None:
    """Remaining seconds for a solver; None without a limit. Raises `OutOfTime` if none remain."""
    go_on()
    allowed = _allowed.get()
    return None if allowed is None else max(_LEAST_SECONDS, allowed.until - time.monotonic())
