"""Planning in threads, a bounded number at once, so that the event loop never waits for arithmetic."""

import math
import os
from collections.abc import Callable
from functools import partial

import anyio
import anyio.to_thread

from api.http.problems import Refused
from catalog.allowed_time import OutOfTime, at_most
from catalog.errors import UnusableInput

#: numpy and HiGHS give the interpreter lock back only in part: more threads than cores just take turns.
THREADS = max(2, os.cpu_count() or 1)
#: At the planner's ten milliseconds each, a longer queue is a wait of several seconds: better said at once.
MOST_WAITING = 256

#: Thousands of times what a plan usually takes.
MOST_SECONDS = 30.0
VARIABLE = "GPUPLAN_MOST_SECONDS_PER_PLAN"


class Workers:
    """Runs calls in worker threads, `threads` at once; refuses with 503 when `most_waiting` are queued already.

    A call that computes for longer than `most_seconds` stops where it is, and its thread takes the next one.
    """

    def __init__(
        self,
        *,
        threads: int = THREADS,
        most_waiting: int = MOST_WAITING,
        retry_after_seconds: int = 1,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """The limiter is made on first use, since it belongs to the event loop that runs then."""
        self._threads, self._most_waiting, self._retry_after = threads, most_waiting, retry_after_seconds
        self._most_seconds = most_seconds
        self._limiter: anyio.CapacityLimiter | None = None

    async def run[**Given, Answer](
        self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """What `call` returns, computed off the event loop. Raises `Refused` when too many wait, or it takes too long."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        if self._limiter.statistics().tasks_waiting >= self._most_waiting:
            raise Refused(503, "too many requests are waiting", headers={"Retry-After": str(self._retry_after)})
        limited = partial(_within, self._most_seconds, partial(call, *args, **kwargs))
        try:
            return await anyio.to_thread.run_sync(limited, limiter=self._limiter)
        except OutOfTime as error:
            raise _too_long(error) from error


def long_workers(*, most_seconds: float = MOST_SECONDS) -> Workers:
    """For questions that take seconds each: one at a time, so that a core is left for plans."""
    return Workers(threads=1, most_waiting=8, retry_after_seconds=10, most_seconds=most_seconds)


def most_seconds_per_plan() -> float:
    """What `GPUPLAN_MOST_SECONDS_PER_PLAN` says, or else `MOST_SECONDS`. Raises `UnusableInput` for what is no such time."""
    text = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(text or MOST_SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0.1 <= seconds <= 3600:
        raise UnusableInput.at(VARIABLE, message=f"{text[:40]!r} is no limit; accepted: 0.1 to 3600 seconds")
    return seconds


def _within[Answer](seconds: float, call: Callable[[], Answer]) -> Answer:
    with at_most(seconds):
        return call()


def _too_long(error: OutOfTime) -> Refused:
    detail = (
        f"this took longer than the {error.seconds:g} s that the service gives a question ({VARIABLE}), and was stopped;"
        " ask for less, such as fewer nodes or regions, or `max_phases: 1`, or on the command line, where there is no limit"
    )
    return Refused(503, detail)
