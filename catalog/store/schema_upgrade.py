"""Upgrade a database to this release's tables on opening; imports alembic only if an upgrade is needed."""

import sqlite3
import time
from typing import TYPE_CHECKING

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import StoreFailure, UnusableInput
from gpuplan.catalog.store.database import BUSY_MILLISECONDS, DIALECTS, VARIABLE, shown, writing
from gpuplan.catalog.store.schema import compatible_since, metadata

if TYPE_CHECKING:
    from alembic.config import Config

#: The newest revision under `migrations/versions`, compared before any slow import.
HEAD = "0012"
SCRIPTS = "gpuplan.catalog.store:migrations"
#: The oldest release whose code works on the tables of `HEAD`. Revisions only add (tables, nullable columns, indexes).
#: Columns that earlier releases read are removed one release after their last reader, and that revision updates this
#: constant and the table `compatible_since`.
COMPATIBLE_SINCE = "0004"
#: The longest acceptable delay for requests that wait behind a change of their table.
_MOST_WAIT_SECONDS = 5

#: As alembic creates it, so that alembic can continue from it.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def to_head(engine: sa.Engine, url: sa.URL) -> None:
    """Upgrade the database to `HEAD` if needed; safe for concurrent processes.

    A database upgraded by a newer release is used as it is if that release declares this one compatible; otherwise raises
    `StoreFailure`.
    """
    with engine.connect() as connection:
        revision = revision_of(connection)
        if revision == HEAD or suits(connection, revision):
            return
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with writing(engine) as connection:
        _take_turn(connection)
        revision = revision_of(connection)
        if revision is None:
            _create(connection)
        elif revision != HEAD and not suits(connection, revision):
            _upgrade(connection, revision, url)


def suits(connection: sa.Connection, revision: str | None) -> bool:
    """Whether this release works on tables of a `revision` newer than `HEAD`, as declared by the newer release."""
    if revision is None or revision <= HEAD or not sa.inspect(connection).has_table(compatible_since.name):
        return False
    oldest = connection.execute(sa.select(compatible_since.c.revision)).scalars().all()
    return len(oldest) == 1 and oldest[0] <= HEAD


def downgrade(engine: sa.Engine, url: sa.URL, revision: str) -> None:
    """Downgrade the database to the tables of an earlier release; drops later data.

    Raises `UnusableInput` at `revision` if it is not older, or too old to return to.
    """
    with writing(engine) as connection:
        _take_turn(connection)
        now = revision_of(connection)
        accepted = [
            known_revision for known_revision in known_revisions() if COMPATIBLE_SINCE <= known_revision < (now or "")
        ]
        if revision not in accepted:
            message = f"cannot go from {now} back to {revision[:40]!r}; accepted: {', '.join(accepted) or 'none'}"
            raise UnusableInput.at("revision", message=message)
        if now not in known_revisions():
            raise StoreFailure(_newer(url, str(now)))
        from alembic import command

        command.downgrade(alembic_config(connection), revision)


def alembic_config(connection: sa.Connection | None = None) -> "Config":
    """The configuration with which alembic finds the revisions and uses `connection`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def revision_of(connection: sa.Connection) -> str | None:
    """The current revision of the database, "base" before the first; None if it has no tables."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(sa.select(_VERSION.c.version_num)).scalar_one_or_none() or "base"


def _create(connection: sa.Connection) -> None:
    """Create the tables of `HEAD` directly: an empty database needs no upgrades."""
    metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection)
    connection.execute(sa.insert(_VERSION), {"version_num": HEAD})
    connection.execute(sa.insert(compatible_since), {"revision": COMPATIBLE_SINCE})


def _upgrade(connection: sa.Connection, revision: str, url: sa.URL) -> None:
    if revision not in {*known_revisions(), "base"}:
        raise StoreFailure(_newer(url, revision))
    at_revision(connection, "head")


def at_revision(connection: sa.Connection, revision: str) -> None:
    """Upgrade to the tables of a revision, in the open transaction."""
    from alembic import command

    command.upgrade(alembic_config(connection), revision)


def known_revisions() -> list[str]:
    """Every revision of this release, in order."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return sorted(script.revision for script in scripts)


def _newer(url: sa.URL, revision: str) -> str:
    return (
        f"database {shown(url)}: written by a newer gpuplan (revision {revision[:40]}); "
        f"upgrade gpuplan or point {VARIABLE} elsewhere"
    )


def _take_turn(connection: sa.Connection) -> None:
    """Wait until no other process migrates, and limit how long a table change may block others."""
    lock = DIALECTS[connection.dialect.name].migration_lock
    if lock is not None:
        connection.exec_driver_sql(lock)
        # A change that waits for a long reader blocks all later requests; fail and retry instead.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MOST_WAIT_SECONDS}s'")


def _write_ahead(engine: sa.Engine) -> None:
    """Switch the file to write-ahead logging, which persists in the file.

    SQLite ignores its busy timeout when two processes switch at once, so this function retries.
    """
    give_up = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.02)
        else:
            return
        finally:
            raw.close()
