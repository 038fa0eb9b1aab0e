"""Restore a backup into an empty database of either kind, and verify it against the backup's manifest."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import batched
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.backup import damage, sqlite_manifest
from gpuplan.catalog.store.backup_file import (
    DATABASE,
    Manifest,
    backed_up_rows,
    existing_tables,
    open_backup,
    rows_of,
    sums,
)
from gpuplan.catalog.store.database import VARIABLE, connect, database_url, named_failures, shown, sqlite_file, writing
from gpuplan.catalog.store.run_store import LIVE
from gpuplan.catalog.store.schema_upgrade import at_revision, known_revisions

_AT_ONCE = 1000
Rows = tuple[Sequence[str], Iterator[Sequence[Any]]]


def restore(path: Path, url: str | None) -> Manifest:
    """Restore the backup at `path` into the database at `url`, completely and verified or not at all; returns its manifest.

    Raises `UnusableInput` at FILE for a file that is not a backup or does not match its manifest, at the database's setting
    if it is not empty; `StoreFailure` if it cannot be written.
    """
    target = database_url(url)
    file = sqlite_file(target)
    with open_backup(path) as (archive, manifest), named_failures(target):
        if manifest.revision not in known_revisions():
            message = f"it is of a newer gpuplan (revision {manifest.revision[:40]}); upgrade gpuplan first"
            raise UnusableInput.at("FILE", message=message)
        folder = tempfile.gettempdir() if file is None else file.parent
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".gpuplan-restore-") as scratch:
            copy = _extracted(archive, Path(scratch))
            if copy is not None:
                _compare(manifest, sqlite_manifest(copy))
            if file is None:
                _restore_rows(archive, copy, manifest, target)
                return manifest
            if copy is None:
                copy = Path(scratch) / DATABASE
                _restore_rows(archive, None, manifest, target.set(database=str(copy)))
            _put(copy, file)
    return manifest


def _extracted(archive: zipfile.ZipFile, folder: Path) -> Path | None:
    """The SQLite database of the backup, after SQLite's integrity check; None for a backup of rows."""
    if DATABASE not in archive.namelist():
        return None
    copy = folder / DATABASE
    copy.touch(mode=0o600, exist_ok=False)  # it holds hashes of keys and tokens of Slack
    with archive.open(DATABASE) as compressed, copy.open("wb") as unpacked:
        shutil.copyfileobj(compressed, unpacked)
        unpacked.flush()
        os.fsync(unpacked.fileno())
    fault = damage(copy)
    if fault is not None:
        raise UnusableInput.at("FILE", message=f"its database is damaged: {fault}; take an earlier backup")
    return copy


def _restore_rows(archive: zipfile.ZipFile, copy: Path | None, manifest: Manifest, target: sa.URL) -> None:
    engine = connect(target)
    try:
        with writing(engine) as connection:
            if sa.inspect(connection).get_table_names():
                raise _filled(target)
            at_revision(connection, manifest.revision)
            tables = existing_tables(connection)
            for table in reversed(tables):
                connection.execute(sa.delete(table))  # the backup also has the rows that the revisions insert
            for table in tables:
                with _rows(archive, copy, table) as (columns, rows):
                    _insert(connection, table, columns, rows)
            _compare(manifest, sums(connection, tables))
            _count_on(connection, tables)
            if engine.dialect.name == "sqlite":
                _let_go(connection)
    finally:
        engine.dispose()


def _rows(archive: zipfile.ZipFile, copy: Path | None, table: sa.Table) -> AbstractContextManager[Rows]:
    return backed_up_rows(archive, table.name) if copy is None else _copied_rows(copy, table.name)


@contextmanager
def _copied_rows(copy: Path, name: str) -> Iterator[Rows]:
    engine = sa.create_engine(f"sqlite:///{copy}")
    try:
        with engine.connect() as connection:
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            yield table.columns.keys(), rows_of(connection, table)
    finally:
        engine.dispose()


def _insert(connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    """Insert the rows. A row may refer to a later one, so references within the table are set at the end."""
    self_references = [
        column.name for column in table.columns if any(key.column.table is table for key in column.foreign_keys)
    ]
    keys = [column.name for column in table.primary_key]
    later: list[dict[str, Any]] = []
    for batch in batched(rows, _AT_ONCE):
        documents = [dict(zip(columns, row, strict=True)) for row in batch]
        if self_references:
            later += [{f"_{name}": row[name] for name in (*keys, *self_references)} for row in documents]
            documents = [row | dict.fromkeys(self_references) for row in documents]
        connection.execute(sa.insert(table), documents)
    if later:
        one = sa.and_(*(table.c[name] == sa.bindparam(f"_{name}") for name in keys))
        connection.execute(
            sa.update(table).where(one).values({name: sa.bindparam(f"_{name}") for name in self_references}), later
        )


def _count_on(connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Continue PostgreSQL's sequences after the restored numbers."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        for column in table.primary_key:
            asked = sa.func.pg_get_serial_sequence(table.name, column.name)
            sequence = connection.execute(sa.select(asked)).scalar()
            if sequence is not None:
                most = sa.select(sa.func.coalesce(sa.func.max(column), 0) + 1).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(sequence, most, False)))


def _let_go(connection: sa.Connection) -> None:
    """End runs that waited for a queue, which SQLite lacks: their process has ended."""
    runs = sa.Table("runs", sa.MetaData(), autoload_with=connection)
    if "attempt" in runs.c:
        live = sa.update(runs).where(runs.c.status.in_(LIVE))
        connection.execute(live.values(attempt=None, beat_at=runs.c.created_at))


def _compare(manifest: Manifest, sums_by_table: Any) -> None:
    tables = sums_by_table.tables if isinstance(sums_by_table, Manifest) else sums_by_table
    wrong = sorted(name for name in {*manifest.tables, *tables} if manifest.tables.get(name) != tables.get(name))
    if wrong:
        message = (
            f"its contents differ from its manifest in {', '.join(wrong)}; nothing was restored, use another backup"
        )
        raise UnusableInput.at("FILE", message=message)


def _put(copy: Path, file: Path) -> None:
    """Move the database to its name, unless a file exists there, including an earlier log."""
    beside = [file, *(file.with_name(file.name + ending) for ending in ("-wal", "-shm", "-journal"))]
    if any(file.exists() and file.stat().st_size > 0 for file in beside):
        raise _filled(database_url(f"sqlite:///{file}"))
    file.unlink(missing_ok=True)
    try:
        os.link(copy, file)  # a link fails if a file appeared in the meantime
    except FileExistsError:
        raise _filled(database_url(f"sqlite:///{file}")) from None


def _filled(target: sa.URL) -> UnusableInput:
    message = f"{shown(target)} is not empty; a backup is restored into a database that has no tables yet"
    return UnusableInput.at(VARIABLE, message=message)
