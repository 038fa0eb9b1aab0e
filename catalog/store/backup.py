"""Back up the whole store while it is in use: its contents at one moment, in one file."""

import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from gpuplan.catalog.store.backup_file import (
    DATABASE,
    FORMAT,
    Manifest,
    Summing,
    TableSum,
    existing_tables,
    new_backup,
    rows_of,
    sums,
    write_manifest,
    write_rows,
)
from gpuplan.catalog.store.database import named_failures, sqlite_file
from gpuplan.catalog.store.schema_upgrade import revision_of
from gpuplan.catalog.store.store import Store

#: One fault shows that the file is damaged; SQLite would list a hundred.
_CHECK = "PRAGMA integrity_check(1)"


def damage(path: Path) -> str | None:
    """The first fault in the SQLite file, in SQLite's words (a damaged page, an index that misses a row), or None.

    Raises `sqlite3.OperationalError` if the file cannot be opened.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        try:
            [(report,)] = connection.execute(_CHECK).fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            report = str(error)
    return None if report == "ok" else str(report)[:200]


def back_up(store: Store, path: Path) -> Manifest:
    """Write the backup and return its manifest. Readers and writers continue meanwhile.

    SQLite: a copy of the file by its online backup, page by page. PostgreSQL: every row, in one transaction with a
    consistent view. Raises `UnusableInput` at FILE for a file that exists, `StoreFailure` if either cannot be read or
    written.
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
                sums_by_table = {}
                for table in existing_tables(connection):
                    columns = table.columns.keys()
                    summing = Summing(columns)
                    write_rows(archive, table.name, columns, summing.passing(rows_of(connection, table)))
                    sums_by_table[table.name] = summing.done()
                manifest = _manifest(connection, sums_by_table)
        write_manifest(archive, manifest)
    return manifest


def sqlite_manifest(path: Path) -> Manifest:
    """The manifest of a SQLite file that no other process writes."""
    engine = sa.create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            return _manifest(connection, sums(connection, existing_tables(connection)))
    finally:
        engine.dispose()


def _copy(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
        # A single file, without a write-ahead log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")


def _manifest(connection: sa.Connection, sums_by_table: dict[str, TableSum]) -> Manifest:
    return Manifest(
        format=FORMAT,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=revision_of(connection) or "base",
        tables=sums_by_table,
    )
