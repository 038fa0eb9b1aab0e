"""A worker: takes tasks until it is stopped, and reconnects after it has lost the database."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from gpuplan.api.jobs.queue.queue_names import MAINTENANCE, QUEUES
from gpuplan.api.jobs.queue.queue_schema import SCHEMA, upgrade_queue
from gpuplan.api.jobs.queue.queue_tasks import tasks_of
from gpuplan.api.jobs.queue.task_queue import ALIVE_SECONDS
from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.database import lost_after

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.tasks")

#: Tasks wait for clouds more than they compute.
CONCURRENCY = 4
#: A worker counts as dead after three missed heartbeats.
BEATS_UNTIL_STALLED = 3
#: How long running tasks may continue when the worker is stopped; then long runs are put back, and short tasks finish.
GRACE_SECONDS = 20.0
_LONGEST_WAIT_SECONDS = 10.0


class _Lost(Exception):
    """The worker ended because it could not reach the database."""


async def work(
    gpuplan: "Services",
    *,
    queues: Sequence[str] = QUEUES,
    concurrency: int = CONCURRENCY,
    refresh_cron: str | None = None,
    stalled_seconds: float = 30.0,
    grace_seconds: float = GRACE_SECONDS,
    wait: bool = True,
) -> None:
    """Take tasks of these queues until SIGTERM or SIGINT, or until the queues are empty if `wait` is false.

    Raises `UnusableInput` at `queues` or GPUPLAN_REFRESH_CRON, and `StoreFailure` if the store cannot be used at the
    start.
    """
    check_queues(queues)
    check_cron(refresh_cron)
    upgrade_queue(gpuplan.store)
    log.info("the worker takes tasks: %s; %d at once", ", ".join(queues), concurrency)
    with _stop_requested() as stop:
        await _work_until(
            stop,
            gpuplan,
            list(dict.fromkeys((*queues, MAINTENANCE))),
            concurrency=concurrency,
            refresh_cron=refresh_cron,
            stalled_seconds=stalled_seconds,
            grace_seconds=grace_seconds,
            wait=wait,
        )
    log.info("the worker has stopped")


@contextlib.contextmanager
def _stop_requested() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set, within the context."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _work_until(
    stop: asyncio.Event,
    gpuplan: "Services",
    queues: list[str],
    *,
    concurrency: int,
    refresh_cron: str | None,
    stalled_seconds: float,
    grace_seconds: float,
    wait: bool,
) -> None:
    """Start the worker again whenever it has lost the database."""
    again = AsyncRetrying(
        retry=retry_if_exception_type((ConnectorException, psycopg.Error, StoreFailure, _Lost)),
        wait=wait_exponential_jitter(multiplier=0.2, max=_LONGEST_WAIT_SECONDS),
        before_sleep=_say,
    )
    async for attempt in again:
        with attempt:
            if stop.is_set():
                return
            connector = PsycopgConnector(
                conninfo=conninfo(gpuplan), kwargs=lost_after(gpuplan.store.url), min_size=1, max_size=4, timeout=10.0
            )
            app = tasks_of(gpuplan, connector, refresh_cron=refresh_cron, stalled_seconds=stalled_seconds)
            async with app.open_async():
                await _take_tasks(
                    app,
                    stop,
                    queues=queues,
                    concurrency=concurrency,
                    wait=wait,
                    update_heartbeat_interval=beat_seconds(stalled_seconds),
                    stalled_worker_timeout=stalled_seconds,
                    shutdown_graceful_timeout=grace_seconds,
                    delete_jobs="successful",
                    install_signal_handlers=False,
                )


def beat_seconds(stalled_seconds: float) -> float:
    """The heartbeat interval of a worker: a third of the time after which it counts as dead."""
    return min(stalled_seconds, ALIVE_SECONDS) / BEATS_UNTIL_STALLED


async def _take_tasks(app: App, stop: asyncio.Event, **options: object) -> None:
    working = asyncio.create_task(app.run_worker_async(**options))  # type: ignore[arg-type]
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            # The worker treats this as a request for graceful shutdown.
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return
        await working
    finally:
        stopping.cancel()
    if options["wait"]:
        raise _Lost("the worker lost the database")


def conninfo(gpuplan: "Services") -> str:
    """How procrastinate reaches the store's database; its tables are in a schema of their own."""
    url = gpuplan.store.url
    given = {name: value for name, value in url.query.items() if isinstance(value, str)}
    options = f"{given.pop('options', '')} -c search_path={SCHEMA}".strip()
    parts = {"user": url.username, "password": url.password, "host": url.host, "port": url.port, "dbname": url.database}
    known = {name: str(value) for name, value in parts.items() if value is not None}
    parameters = {"options": options, "application_name": "gpuplan worker"}
    return psycopg.conninfo.make_conninfo("", **{**known, **given, **parameters})


def check_queues(queues: Sequence[str]) -> None:
    """Raises `UnusableInput` at `queues` for an unknown name."""
    strange = [queue for queue in queues if queue not in QUEUES]
    if strange or not queues:
        message = f"there is no queue {strange[0][:40]!r}" if strange else "names no queue"
        raise UnusableInput.at("queues", message=f"{message}; accepted: {', '.join(QUEUES)}")


def check_cron(cron: str | None) -> None:
    """Raises `UnusableInput` at GPUPLAN_REFRESH_CRON for an invalid schedule."""
    if cron is None:
        return
    from croniter import croniter  # type: ignore[import-untyped]

    if not cron.isprintable() or not croniter.is_valid(cron):
        message = f"{cron[:80]!r} is not a valid schedule; accepted: five fields as in cron, such as '17 3 * * *' (UTC)"
        raise UnusableInput.at("GPUPLAN_REFRESH_CRON", message=message)


def _say(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    log.warning("the database does not answer (%s); trying again", reason)
