"""Brings a database to this release's tables when it is opened; alembic is imported only to upgrade an older one."""

import sqlite3
import time
from typing import TYPE_CHECKING

import sqlalchemy as sa

from catalog.database import BUSY_MILLISECONDS, DIALECTS, VARIABLE, shown, writing
from catalog.errors import StoreFailure, UnusableInput
from catalog.schema import compatible_since, metadata

if TYPE_CHECKING:
    from alembic.config import Config

#: The newest revision under `migrations/versions`: compared before anything slow is imported.
HEAD = "0008"
SCRIPTS = "catalog:migrations"
#: The oldest release whose code works on the tables of `HEAD`. A revision only ever adds (tables, columns that may be
#: empty, indexes); what earlier releases read is taken away one release after nobody reads it any more, and that
#: revision moves this, here and in the table `compatible_since`.
COMPATIBLE_SINCE = "0004"
#: What requests that wait behind a change of their table can stand.
_MOST_WAIT_SECONDS = 5

#: As alembic itself makes it, so that it goes on from here.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def to_head(engine: sa.Engine, url: sa.URL) -> None:
    """Upgrades the database to `HEAD`, if it is not there; any number of processes may do so at once.

    One that a newer release has upgraded is used as it is while that release says that ours works on it; else raises
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
    """Whether this release works on tables of a `revision` newer than `HEAD`, as the release that made them says."""
    if revision is None or revision <= HEAD or not sa.inspect(connection).has_table(compatible_since.name):
        return False
    oldest = connection.execute(sa.select(compatible_since.c.revision)).scalars().all()
    return len(oldest) == 1 and oldest[0] <= HEAD


def downgrade(engine: sa.Engine, url: sa.URL, revision: str) -> None:
    """Takes the database back to the tables of an earlier release: what only later ones know is dropped.

    Raises `UnusableInput` at `revision` for one that is not older, or older than any that can be gone back to.
    """
    with writing(engine) as connection:
        _take_turn(connection)
        now = revision_of(connection)
        accepted = [each for each in known_revisions() if COMPATIBLE_SINCE <= each < (now or "")]
        if revision not in accepted:
            message = f"cannot go from {now} back to {revision[:40]!r}; accepted: {', '.join(accepted) or 'none'}"
            raise UnusableInput.at("revision", message=message)
        if now not in known_revisions():
            raise StoreFailure(_newer(url, str(now)))
        from alembic import command

        command.downgrade(alembic_config(connection), revision)


def alembic_config(connection: sa.Connection | None = None) -> "Config":
    """The configuration under which alembic finds our revisions, and runs on `connection`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def revision_of(connection: sa.Connection) -> str | None:
    """The revision that the database is at, "base" before the first; None if nobody has made tables yet."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    return connection.execute(sa.select(_VERSION.c.version_num)).scalar_one_or_none() or "base"


def _create(connection: sa.Connection) -> None:
    """Makes the tables of `HEAD` at once: an empty database has nothing to upgrade."""
    metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection)
    connection.execute(sa.insert(_VERSION), {"version_num": HEAD})
    connection.execute(sa.insert(compatible_since), {"revision": COMPATIBLE_SINCE})


def _upgrade(connection: sa.Connection, revision: str, url: sa.URL) -> None:
    if revision not in {*known_revisions(), "base"}:
        raise StoreFailure(_newer(url, revision))
    at_revision(connection, "head")


def at_revision(connection: sa.Connection, revision: str) -> None:
    """Upgrades to the tables of a revision, in the transaction that is open."""
    from alembic import command

    command.upgrade(alembic_config(connection), revision)


def known_revisions() -> list[str]:
    """Every revision of this release, the first one first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return sorted(script.revision for script in scripts)


def _newer(url: sa.URL, revision: str) -> str:
    return (
        f"database {shown(url)}: written by a newer gpuplan (revision {revision[:40]}); "
        f"upgrade gpuplan or point {VARIABLE} elsewhere"
    )


def _take_turn(connection: sa.Connection) -> None:
    """Waits until no other process migrates, and lets no change of a table hold up those who use it for long."""
    lock = DIALECTS[connection.dialect.name].migration_lock
    if lock is not None:
        connection.exec_driver_sql(lock)
        # A change that waits for a long reader makes everyone wait who comes after it; better that it fails, and is
        # tried again.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MOST_WAIT_SECONDS}s'")


def _write_ahead(engine: sa.Engine) -> None:
    """Switches the file to write-ahead logging, which it then remembers.

    SQLite does not wait for its busy timeout here when two processes switch at once, so we do.
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
