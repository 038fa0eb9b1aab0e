"""The tasks as procrastinate sees them: each takes the id of its run, calls what does the work, and is tried again.

A task that fails because the store does is tried again later; one whose worker ends at once, by another worker. Any
other failure is written to the run, where people read it.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import JobAborted
from procrastinate.jobs import Job

from api.runs.failures import failure_of
from api.tasks import names
from api.tasks.keeping import AT_ONCE, rescue, tidy
from api.tasks.running import execute_queued
from catalog.errors import StoreFailure
from catalog.refresh_lock import RefreshRunning

if TYPE_CHECKING:
    from api.app import Gpuplan

log = logging.getLogger("gpuplan.tasks")

#: The store gets this long to come back, more each time; all in all five minutes, after which `rescue` goes on.
_STORE_SECONDS = (1, 2, 5, 10, 20, 30, 60, 60, 60, 60)
TIDY_CRON = "47 * * * *"
#: Between two looks for workers that died.
_LONGEST_SECONDS_BETWEEN_RESCUES = 10


class Again(BaseRetryStrategy):
    """When a task is tried again."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """At once where the worker ends, soon where the store failed or a refresh is just beginning; else never."""
        if isinstance(exception, JobAborted):
            return RetryDecision(retry_at=AT_ONCE)
        if isinstance(exception, StoreFailure) and job.attempts < len(_STORE_SECONDS):
            return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=_STORE_SECONDS[job.attempts]))
        return None


def tasks_of(gpuplan: "Gpuplan", connector: BaseConnector, *, refresh_cron: str | None, stalled_seconds: float) -> App:
    """All tasks, working on this `gpuplan`; a refresh is begun as `refresh_cron` says, and else when asked for."""
    app = App(connector=connector)
    _run_tasks(app, gpuplan)
    _refresh_tasks(app, gpuplan)
    _keeping_tasks(app, gpuplan, stalled_seconds)
    if refresh_cron is not None:
        _nightly(app, gpuplan, refresh_cron)
    return app


def _run_tasks(app: App, gpuplan: "Gpuplan") -> None:
    @app.task(name=names.EXECUTE, queue=names.RUNS, pass_context=True, retry=Again())
    def execute(context: JobContext, run_id: str) -> None:
        if not execute_queued(gpuplan, run_id, interrupted=context.should_abort):
            raise JobAborted


def _refresh_tasks(app: App, gpuplan: "Gpuplan") -> None:
    @app.task(name=names.BEGIN, queue=names.REFRESHES, retry=Again())
    def begin(run_id: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.shared_refreshes.set_out(run_id))

    @app.task(name=names.LIST, queue=names.REFRESHES, retry=Again())
    def list_regions(run_id: str, provider: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.shared_refreshes.list_regions(run_id, provider))

    @app.task(name=names.FETCH, queue=names.REFRESHES, retry=Again())
    def fetch(run_id: str, provider: str, region: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.shared_refreshes.fetch(run_id, provider, region))

    @app.task(name=names.WRITE, queue=names.REFRESHES, retry=Again())
    def write(run_id: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.shared_refreshes.write(run_id))


def _step(gpuplan: "Gpuplan", run_id: str, work: Callable[[], None]) -> None:
    """One step of a refresh; what nobody foresaw ends it with a reason that people can find."""
    try:
        work()
    except StoreFailure:
        raise
    except Exception as error:
        log.exception("refresh %s failed", run_id, extra={"failure": failure_of(error, run_id)["detail"]})
        gpuplan.shared_refreshes.give_up(run_id, error)


def _keeping_tasks(app: App, gpuplan: "Gpuplan", stalled_seconds: float) -> None:
    """Without locks: the lock of a worker that died would keep out the very task that frees it."""

    @app.periodic(cron=rescue_cron(stalled_seconds), queueing_lock=names.RESCUE)
    @app.task(name=names.RESCUE, queue=names.KEEPING, priority=100)
    async def keep_from_stalling(timestamp: int) -> None:
        await rescue(app.job_manager, gpuplan, stalled_seconds)

    @app.periodic(cron=TIDY_CRON, queueing_lock=names.TIDY)
    @app.task(name=names.TIDY, queue=names.KEEPING)
    async def forget_old_tasks(timestamp: int) -> None:
        await tidy(app.job_manager)


def rescue_cron(stalled_seconds: float) -> str:
    """Three looks in the time after which a worker is taken for dead, and one every ten seconds at least."""
    seconds = min(max(int(stalled_seconds / 3), 1), _LONGEST_SECONDS_BETWEEN_RESCUES)
    return f"* * * * * */{seconds}"  # seconds are the last place, as procrastinate reads cron


def _nightly(app: App, gpuplan: "Gpuplan", cron: str) -> None:
    @app.periodic(cron=cron, queueing_lock=names.NIGHTLY)
    @app.task(name=names.NIGHTLY, queue=names.REFRESHES, lock=names.NIGHTLY)
    def nightly(timestamp: int) -> None:
        try:
            gpuplan.begin_shared_refresh({})
        except RefreshRunning as error:
            log.warning("no refresh was begun: %s", error)
