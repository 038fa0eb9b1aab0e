"""What runs in a planning process: questions are worked out on an own connection to the store, which nothing is written to.

So a process can be killed at any time: whoever asked keeps plans, counts them and writes the records.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from api.app import Gpuplan
from api.identity.asking import Asking, acting_as
from api.settings import Environment
from api.telemetry.context import carrying
from api.telemetry.logs import configure_logs
from api.telemetry.settings import telemetry_settings
from catalog.allowed_time import at_most
from catalog.errors import StoreFailure, UnusableInput
from catalog.stages import Took, watch_stages

log = logging.getLogger("gpuplan.planning")

#: As a command ends whose store cannot be used.
EXIT_NOT_READY = 3
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A method of `Gpuplan` and what it is given, for whom (None: this machine's user), how long it may take, and what its
    log records carry.
    """

    method: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    asking: Asking | None
    seconds: float
    log_fields: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, or the error in place of it with its traceback; and how long its stages took."""

    answer: Any = None
    error: Exception | None = None
    traceback: str = ""
    stages: tuple[Took, ...] = ()


_gpuplan: Gpuplan


def answer_questions(asked: Connection, environment: Environment, most_mib: int) -> None:
    """The whole life of a process: get ready, say so, and answer what comes until nobody can ask any more."""
    try:
        prepare(environment, most_mib)
    except (UnusableInput, StoreFailure) as error:
        log.error("a process that plans cannot start: %s", error)
        sys.exit(EXIT_NOT_READY)
    asked.send(Answered())
    while True:
        try:
            question: Question = asked.recv()
        except EOFError:
            return
        asked.send(work_out(question))


def prepare(environment: Environment, most_mib: int) -> None:
    """Open the store and load the planner, once for each process; then bound the memory that it may take besides."""
    global _gpuplan  # noqa: PLW0603 - a process has one
    # Ctrl-C is for the service, which ends its processes when their questions are answered.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_service, name="end with the service", daemon=True).start()
    settings = telemetry_settings()
    configure_logs(log_format=settings.log_format, level=settings.log_level)
    _gpuplan = Gpuplan(environment)
    _gpuplan.warm_up()
    gc.collect()
    gc.freeze()
    _limit_memory(most_mib)


def work_out(question: Question) -> Answered:
    """The answer, or what the method raises in place of it."""
    # Who may read what is looked up in the process that looks.
    by = nullcontext() if question.asking is None else acting_as(question.asking)
    with by, at_most(question.seconds), carrying(**question.log_fields), _timed() as stages:
        try:
            answer = getattr(_gpuplan, question.method)(*question.args, **question.kwargs)
        except Exception as error:  # noqa: BLE001 - raised again where the question was asked
            return Answered(error=error, traceback=traceback.format_exc(), stages=tuple(stages))
    return Answered(answer=answer, stages=tuple(stages))


@contextmanager
def _timed() -> Iterator[list[Took]]:
    """The stages of what is done inside, as they end."""
    found: list[Took] = []

    @contextmanager
    def watched(name: str) -> Iterator[None]:
        began_at, began = time.time_ns(), time.perf_counter()
        try:
            yield
        finally:
            found.append(Took(name=name, began_unix_ns=began_at, seconds=time.perf_counter() - began))

    end = watch_stages(watched)
    try:
        yield found
    finally:
        end()


def _limit_memory(mib: int) -> None:
    """Allocations fail that would take more than `mib` beyond what the process has mapped now.

    Linux only: elsewhere what a process has mapped cannot be read so, and macOS does not heed the limit.
    """
    if sys.platform != "linux":
        return
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = mapped + mib * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _end_with_the_service() -> None:
    """A service that was killed cannot end its processes."""
    service = parent_process()
    if service is not None:
        connection.wait([service.sentinel])
        os._exit(1)
