"""The queue's own tables: a schema of their own in the same database, made and brought up to date as procrastinate asks.

procrastinate brings its tables as one file for a new database and a numbered file per change since. Which of them a
database has is written down beside them, so a release with a newer procrastinate applies what is missing, in order.
"""

from importlib.metadata import version

import sqlalchemy as sa
from procrastinate.schema import SchemaManager, migrations_path

from catalog.database import named_failures, writing
from catalog.errors import StoreFailure
from catalog.store import Store

SCHEMA = "gpuplan_queue"
#: The number of the advisory lock; it follows that of `catalog.refresh_lock` and must never change.
_ADVISORY_LOCK = 0x4767C53B
_APPLIED = sa.Table(
    "gpuplan_applied",
    sa.MetaData(schema=SCHEMA),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("procrastinate", sa.Text, nullable=False),
    sa.Column("applied_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
)
#: What is asked of procrastinate's tables besides through procrastinate.
JOBS = sa.table(
    "procrastinate_jobs",
    sa.column("queue_name", sa.Text),
    sa.column("status", sa.Text),
    sa.column("args", sa.JSON),
    sa.column("scheduled_at", sa.DateTime(timezone=True)),
    schema=SCHEMA,
)
WORKERS = sa.table("procrastinate_workers", sa.column("last_heartbeat", sa.DateTime(timezone=True)), schema=SCHEMA)


def upgrade_queue(store: Store) -> tuple[str, ...]:
    """Makes the queue's tables, or what they lack; the names of what was applied. Any number of processes may at once.

    Raises `StoreFailure` if the database refuses.
    """
    if not missing(store):
        return ()
    with named_failures(store.url), writing(store.engine) as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _ADVISORY_LOCK})
        connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
        _APPLIED.create(connection, checkfirst=True)
        applied = _applied(connection)
        connection.execute(sa.text("SELECT set_config('search_path', :path, true)"), {"path": SCHEMA})
        todo = [name for name in migration_names() if name not in applied]
        texts = [_text(name) for name in todo] if applied else [SchemaManager.get_schema()]
        for text in texts if todo else ():
            # The driver itself: several statements at once, and a % is a %.
            connection.connection.driver_connection.execute(text)  # type: ignore[union-attr]
        rows = [{"name": name, "procrastinate": version("procrastinate")} for name in todo]
        if rows:
            connection.execute(sa.insert(_APPLIED), rows)
    return tuple(todo)


def missing(store: Store) -> tuple[str, ...]:
    """What the queue's tables lack of what this release needs; all of it where there are none."""
    with named_failures(store.url), store.engine.connect() as connection:
        if not sa.inspect(connection).has_table(_APPLIED.name, schema=SCHEMA):
            return migration_names()
        applied = _applied(connection)
    return tuple(name for name in migration_names() if name not in applied)


def drop_queue(store: Store) -> None:
    """Drops the queue with all that waits in it, for a release that knows of none."""
    with named_failures(store.url), writing(store.engine) as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA, cascade=True, if_exists=True))


def require_queue(store: Store) -> None:
    """Raises `StoreFailure` unless the queue's tables are those that this release needs."""
    if lacking := missing(store):
        raise StoreFailure(
            f"database {store.name}: the queue's tables are not those of this gpuplan (it lacks {lacking[-1]}); "
            "run gpuplan db upgrade"
        )


def migration_names() -> tuple[str, ...]:
    """Every change of procrastinate's tables up to the release that is installed, the oldest first."""
    return tuple(sorted(each.name for each in migrations_path.glob("*.sql")))


def _applied(connection: sa.Connection) -> set[str]:
    return set(connection.execute(sa.select(_APPLIED.c.name)).scalars())


def _text(name: str) -> str:
    return (migrations_path / name).read_text(encoding="utf-8")
