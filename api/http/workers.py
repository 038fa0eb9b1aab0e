"""Calls in threads, a bounded number at once, so that the event loop never waits for arithmetic.

In a service these threads wait for planning processes (`api.planning_processes`), keep what comes of it, and count it.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from api.http.problems import Refused
from api.identity.asking import whose_turn
from api.planning_processes.budget import MOST_SECONDS, SECONDS_VARIABLE, OutOfMemory, ProcessEnded
from catalog.allowed_time import OutOfTime, at_most

#: Where nobody says otherwise: two of one identity and one of another.
AT_ONCE = 3
#: At the planner's ten milliseconds each, a longer queue is a wait of several seconds: better said at once.
MOST_WAITING = 256
#: Of one identity: a client with more requests on their way gains nothing, and others find room.
MOST_WAITING_OF_ONE = 64
#: What takes seconds on a machine that does nothing else takes this often as long on a busy one: a replay of a plan with a
#: standby took 10 s of a core, and 44 s beside ten others.
TIMES_AS_LONG = 10
#: A process may be killed by anybody on the machine; where a question broke it, it does so again.
_RETRY_AFTER_PROCESS_SECONDS = 5


class Workers:
    """Runs calls in `at_once` worker threads; refuses with 503 when `most_waiting` wait already.

    All but one of the threads may work for the same identity; its other calls wait for these and not in the common queue.
    So those of another begin while its own go on, however many it has sent, and queued calls of several take turns. One
    that computes for longer than `most_seconds` is stopped.
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
        """Idle."""
        self._at_once, self._most_waiting, self._most_waiting_of_one = at_once, most_waiting, most_waiting_of_one
        self._retry_after, self._most_seconds = retry_after_seconds, most_seconds
        self._threads = anyio.CapacityLimiter(at_once)
        #: What each identity may have at once, while it has anything.
        self._shares: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._asked: Counter[str] = Counter()

    async def run[**Given, Answer](
        self, call: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """What `call` returns, computed off the event loop. Raises `Refused` when too many wait, or it takes too much."""
        who = whose_turn()
        share = self._shares.setdefault(who, anyio.Semaphore(max(1, self._at_once - 1), fast_acquire=True))
        self._refuse_too_many(who)
        limited = partial(_within, self._most_seconds, partial(call, *args, **kwargs))
        self._asked[who] += 1
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
            self._asked[who] -= 1
            if not self._asked[who]:
                del self._asked[who]

    def _refuse_too_many(self, who: str) -> None:
        headers = {"Retry-After": str(self._retry_after)}
        if self._asked.total() >= self._at_once + self._most_waiting:
            raise Refused(503, "too many requests are waiting", headers=headers)
        if self._asked[who] >= self._at_once + self._most_waiting_of_one:
            raise Refused(503, "too many requests of yours are waiting; send fewer at once", headers=headers)


def long_workers(*, most_seconds: float = MOST_SECONDS) -> Workers:
    """For questions that take seconds each: one at a time, so that processes are left for plans, and `TIMES_AS_LONG`."""
    return Workers(at_once=1, most_waiting=8, retry_after_seconds=10, most_seconds=TIMES_AS_LONG * most_seconds)


def _within[Answer](seconds: float, call: Callable[[], Answer]) -> Answer:
    with at_most(seconds):
        return call()


def _too_long(seconds: float) -> Refused:
    detail = (
        f"this took longer than the {seconds:g} s that the service gives it ({SECONDS_VARIABLE}), and was stopped; ask for"
        " less, such as fewer nodes or regions, or `max_phases: 1`, or on the command line, where there is no limit"
    )
    return Refused(503, detail)
