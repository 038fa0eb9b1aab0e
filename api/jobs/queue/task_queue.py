"""The queue for interfaces and tasks: a task is added in the same transaction as the data it works on.

Workers see a deferred task after that transaction commits. So a run and the task that executes it appear together, and
so do the rows of a region and the task that writes them all.
"""

from contextlib import AbstractContextManager
from datetime import datetime

import sqlalchemy as sa
from procrastinate import SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from gpuplan.api.jobs.queue.queue_names import QUEUES
from gpuplan.api.jobs.queue.queue_schema import JOBS, SCHEMA, WORKERS
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.database import named_failures, writing
from gpuplan.catalog.store.store import Store

#: Three times the heartbeat interval of a worker (`gpuplan.api.jobs.queue.queue_worker`).
ALIVE_SECONDS = 60.0
_WAITING = "todo"

_STATUS = sa.cast(JOBS.c.status, sa.Text)
#: Tasks for a later hour do not need a worker yet: a refresh that has ended leaves its deadline task behind.
_DUE = sa.or_(JOBS.c.scheduled_at.is_(None), JOBS.c.scheduled_at <= sa.func.now())
_DEPTH = (
    sa.select(JOBS.c.queue_name, _STATUS.label("status"), sa.func.count().label("number"))
    .where(_STATUS.in_((_WAITING, "doing", "failed")), sa.or_(_STATUS != _WAITING, _DUE))
    .group_by(JOBS.c.queue_name, _STATUS)
)
_SINCE = sa.func.now() - sa.func.make_interval(0, 0, 0, 0, 0, 0, ALIVE_SECONDS)
_ALIVE = sa.select(sa.func.count()).select_from(WORKERS).where(WORKERS.c.last_heartbeat > _SINCE)
_NUMBER_WAITING = sa.select(sa.func.count()).select_from(JOBS).where(_STATUS == _WAITING, _DUE)
_SEARCH_PATH = sa.text("SELECT current_setting('search_path')")
_SET_SEARCH_PATH = sa.text("SELECT set_config('search_path', :path, true)")


class Queue:
    """The queue in the PostgreSQL database of a store. Raises `StoreFailure` if it cannot be used."""

    def __init__(self, store: Store) -> None:
        """Uses the store's own connections."""
        self._store = store
        # Never opened: every task is deferred on a given connection.
        self._manager = JobManager(SyncPsycopgConnector())

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """One write transaction."""
        return writing(self._store.engine)

    def defer(self, connection: sa.Connection, *jobs: Job) -> None:
        """Add tasks in the open transaction. Raises `AlreadyEnqueued` if a task with the same queueing lock is waiting."""
        before = connection.execute(_SEARCH_PATH).scalar()
        connection.execute(_SET_SEARCH_PATH, {"path": SCHEMA})
        try:
            self._manager.batch_defer_jobs(list(jobs), connection=connection.connection.driver_connection)
        except AlreadyEnqueued:
            raise
        except ConnectorException as error:
            raise StoreFailure(f"database {self._store.name}: a task could not be queued: {error.__cause__}") from error
        connection.execute(_SET_SEARCH_PATH, {"path": before})

    def defer_deduplicated(self, connection: sa.Connection, job: Job) -> bool:
        """Whether the task was added: not if a task with its queueing lock is waiting."""
        try:
            with connection.begin_nested():
                self.defer(connection, job)
        except AlreadyEnqueued:
            return False
        return True

    def waiting(self, connection: sa.Connection, queue: str) -> int:
        """The number of due tasks that wait in a queue."""
        return int(connection.execute(_NUMBER_WAITING.where(JOBS.c.queue_name == queue)).scalar_one())

    def workers(self) -> int:
        """The number of workers with a recent heartbeat."""
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            return int(connection.execute(_ALIVE).scalar_one())


def queue_depth(store: Store) -> dict[str, dict[str, int]]:
    """The number of tasks by queue and status: todo (due), doing, failed; one query. For metrics."""
    depth = {queue: dict.fromkeys((_WAITING, "doing", "failed"), 0) for queue in QUEUES}
    with named_failures(store.url), store.engine.connect() as connection:
        for row in connection.execute(_DEPTH):
            depth.setdefault(row.queue_name, {})[row.status] = row.number
    return depth


def job(
    task: str,
    queue: str,
    *,
    lock: str | None = None,
    queueing_lock: str | None = None,
    priority: int = 0,
    at: datetime | None = None,
    **arguments: str,
) -> Job:
    """A task to add; it does not start before `at` in the database's time."""
    return Job(
        queue=queue,
        task_name=task,
        lock=lock,
        queueing_lock=queueing_lock,
        priority=priority,
        scheduled_at=at,
        task_kwargs=dict(arguments),
    )


def database_time(connection: sa.Connection) -> datetime:
    """The database's time; its clock is common to all machines."""
    now: datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
    return now
