"""The planning processes of a service: each answers one question at a time, and is replaced where a question broke it."""

import logging
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from api.identity.asking import now_asking
from api.planning_processes.budget import Budget, OutOfMemory, ProcessEnded
from api.planning_processes.child import Answered, Question, answer_questions
from api.planning_processes.fork_server import begin_loading
from api.settings import Environment
from api.telemetry.context import bound
from api.telemetry.logs import TRACE_FIELDS
from catalog.allowed_time import OutOfTime, seconds_left
from catalog.errors import StoreFailure
from catalog.stages import stage_took

log = logging.getLogger("gpuplan.planning")

#: Beyond a question's time, for a planner that looks at its clock now and then; one that never does is killed.
GRACE_SECONDS = 2.0
#: Far more than opening the store and loading the planner take on a busy machine.
_READY_SECONDS = 120.0
_KILLED_SECONDS = 5.0

#: What a process does: as `answer_questions`.
Life = Callable[[Connection, Environment, int], None]


class PlanningProcesses:
    """As many processes as the budget says. `work_out` may be called from any thread."""

    def __init__(self, environment: Environment, budget: Budget, *, life: Life = answer_questions) -> None:
        """Starts them; `wait_until_ready` waits for them."""
        self._environment, self._budget, self._life = environment, budget, life
        self._context = begin_loading()
        #: The one used last first: what it has in its caches is of use.
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._changing = threading.Lock()
        self._stopped = False
        self._every = {self._new() for _ in range(budget.processes)}
        for each in self._every:
            self._idle.put(each)

    def wait_until_ready(self) -> None:
        """Raises `StoreFailure` where a process cannot be started."""
        for each in self._every:
            each.wait_until_ready()

    def work_out(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What this method of `Gpuplan` gives, called in a process.

        Raises what the method raises; `OutOfTime`, `OutOfMemory` and `ProcessEnded` for a question that breaks its
        budget; `StoreFailure` where no process can be started.
        """
        left = seconds_left()
        seconds = self._budget.seconds if left is None else left
        fields = dict(bound())
        for trace in TRACE_FIELDS:
            fields |= trace()
        question = Question(
            method=method, args=args, kwargs=kwargs, asking=now_asking(), seconds=seconds, log_fields=fields
        )
        answered = self._answered(question)
        for each in answered.stages:
            stage_took(each)
        if answered.error is not None:
            answered.error.add_note(f"In a planning process:\n{answered.traceback}")
            raise answered.error
        return answered.answer

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        self._stopped = True
        with self._changing:
            for each in self._every:
                each.kill()

    def _answered(self, question: Question) -> Answered:
        process = self._idle.get()
        fit = False
        try:
            if not process.is_alive():
                process = self._replaced(process)
            answered = process.work_out(question)
            if isinstance(answered.error, MemoryError):
                log.warning("a question needed more than %d MiB: its process is replaced", self._budget.mib)
                raise OutOfMemory(self._budget.mib) from None
            fit = True
        except _NotInTime:
            log.warning("a question did not end after %.1f s: its process is replaced", question.seconds)
            raise OutOfTime(round(question.seconds, 1)) from None
        except (EOFError, OSError):
            ended = ProcessEnded(process.how_it_ended())
            log.warning("%s", ended)
            raise ended from None
        finally:
            self._idle.put(process if fit else self._replaced_if_possible(process))
        return answered

    def _new(self) -> "_Process":
        return _Process(self._context, self._life, (self._environment, self._budget.mib))

    def _replaced(self, process: "_Process") -> "_Process":
        """Another in its place. Raises `EOFError` or `OSError` where none can be started."""
        process.kill()
        with self._changing:
            new = self._new()
            self._every.remove(process)
            self._every.add(new)
        return new

    def _replaced_if_possible(self, process: "_Process") -> "_Process":
        """The ended one where the service stops or the machine has no room for another: the next question tries again."""
        if self._stopped:
            return process
        try:
            return self._replaced(process)
        except (EOFError, OSError):
            log.exception("a process that plans could not be started")
            return process


class _NotInTime(Exception):
    """A question was not answered within its time and some seconds more."""


class _Process:
    """One process and the connection over which it is asked."""

    def __init__(self, context: ForkServerContext, life: Life, given: tuple[Environment, int]) -> None:
        self._asking, asked = context.Pipe()
        self._process = context.Process(target=life, args=(asked, *given), name="planning", daemon=True)
        self._process.start()
        # Its other end is the process's own: where that ends, nothing more can come.
        asked.close()
        self._ready = False

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait_until_ready(self) -> None:
        """Raises `StoreFailure` where it cannot get ready; its own log says why."""
        if self._ready:
            return
        try:
            if not self._asking.poll(_READY_SECONDS):
                raise StoreFailure(f"a process that plans was not ready within {_READY_SECONDS:g} s")
            self._asking.recv()
        except (EOFError, OSError) as error:
            message = f"a process that plans could not be started ({self.how_it_ended()}); the service's log says why"
            raise StoreFailure(message) from error
        self._ready = True

    def work_out(self, question: Question) -> Answered:
        """Raises `_NotInTime`; `EOFError` or `OSError` where the process ended."""
        self.wait_until_ready()
        self._asking.send(question)
        if not self._asking.poll(question.seconds + GRACE_SECONDS):
            raise _NotInTime
        answered: Answered = self._asking.recv()
        return answered

    def how_it_ended(self) -> str:
        """The signal or the exit code, in words."""
        self._process.join(_KILLED_SECONDS)
        code = self._process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End it without waiting."""
        self._process.kill()
        self._asking.close()
