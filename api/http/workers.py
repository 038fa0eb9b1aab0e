"""Planning in threads, a bounded number at once, so that the event loop never waits for arithmetic."""

import os
from collections.abc import Callable
from functools import partial

import anyio
import anyio.to_thread

from api.http.problems import Refused

#: numpy and HiGHS give the interpreter lock back only in part: more threads than cores just take turns.
THREADS = max(2, os.cpu_count() or 1)
#: At the planner's tens of milliseconds each, a longer queue is a wait of several seconds: better said at once.
MOST_WAITING = 128


class Workers:
    """Runs calls in worker threads, `threads` at once; refuses with 503 when `most_waiting` are queued already."""

    def __init__(
        self, *, threads: int = THREADS, most_waiting: int = MOST_WAITING, retry_after_seconds: int = 1
    ) -> None:
        """The limiter is made on first use, since it belongs to the event loop that runs then."""
        self._threads, self._most_waiting, self._retry_after = threads, most_waiting, retry_after_seconds
        self._limiter: anyio.CapacityLimiter | None = None

    async def run[**Given, Answer](
        self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """What `call` returns, computed off the event loop. Raises `Refused` when too many wait."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        if self._limiter.statistics().tasks_waiting >= self._most_waiting:
            raise Refused(503, "too many requests are waiting", headers={"Retry-After": str(self._retry_after)})
        return await anyio.to_thread.run_sync(partial(call, *args, **kwargs), limiter=self._limiter)


def long_workers() -> Workers:
    """For questions that take seconds each: one at a time, so that a core is left for plans."""
    return Workers(threads=1, most_waiting=8, retry_after_seconds=10)
