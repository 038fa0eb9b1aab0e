"""The queue as doors and tasks see it: tasks are put in with what else is written, or neither is.

A task that a transaction defers can be seen by workers once that transaction is committed. So a run and the task that
executes it come into being together, and so do the rows of a region and the task that writes them all.
"""

from contextlib import AbstractContextManager
from datetime import datetime

import sqlalchemy as sa
from procrastinate import SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from api.tasks.names import QUEUES
from api.tasks.queue_schema import JOBS, SCHEMA, WORKERS
from catalog.database import named_failures, writing
from catalog.errors import StoreFailure
from catalog.store import Store

#: A worker tells three times as often that it lives (`api.tasks.worker`).
ALIVE_SECONDS = 60.0
_WAITING = "todo"

_STATUS = sa.cast(JOBS.c.status, sa.Text)
#: What is for a later hour waits for nobody: a refresh that ended leaves the task that would have ended it when time is up.
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
    """The queue in the database of a store, which is PostgreSQL. Raises `StoreFailure` where that cannot be used."""

    def __init__(self, store: Store) -> None:
        """On the store's own connections."""
        self._store = store
        # Never opened: every task is deferred on a connection that is given.
        self._manager = JobManager(SyncPsycopgConnector())

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """One transaction that writes."""
        return writing(self._store.engine)

    def defer(self, connection: sa.Connection, *jobs: Job) -> None:
        """Puts tasks in, in the transaction that is open. Raises `AlreadyEnqueued` for one whose queueing lock waits."""
        before = connection.execute(_SEARCH_PATH).scalar()
        connection.execute(_SET_SEARCH_PATH, {"path": SCHEMA})
        try:
            self._manager.batch_defer_jobs(list(jobs), connection=connection.connection.driver_connection)
        except AlreadyEnqueued:
            raise
        except ConnectorException as error:
            raise StoreFailure(f"database {self._store.name}: a task could not be queued: {error.__cause__}") from error
        connection.execute(_SET_SEARCH_PATH, {"path": before})

    def defer_once(self, connection: sa.Connection, job: Job) -> bool:
        """Whether the task was put in: not where one with its queueing lock waits already."""
        try:
            with connection.begin_nested():
                self.defer(connection, job)
        except AlreadyEnqueued:
            return False
        return True

    def waiting(self, connection: sa.Connection, queue: str) -> int:
        """How many tasks wait in a queue, of those that are due."""
        return int(connection.execute(_NUMBER_WAITING.where(JOBS.c.queue_name == queue)).scalar_one())

    def workers(self) -> int:
        """How many workers have said lately that they live."""
        with named_failures(self._store.url), self._store.engine.connect() as connection:
            return int(connection.execute(_ALIVE).scalar_one())


def queue_depth(store: Store) -> dict[str, dict[str, int]]:
    """How many tasks there are by queue and status: todo (waiting, and due), doing, failed; one look-up. For metrics."""
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
    """A task to put in; `at` is the database's time before which it does not begin."""
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
    """What time it is for the database, whose clock is the same for every machine."""
    found: datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
    return found
