"""The choice of the run pool: threads of the service on SQLite, the queue on PostgreSQL."""

from functools import partial
from typing import TYPE_CHECKING

from gpuplan.api.jobs.run_execution import execute
from gpuplan.api.jobs.thread_pool import Pool, RunPool

if TYPE_CHECKING:
    from gpuplan.api.services.composition import Services


def pool_for(gpuplan: "Services") -> RunPool:
    """The pool that executes long runs. Raises `StoreFailure` if the queue's tables cannot be created."""
    if not gpuplan.context.has_queue:
        return Pool(partial(execute, gpuplan))
    from gpuplan.api.jobs.queue.queued_pool import QueuedPool

    return QueuedPool(gpuplan.store)
