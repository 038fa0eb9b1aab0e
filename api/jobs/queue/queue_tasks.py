"""The procrastinate tasks: each takes the id of its run, does the work, and defines when it is retried.

A task whose store fails is retried later; a task whose worker ends is taken by another worker at once. Any other
failure is recorded in the run, where users see it.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import JobAborted
from procrastinate.jobs import Job

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.queue import queue_names
from gpuplan.api.jobs.queue.queue_maintenance import AT_ONCE, rescue, tidy
from gpuplan.api.jobs.run_execution import execute, failure_of
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.refresh_lock import RefreshRunning

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.tasks")

#: Delays between retries while the store is unavailable, five minutes in total; afterwards `rescue` takes over.
_STORE_SECONDS = (1, 2, 5, 10, 20, 30, 60, 60, 60, 60)
TIDY_CRON = "47 * * * *"
#: Interval of the search for dead workers.
_LONGEST_SECONDS_BETWEEN_RESCUES = 10
#: After so many dead workers the run itself is the likely cause.
MOST_ATTEMPTS = 5


class Again(BaseRetryStrategy):
    """When a task is retried."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Retry at once if the worker ends, soon if the store failed or a refresh is just starting; otherwise never."""
        if isinstance(exception, JobAborted):
            return RetryDecision(retry_at=AT_ONCE)
        if isinstance(exception, StoreFailure) and job.attempts < len(_STORE_SECONDS):
            return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=_STORE_SECONDS[job.attempts]))
        return None


def tasks_of(gpuplan: "Services", connector: BaseConnector, *, refresh_cron: str | None, stalled_seconds: float) -> App:
    """All tasks for this `gpuplan`; refreshes start by the schedule `refresh_cron`, if given, and on request."""
    app = App(connector=connector)
    _run_tasks(app, gpuplan)
    _refresh_tasks(app, gpuplan)
    _maintenance_tasks(app, gpuplan, stalled_seconds)
    if refresh_cron is not None:
        _nightly(app, gpuplan, refresh_cron)
    return app


def _run_tasks(app: App, gpuplan: "Services") -> None:
    @app.task(name=queue_names.EXECUTE, queue=queue_names.RUNS, pass_context=True, retry=Again())
    def execute(context: JobContext, run_id: str) -> None:
        if not execute_queued(gpuplan, run_id, interrupted=context.should_abort):
            raise JobAborted


def _refresh_tasks(app: App, gpuplan: "Services") -> None:
    @app.task(name=queue_names.BEGIN, queue=queue_names.REFRESHES, retry=Again())
    def begin(run_id: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.refreshes.shared.set_out(run_id))

    @app.task(name=queue_names.LIST, queue=queue_names.REFRESHES, retry=Again())
    def list_regions(run_id: str, provider: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.refreshes.shared.list_regions(run_id, provider))

    @app.task(name=queue_names.FETCH, queue=queue_names.REFRESHES, retry=Again())
    def fetch(run_id: str, provider: str, region: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.refreshes.shared.fetch(run_id, provider, region))

    @app.task(name=queue_names.WRITE, queue=queue_names.REFRESHES, retry=Again())
    def write(run_id: str) -> None:
        _step(gpuplan, run_id, lambda: gpuplan.refreshes.shared.write(run_id))


def _step(gpuplan: "Services", run_id: str, work: Callable[[], None]) -> None:
    """One step of a refresh; an unexpected error ends the refresh with a stored reason."""
    try:
        work()
    except StoreFailure:
        raise
    except Exception as error:
        log.exception("refresh %s failed", run_id, extra={"failure": failure_of(error, run_id)["detail"]})
        gpuplan.refreshes.shared.give_up(run_id, error)


def _maintenance_tasks(app: App, gpuplan: "Services", stalled_seconds: float) -> None:
    """The maintenance tasks have no locks: a dead worker's lock would block the task that releases it."""

    @app.periodic(cron=rescue_cron(stalled_seconds), queueing_lock=queue_names.RESCUE)
    @app.task(name=queue_names.RESCUE, queue=queue_names.MAINTENANCE, priority=100)
    async def retry_stalled(timestamp: int) -> None:
        await rescue(app.job_manager, gpuplan, stalled_seconds)

    @app.periodic(cron=TIDY_CRON, queueing_lock=queue_names.TIDY)
    @app.task(name=queue_names.TIDY, queue=queue_names.MAINTENANCE)
    async def forget_old_tasks(timestamp: int) -> None:
        await tidy(app.job_manager)


def rescue_cron(stalled_seconds: float) -> str:
    """Three checks within the time after which a worker counts as dead, and at least one every ten seconds."""
    seconds = min(max(int(stalled_seconds / 3), 1), _LONGEST_SECONDS_BETWEEN_RESCUES)
    return f"* * * * * */{seconds}"  # seconds are the last place, as procrastinate reads cron


def _nightly(app: App, gpuplan: "Services", cron: str) -> None:
    @app.periodic(cron=cron, queueing_lock=queue_names.NIGHTLY)
    @app.task(name=queue_names.NIGHTLY, queue=queue_names.REFRESHES, lock=queue_names.NIGHTLY)
    def nightly(timestamp: int) -> None:
        try:
            gpuplan.refreshes.begin_shared({})
        except RefreshRunning as error:
            log.warning("no refresh was begun: %s", error)


def execute_queued(gpuplan: "Services", run_id: str, *, interrupted: Callable[[], bool]) -> bool:
    """Execute the run unless it has ended; False if it was put back because this process ends.

    Raises `StoreFailure` if the store cannot be used; the run is then unchanged and is retried.
    """
    runs = gpuplan.store.runs
    attempt = runs.take(run_id, datetime.now(UTC))
    if attempt is None:
        return True
    if attempt > MOST_ATTEMPTS:
        error = {
            "status": 500,
            "detail": f"its worker died {MOST_ATTEMPTS} times; it may need more memory than the machine has",
        }
        runs.end(run_id, "failed", datetime.now(UTC), progress=None, error=error, attempt=attempt)
        return True
    with Heartbeat(runs, run_id, attempt=attempt, interrupted=interrupted) as heartbeat:
        if runs.one(run_id, datetime.now(UTC)).cancel_asked:
            heartbeat.cancel()
        execute(gpuplan, heartbeat)
        return not heartbeat.to_put_back()
