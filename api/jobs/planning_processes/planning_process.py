"""The code of a planning process: it computes answers over its own, read-only connection to the store.

A process can be killed at any time, because the calling process stores plans, counts them and writes audit records.
"""

import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from gpuplan.api.observability.log_context import carrying
from gpuplan.api.observability.structured_logs import configure_logs
from gpuplan.api.observability.telemetry_settings import telemetry_settings
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.services.composition import open_services
from gpuplan.api.services.service_context import ServiceContext
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.runtime.stage_timing import Took, watch_stages
from gpuplan.catalog.runtime.time_limit import at_most

log = logging.getLogger("gpuplan.planning")

#: The exit status of a command whose store cannot be used.
EXIT_NOT_READY = 3
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A module-level function of `(ServiceContext, *args, **kwargs)`, its requester (None: this machine's user), its time
    limit, and the fields of its log records.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    requester: Requester | None
    seconds: float
    log_fields: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, or the error with its traceback, and the durations of the stages."""

    answer: Any = None
    error: Exception | None = None
    traceback: str = ""
    stages: tuple[Took, ...] = ()


_context: ServiceContext


def answer_requests(asked: Connection, environment: Environment, most_mib: int) -> None:
    """The main loop of a process: prepare, report readiness, and answer questions until the connection closes."""
    try:
        prepare(environment, most_mib)
    except (UnusableInput, StoreFailure) as error:
        log.error("a planning process cannot start: %s", error)
        sys.exit(EXIT_NOT_READY)
    asked.send(Answered())
    while True:
        try:
            question: Question = asked.recv()
        except EOFError:
            return
        asked.send(work_out(question))


def prepare(environment: Environment, most_mib: int) -> None:
    """Open the store and load the planner once per process; then limit the additional memory."""
    global _context  # noqa: PLW0603 - a process has one
    # The service handles Ctrl-C and ends its processes after their answers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_service, name="end with the service", daemon=True).start()
    settings = telemetry_settings()
    configure_logs(log_format=settings.log_format, level=settings.log_level)
    services = open_services(environment)
    services.warm_up()
    _context = services.context
    gc.collect()
    gc.freeze()
    _limit_memory(most_mib)


def work_out(question: Question) -> Answered:
    """The answer, or the exception that the function raises."""
    # Permissions are checked in this process, which reads the store.
    by = nullcontext() if question.requester is None else acting_as(question.requester)
    with by, at_most(question.seconds), carrying(**question.log_fields), _timed() as stages:
        try:
            answer = question.function(_context, *question.args, **question.kwargs)
        except Exception as error:  # noqa: BLE001 - raised again in the calling process
            return Answered(error=error, traceback=traceback.format_exc(), stages=tuple(stages))
    return Answered(answer=answer, stages=tuple(stages))


@contextmanager
def _timed() -> Iterator[list[Took]]:
    """Record the stages that end within the context."""
    tooks: list[Took] = []

    @contextmanager
    def watched(name: str) -> Iterator[None]:
        began_at, began = time.time_ns(), time.perf_counter()
        try:
            yield
        finally:
            tooks.append(Took(name=name, began_unix_ns=began_at, seconds=time.perf_counter() - began))

    end = watch_stages(watched)
    try:
        yield tooks
    finally:
        end()


def _limit_memory(mib: int) -> None:
    """Let allocations fail that need more than `mib` beyond what the process has mapped now.

    Linux only: other systems do not expose the mapped size, and macOS ignores the limit.
    """
    if sys.platform != "linux":
        return
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + mib * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _end_with_the_service() -> None:
    """A killed service cannot end its processes, so they end with it."""
    service = parent_process()
    if service is not None:
        connection.wait([service.sentinel])
        os._exit(1)
