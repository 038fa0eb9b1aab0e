"""Worker threads with a limit on concurrency, so that computation never blocks the event loop.

In a service these threads wait for planning processes (`gpuplan.api.jobs.planning_processes`), and store and count the
results.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.jobs.planning_processes.question_limits import (
    MOST_SECONDS,
    SECONDS_VARIABLE,
    OutOfMemory,
    ProcessEnded,
)
from gpuplan.api.security.authorization import whose_turn
from gpuplan.catalog.runtime.time_limit import OutOfTime, at_most

#: The default: two calls of one identity and one of another.
AT_ONCE = 3
#: At the planner's ten milliseconds each, a longer queue means a wait of several seconds: better to refuse at once.
MOST_WAITING = 256
#: Limit per identity: more requests in flight do not help a client, and the rest of the queue stays free for others.
MOST_WAITING_OF_ONE = 64
#: Factor between the time on an idle machine and on a busy one: a replay of a plan with a standby took 10 s of a core,
#: and 44 s beside ten others.
TIMES_AS_LONG = 10
#: Anybody on the machine may kill a process; if the request itself broke it, a retry breaks it again.
_RETRY_AFTER_PROCESS_SECONDS = 5


class Workers:
    """Runs calls in `at_once` worker threads; refuses with 503 if `most_waiting` calls already wait.

    One identity may use all threads but one; its further calls wait outside the common queue. So calls of other
    identities start while it is busy, and queued calls of several identities take turns. A call that runs longer than
    `most_seconds` is stopped.
    """

    def __init__(
        self,
        *,
        at_once: int = AT_ONCE,
        most_waiting: int = MOST_WAITING,
        most_waiting_of_one: int = MOST_WAITING_OF_ONE,
        retry_after_seconds: int = 1,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """Create the workers; no thread starts yet."""
        self._at_once, self._most_waiting, self._most_waiting_of_one = at_once, most_waiting, most_waiting_of_one
        self._retry_after, self._most_seconds = retry_after_seconds, most_seconds
        self._threads = anyio.CapacityLimiter(at_once)
        #: The concurrency limit of each identity that has calls.
        self._shares: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._asked: Counter[str] = Counter()

    async def run[**Given, Answer](
        self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """The result of `call`, computed outside the event loop. Raises `Refused` if too many calls wait, or if it
        exceeds its time or memory.
        """
        identity = whose_turn()
        share = self._shares.setdefault(identity, anyio.Semaphore(max(1, self._at_once - 1), fast_acquire=True))
        self._refuse_excess(identity)
        limited = partial(_within, self._most_seconds, partial(call, *args, **kwargs))
        self._asked[identity] += 1
        try:
            async with share:
                return await anyio.to_thread.run_sync(limited, limiter=self._threads)
        except OutOfTime as error:
            raise _too_long(self._most_seconds) from error
        except OutOfMemory as error:
            raise Refused(422, str(error)) from error
        except ProcessEnded as error:
            headers = {"Retry-After": str(_RETRY_AFTER_PROCESS_SECONDS)}
            raise Refused(503, str(error), headers=headers) from error
        finally:
            self._asked[identity] -= 1
            if not self._asked[identity]:
                del self._asked[identity]

    def _refuse_excess(self, identity: str) -> None:
        headers = {"Retry-After": str(self._retry_after)}
        if self._asked.total() >= self._at_once + self._most_waiting:
            raise Refused(503, "too many requests are waiting", headers=headers)
        if self._asked[identity] >= self._at_once + self._most_waiting_of_one:
            raise Refused(503, "too many of your requests are waiting; send fewer at once", headers=headers)


def long_workers(*, most_seconds: float = MOST_SECONDS) -> Workers:
    """For requests that take seconds: one at a time, which leaves processes for plans, with `TIMES_AS_LONG` the time
    limit.
    """
    return Workers(at_once=1, most_waiting=8, retry_after_seconds=10, most_seconds=TIMES_AS_LONG * most_seconds)


def _within[Answer](seconds: float, call: Callable[[], Answer]) -> Answer:
    with at_most(seconds):
        return call()


def _too_long(seconds: float) -> Refused:
    detail = (
        f"this took longer than the limit of {seconds:g} s ({SECONDS_VARIABLE}) and was stopped; ask for"
        " less, such as fewer nodes or regions, or `max_phases: 1`, or use the command line, which has no limit"
    )
    return Refused(503, detail)
