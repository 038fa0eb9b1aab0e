"""Maintenance of the queue: retry tasks of dead workers, create missing tasks, delete old rows."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.utils import sync_to_async

from gpuplan.api.jobs.queue.queue_names import EXECUTE, MAINTENANCE, RUNS
from gpuplan.api.jobs.queue.queue_schema import JOBS
from gpuplan.api.jobs.queue.task_queue import Queue, job
from gpuplan.catalog.store.database import named_failures
from gpuplan.catalog.store.run_store import LIVE
from gpuplan.catalog.store.schema import runs

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services

log = logging.getLogger("gpuplan.tasks")

#: Earlier than any worker's clock: a task put back starts at once, even with wrong clocks.
AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
#: Failed tasks stay for a month; successful ones are deleted at once
#: (`gpuplan.api.jobs.queue.queue_worker`).
KEEP_FAILED_HOURS = 30 * 24
#: After this many retries a task probably kills its workers; a run reports this itself after fewer attempts.
MOST_ATTEMPTS = 20

_STATUS = sa.cast(JOBS.c.status, sa.Text)
_TASK = sa.exists().where(JOBS.c.args.op("->>")("run_id") == runs.c.id, _STATUS.in_(("todo", "doing")))
_WITHOUT_TASK = sa.select(runs.c.id, runs.c.kind).where(runs.c.attempt.is_not(None), runs.c.status.in_(LIVE), ~_TASK)


async def rescue(manager: JobManager, gpuplan: "Services", stalled_seconds: float) -> None:
    """Retry the tasks of workers without a recent heartbeat, and create the missing tasks of waiting runs.

    Only the database's clock counts.
    """
    for get_stalled_job in await manager.get_stalled_jobs(seconds_since_heartbeat=stalled_seconds):
        if (
            get_stalled_job.queue == MAINTENANCE
            or get_stalled_job.attempts >= MOST_ATTEMPTS
            or not await _handed_out_again(manager, get_stalled_job)
        ):
            log.warning("task %s is given up: its worker is gone", get_stalled_job.call_string)
            await manager.finish_job(get_stalled_job, Status.FAILED, delete_job=get_stalled_job.queue == MAINTENANCE)
    await manager.prune_stalled_workers(stalled_seconds)
    await sync_to_async(give_tasks, gpuplan)


async def _handed_out_again(manager: JobManager, job: Job) -> bool:
    """False if the same task is already waiting."""
    try:
        await manager.retry_job(job, retry_at=AT_ONCE)
    except UniqueViolation:
        return False
    log.warning("task %s is retried: its worker is gone", job.call_string)
    return True


async def tidy(manager: JobManager) -> None:
    """Delete tasks that ended long ago."""
    await manager.delete_old_jobs(KEEP_FAILED_HOURS, include_failed=True, include_cancelled=True, include_aborted=True)


def give_tasks(gpuplan: "Services") -> None:
    """Create a task for every waiting run without one: a backup contains the runs but not the queue."""
    store = gpuplan.store
    queue = Queue(store)
    with named_failures(store.url), store.engine.connect() as connection:
        left = connection.execute(_WITHOUT_TASK).all()
    for run_id, kind in left:
        log.warning("run %s had no task and gets a new one", run_id)
        if kind == "refresh":
            gpuplan.refreshes.shared.put_in_last(run_id)
            continue
        with named_failures(store.url), queue.writing() as tx:
            queue.defer_deduplicated(
                tx, job(EXECUTE, RUNS, lock=run_id, queueing_lock=f"again {run_id}", run_id=run_id)
            )
