"""Planning in threads, a bounded number at once, so that the event loop never waits for arithmetic."""

import asyncio
import math
import os
from collections.abc import Callable
from functools import partial

import anyio
import anyio.to_thread

from api.http.problems import Refused
from catalog.allowed_time import OutOfTime, at_most
from catalog.errors import UnusableInput

#: Calls that compute at once. Python's interpreter lock lets one of them go on at a time: on two cores two of them took a
#: fifth more of the processor for each plan than one after the other, three half as much again, and no answer came sooner.
AT_ONCE = 1
#: What takes longer stands in nobody's way: the next call begins beside it.
SOON_SECONDS = 0.05
#: Such calls at once, at most: they share one interpreter, and each may take `MOST_SECONDS` by the clock.
MOST_LONG = 2
#: At the planner's ten milliseconds each, a longer queue is a wait of several seconds: better said at once.
MOST_WAITING = 256

#: Thousands of times what a plan usually takes.
MOST_SECONDS = 30.0
VARIABLE = "GPUPLAN_MOST_SECONDS_PER_PLAN"


class Workers:
    """Runs calls in worker threads, one after the other; refuses with 503 when `most_waiting` are queued already.

    A call that is not done within `SOON_SECONDS` gives its turn to the next and goes on beside it, so that long questions do
    not hold up the short ones behind them, unless there are `most_long` already. One that computes for longer than
    `most_seconds` stops where it is.
    """

    def __init__(
        self,
        *,
        most_long: int = MOST_LONG,
        most_waiting: int = MOST_WAITING,
        retry_after_seconds: int = 1,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """Idle."""
        self._most_waiting, self._retry_after, self._most_seconds = most_waiting, retry_after_seconds, most_seconds
        self._turns = anyio.Semaphore(AT_ONCE, fast_acquire=True)
        self._threads = anyio.CapacityLimiter(AT_ONCE + most_long)

    async def run[**Given, Answer](
        self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """What `call` returns, computed off the event loop. Raises `Refused` when too many wait, or it takes too long."""
        waiting = self._turns.statistics().tasks_waiting + self._threads.statistics().tasks_waiting
        if waiting >= self._most_waiting:
            raise Refused(503, "too many requests are waiting", headers={"Retry-After": str(self._retry_after)})
        limited = partial(_within, self._most_seconds, partial(call, *args, **kwargs))
        await self._turns.acquire()
        turn = _Turn(self._turns)
        try:
            return await anyio.to_thread.run_sync(limited, limiter=self._threads)
        except OutOfTime as error:
            raise _too_long(error) from error
        finally:
            turn.end()


class _Turn:
    """A turn that was taken: it ends with `end`, and of itself after `SOON_SECONDS`."""

    def __init__(self, turns: anyio.Semaphore) -> None:
        self._turns = turns
        self._ending = asyncio.get_running_loop().call_later(SOON_SECONDS, self._give_on)
        self._ended = False

    def end(self) -> None:
        self._ending.cancel()
        self._give_on()

    def _give_on(self) -> None:
        if not self._ended:
            self._ended = True
            self._turns.release()


def long_workers(*, most_seconds: float = MOST_SECONDS) -> Workers:
    """For questions that take seconds each: one at a time, so that a core is left for plans."""
    return Workers(most_long=0, most_waiting=8, retry_after_seconds=10, most_seconds=most_seconds)


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
