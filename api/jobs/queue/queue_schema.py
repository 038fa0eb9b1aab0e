"""The queue's tables: created and migrated in a schema of their own in the same database, with procrastinate's SQL
files.

procrastinate has one SQL file for a new database and a numbered file per later change. The applied ones are recorded in
the database, so a release with a newer procrastinate applies the missing ones in order.
"""

from importlib.metadata import version

import sqlalchemy as sa
from procrastinate.schema import SchemaManager, migrations_path

from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.database import named_failures, writing
from gpuplan.catalog.store.store import Store

SCHEMA = "gpuplan_queue"
#: The number of the advisory lock, next to that of `gpuplan.catalog.store.refresh_lock`; it must never change.
_ADVISORY_LOCK = 0x4767C53B
_APPLIED = sa.Table(
    "gpuplan_applied",
    sa.MetaData(schema=SCHEMA),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("procrastinate", sa.Text, nullable=False),
    sa.Column("applied_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
)
#: Our own indexes and queries on procrastinate's tables.
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
    """Create or migrate the queue's tables and return the names of the applied migrations. Concurrent calls are safe.

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
            # Uses the driver directly: it accepts several statements at once and does not interpret %.
            connection.connection.driver_connection.execute(text)  # type: ignore[union-attr]
        rows = [{"name": name, "procrastinate": version("procrastinate")} for name in todo]
        if rows:
            connection.execute(sa.insert(_APPLIED), rows)
    return tuple(todo)


def missing(store: Store) -> tuple[str, ...]:
    """The migrations that the queue's tables lack for this release; all of them if there are no tables."""
    with named_failures(store.url), store.engine.connect() as connection:
        if not sa.inspect(connection).has_table(_APPLIED.name, schema=SCHEMA):
            return migration_names()
        applied = _applied(connection)
    return tuple(name for name in migration_names() if name not in applied)


def drop_queue(store: Store) -> None:
    """Drop the queue with all waiting tasks, for a downgrade to a release without it."""
    with named_failures(store.url), writing(store.engine) as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA, cascade=True, if_exists=True))


def require_queue(store: Store) -> None:
    """Raises `StoreFailure` unless the queue's tables match this release."""
    if lacking := missing(store):
        raise StoreFailure(
            f"database {store.name}: the queue's tables are not those of this gpuplan (it lacks {lacking[-1]}); "
            "run gpuplan db upgrade"
        )


def migration_names() -> tuple[str, ...]:
    """Every migration of procrastinate's tables up to the installed release, the oldest first."""
    return tuple(sorted(path.name for path in migrations_path.glob("*.sql")))


def _applied(connection: sa.Connection) -> set[str]:
    return set(connection.execute(sa.select(_APPLIED.c.name)).scalars())


def _text(name: str) -> str:
    return (migrations_path / name).read_text(encoding="utf-8")
