"""The planning processes of a service: each answers one question at a time, and is replaced if a question breaks it."""

import logging
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from gpuplan.api.jobs.planning_processes.fork_server import begin_loading
from gpuplan.api.jobs.planning_processes.planning_process import Answered, Question, answer_requests
from gpuplan.api.jobs.planning_processes.question_limits import Budget, OutOfMemory, ProcessEnded
from gpuplan.api.observability.log_context import bound
from gpuplan.api.observability.structured_logs import TRACE_FIELDS
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.authorization import current_requester
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.runtime.stage_timing import stage_took
from gpuplan.catalog.runtime.time_limit import OutOfTime, seconds_left

log = logging.getLogger("gpuplan.planning")

#: Seconds after a question's time limit, for a planner that checks its clock now and then; after them the process is
#: killed.
GRACE_SECONDS = 2.0
#: Far more than it takes to open the store and load the planner on a busy machine.
_READY_SECONDS = 120.0
_KILLED_SECONDS = 5.0

#: The function that a process runs: by default `answer_requests`.
Life = Callable[[Connection, Environment, int], None]


class PlanningProcesses:
    """A pool of processes of the size in the budget. `call` is thread-safe."""

    def __init__(self, environment: Environment, budget: Budget, *, life: Life = answer_requests) -> None:
        """Start the processes; `wait_until_ready` waits for them."""
        self._environment, self._budget, self._life = environment, budget, life
        self._context = begin_loading()
        #: The process used last comes first, because its caches are warm.
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._changing = threading.Lock()
        self._stopped = False
        self._every = {self._new() for _ in range(budget.processes)}
        for process in self._every:
            self._idle.put(process)

    def wait_until_ready(self) -> None:
        """Raises `StoreFailure` if a process cannot be started."""
        for process in self._every:
            process.wait_until_ready()

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of `function(context, *args, **kwargs)` in a process with its own `ServiceContext`.

        `function` is a module-level function. Raises its exceptions, `OutOfTime`, `OutOfMemory` and `ProcessEnded` for a
        question beyond its budget, and `StoreFailure` if no process can be started.
        """
        left = seconds_left()
        seconds = self._budget.seconds if left is None else left
        fields = dict(bound())
        for trace in TRACE_FIELDS:
            fields |= trace()
        question = Question(
            function=function,
            args=args,
            kwargs=kwargs,
            requester=current_requester(),
            seconds=seconds,
            log_fields=fields,
        )
        answered = self._answered(question)
        for stage in answered.stages:
            stage_took(stage)
        if answered.error is not None:
            answered.error.add_note(f"In a planning process:\n{answered.traceback}")
            raise answered.error
        return answered.answer

    def stop(self) -> None:
        """End all processes immediately."""
        self._stopped = True
        with self._changing:
            for process in self._every:
                process.kill()

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
        """Start a replacement. Raises `EOFError` or `OSError` if it cannot be started."""
        process.kill()
        with self._changing:
            new = self._new()
            self._every.remove(process)
            self._every.add(new)
        return new

    def _replaced_if_possible(self, process: "_Process") -> "_Process":
        """A replacement, or the ended process if the service is stopping or the machine cannot start another: the next
        question retries.
        """
        if self._stopped:
            return process
        try:
            return self._replaced(process)
        except (EOFError, OSError):
            log.exception("a planning process could not be started")
            return process


class _NotInTime(Exception):
    """A question was not answered within its time limit and the grace period."""


class _Process:
    """One process and the connection to it."""

    def __init__(self, context: ForkServerContext, life: Life, given: tuple[Environment, int]) -> None:
        self._asking, asked = context.Pipe()
        self._process = context.Process(target=life, args=(asked, *given), name="planning", daemon=True)
        self._process.start()
        # The other end belongs to the process: when the process ends, reading ends too.
        asked.close()
        self._ready = False

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait_until_ready(self) -> None:
        """Raises `StoreFailure` if the process cannot prepare; its own log has the reason."""
        if self._ready:
            return
        try:
            if not self._asking.poll(_READY_SECONDS):
                raise StoreFailure(f"a planning process was not ready within {_READY_SECONDS:g} s")
            self._asking.recv()
        except (EOFError, OSError) as error:
            message = (
                f"a planning process could not be started ({self.how_it_ended()}); see the service's log for the reason"
            )
            raise StoreFailure(message) from error
        self._ready = True

    def work_out(self, question: Question) -> Answered:
        """Raises `_NotInTime`; `EOFError` or `OSError` if the process ended."""
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
        """End the process without waiting."""
        self._process.kill()
        self._asking.close()
