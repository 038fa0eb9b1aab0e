"""Which pool a service has: threads of its own on SQLite, the queue on PostgreSQL."""

from functools import partial
from typing import TYPE_CHECKING

from api.runs.execute import execute
from api.runs.pool import Pool, RunPool

if TYPE_CHECKING:
    from api.app import Gpuplan


def pool_for(gpuplan: "Gpuplan") -> RunPool:
    """What executes the long runs of this gpuplan. Raises `StoreFailure` if the queue's tables cannot be made."""
    if not gpuplan.has_queue:
        return Pool(partial(execute, gpuplan))
    from api.runs.queued import QueuedPool

    return QueuedPool(gpuplan.store)
