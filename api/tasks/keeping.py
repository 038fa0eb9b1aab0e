"""What keeps the queue in order: tasks of dead workers are handed out again, work without a task gets one, old rows go."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.utils import sync_to_async

from api.tasks.names import EXECUTE, KEEPING, RUNS
from api.tasks.queue import Queue, job
from api.tasks.queue_schema import JOBS
from catalog.database import named_failures
from catalog.runs import LIVE
from catalog.schema import runs

if TYPE_CHECKING:
    from api.app import Gpuplan

log = logging.getLogger("gpuplan.tasks")

#: Long before any worker's clock: a task put back so begins at once, however wrong the clocks are.
AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)
#: What went wrong is worth a look for a month; what went well is deleted at once (`api.tasks.worker`).
KEEP_FAILED_HOURS = 30 * 24
#: A task that was handed out so often is what kills its workers; a run says so itself after fewer.
MOST_ATTEMPTS = 20

_STATUS = sa.cast(JOBS.c.status, sa.Text)
_TASK = sa.exists().where(JOBS.c.args.op("->>")("run_id") == runs.c.id, _STATUS.in_(("todo", "doing")))
_WITHOUT_TASK = sa.select(runs.c.id, runs.c.kind).where(runs.c.attempt.is_not(None), runs.c.status.in_(LIVE), ~_TASK)


async def rescue(manager: JobManager, gpuplan: "Gpuplan", stalled_seconds: float) -> None:
    """Hands out again what workers had that have not been heard of for so long, and what no task is left of.

    The database's clock alone says how long that is.
    """
    for each in await manager.get_stalled_jobs(seconds_since_heartbeat=stalled_seconds):
        if each.queue == KEEPING or each.attempts >= MOST_ATTEMPTS or not await _handed_out_again(manager, each):
            log.warning("task %s ends here: its worker is gone", each.call_string)
            await manager.finish_job(each, Status.FAILED, delete_job=each.queue == KEEPING)
    await manager.prune_stalled_workers(stalled_seconds)
    await sync_to_async(give_tasks, gpuplan)


async def _handed_out_again(manager: JobManager, each: Job) -> bool:
    """False where the same task waits already."""
    try:
        await manager.retry_job(each, retry_at=AT_ONCE)
    except UniqueViolation:
        return False
    log.warning("task %s is handed out again: its worker is gone", each.call_string)
    return True


async def tidy(manager: JobManager) -> None:
    """Deletes tasks that ended long ago."""
    await manager.delete_old_jobs(KEEP_FAILED_HOURS, include_failed=True, include_cancelled=True, include_aborted=True)


def give_tasks(gpuplan: "Gpuplan") -> None:
    """Puts in a task for every run that waits for the queue and has none: a backup keeps runs and not the queue."""
    store = gpuplan.store
    queue = Queue(store)
    with named_failures(store.url), store.engine.connect() as connection:
        left = connection.execute(_WITHOUT_TASK).all()
    for run_id, kind in left:
        log.warning("run %s had no task any more and gets a new one", run_id)
        if kind == "refresh":
            gpuplan.shared_refreshes.put_in_last(run_id)
            continue
        with named_failures(store.url), queue.writing() as tx:
            queue.defer_once(tx, job(EXECUTE, RUNS, lock=run_id, queueing_lock=f"again {run_id}", run_id=run_id))
