"""Takes a backup of the whole store while it is in use: what it held at one moment, in one file."""

import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from catalog.backup_file import DATABASE, FORMAT, Manifest, new_backup, write_manifest, write_rows
from catalog.database import named_failures, sqlite_file
from catalog.migrate import revision_of
from catalog.store import Store
from catalog.table_rows import Summing, TableSum, rows_of, sums, tables_there


def back_up(store: Store, path: Path) -> Manifest:
    """Writes the backup and gives its manifest. Writers and readers go on meanwhile.

    SQLite: a copy of the file by its online backup, page by page. PostgreSQL: every row, in one transaction that sees
    one moment. Raises `UnusableInput` at FILE for a file that exists, `StoreFailure` if either cannot be read or written.
    """
    with named_failures(store.url), new_backup(path) as archive:
        source = sqlite_file(store.url)
        if source is not None:
            with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".gpuplan-backup-") as folder:
                copy = Path(folder) / DATABASE
                _copy(source, copy)
                manifest = sqlite_manifest(copy)
                archive.write(copy, DATABASE)
        else:
            with store.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
                found = {}
                for table in tables_there(connection):
                    columns = table.columns.keys()
                    summing = Summing(columns)
                    write_rows(archive, table.name, columns, summing.passing(rows_of(connection, table)))
                    found[table.name] = summing.done()
                manifest = _manifest(connection, found)
        write_manifest(archive, manifest)
    return manifest


def sqlite_manifest(path: Path) -> Manifest:
    """What stands in a SQLite file that nobody else writes."""
    engine = sa.create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            return _manifest(connection, sums(connection, tables_there(connection)))
    finally:
        engine.dispose()


def _copy(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as there,
        closing(sqlite3.connect(target)) as here,
    ):
        there.backup(here)
        # One file to keep and to carry, without a log beside it.
        here.execute("PRAGMA journal_mode=DELETE")


def _manifest(connection: sa.Connection, found: dict[str, TableSum]) -> Manifest:
    return Manifest(
        format=FORMAT,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=revision_of(connection) or "base",
        tables=found,
    )
