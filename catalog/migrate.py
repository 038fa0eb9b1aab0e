"""Brings a database to this release's tables when it is opened; alembic is imported only to upgrade an older one."""

import sqlite3
import time
from typing import TYPE_CHECKING

import sqlalchemy as sa

from catalog.database import BUSY_MILLISECONDS, DIALECTS, VARIABLE, shown, writing
from catalog.errors import StoreFailure
from catalog.schema import metadata

if TYPE_CHECKING:
    from alembic.config import Config

#: The newest revision under `migrations/versions`: compared before anything slow is imported.
HEAD = "0006"
SCRIPTS = "catalog:migrations"

#: As alembic itself makes it, so that it goes on from here.
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def to_head(engine: sa.Engine, url: sa.URL) -> None:
    """Upgrades the database to `HEAD`, if it is not there; any number of processes may do so at once.

    Raises `StoreFailure` if a newer release has written it.
    """
    with engine.connect() as connection:
        if revision_of(connection) == HEAD:
            return
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with writing(engine) as connection:
        lock = DIALECTS[engine.dialect.name].migration_lock
        if lock is not None:
            connection.exec_driver_sql(lock)
        revision = revision_of(connection)
        if revision is None:
            _create(connection)
        elif revision != HEAD:
            _upgrade(connection, revision, url)


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


def _upgrade(connection: sa.Connection, revision: str, url: sa.URL) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = alembic_config(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision not in known | {"base"}:
        raise StoreFailure(
            f"database {shown(url)}: written by a newer gpuplan (revision {revision[:40]}); "
            f"upgrade gpuplan or point {VARIABLE} elsewhere"
        )
    command.upgrade(config, "head")


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
