"""How long the work at hand may take, where somebody set a limit: a service does, so that no thread computes for ever.

Long loops say `go_on()` now and then, and solvers are given `seconds_left()`; who runs out of time stops there. Work
without a limit pays a tenth of a microsecond.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

#: The least that a solver is given: it looks at its clock only now and then.
_LEAST_SECONDS = 0.05


class OutOfTime(Exception):
    """The work took longer than it may; nothing came of it."""

    def __init__(self, seconds: float) -> None:
        """With what it might have taken."""
        super().__init__(f"not done within {seconds:g} s")
        self.seconds = seconds

    def __reduce__(self) -> tuple[type["OutOfTime"], tuple[float]]:
        """It may come from another process."""
        return type(self), (self.seconds,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    seconds: float
    until: float


_allowed: ContextVar[_Allowed | None] = ContextVar("allowed_time", default=None)


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """What is done inside may take so long; None is any time, or what was allowed before."""
    if seconds is None:
        yield
        return
    token = _allowed.set(_Allowed(seconds=seconds, until=time.monotonic() + seconds))
    try:
        yield
    finally:
        _allowed.reset(token)


def go_on() -> None:
    """Raises `OutOfTime` once the work at hand has taken too long."""
    allowed = _allowed.get()
    if allowed is not None and time.monotonic() >= allowed.until:
        raise OutOfTime(allowed.seconds)


def seconds_left() -> float | None:
    """What a solver may take; None without a limit. Raises `OutOfTime` where nothing is left."""
    go_on()
    allowed = _allowed.get()
    return None if allowed is None else max(_LEAST_SECONDS, allowed.until - time.monotonic())
