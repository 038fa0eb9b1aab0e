"""The format of a backup: a zip archive of a manifest and the contents, readable by any tool.

`manifest.json` holds the format, the time of the backup, the schema revision, and for every table its number of rows and
their checksum. The contents are `database.sqlite3`, a whole SQLite database, or `tables/NAME.jsonl`: a line of column
names, then one line of values per row.

Tables as the database has them, regardless of the release: columns, rows, and checksums.

A checksum is the sum of the hashes of all rows, so it does not depend on their order, and equal rows give equal checksums
in both kinds of database.
"""

import base64
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput

#: Alembic's own table, which a restore recreates.
VERSION_TABLE = "alembic_version"
_AT_ONCE = 2000
_MODULUS = 2**256


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSum:
    """The number of rows of a table, and their hexadecimal checksum."""

    rows: int
    sha256_sum: str


def existing_tables(connection: sa.Connection) -> list[sa.Table]:
    """Every table of the store, referenced tables first."""
    metadata = sa.MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != VERSION_TABLE]


def rows_of(connection: sa.Connection, table: sa.Table) -> Iterator[Sequence[Any]]:
    """Every row, with as few in memory as the driver allows."""
    streamed = connection.execute(sa.select(table), execution_options={"yield_per": _AT_ONCE})
    yield from (tuple(row) for row in streamed)


class Summing:
    """Sums rows in passing."""

    def __init__(self, columns: Sequence[str]) -> None:
        """For rows with these columns; the order of columns does not matter."""
        self._order = sorted(range(len(columns)), key=lambda number: columns[number])
        self._rows, self._sum = 0, 0

    def passing(self, rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """Yields the same rows while summing them."""
        for row in rows:
            text = json.dumps([_text(row[number]) for number in self._order], ensure_ascii=False)
            self._rows += 1
            self._sum = (self._sum + int.from_bytes(hashlib.sha256(text.encode()).digest())) % _MODULUS
            yield row

    def done(self) -> TableSum:
        """The sum of all passed rows."""
        return TableSum(rows=self._rows, sha256_sum=f"{self._sum:064x}")


def sums(connection: sa.Connection, tables: Sequence[sa.Table]) -> dict[str, TableSum]:
    """The sums of these tables, by name."""
    sums_by_table = {}
    for table in tables:
        summing = Summing(table.columns.keys())
        for _ in summing.passing(rows_of(connection, table)):
            pass
        sums_by_table[table.name] = summing.done()
    return sums_by_table


def _text(value: Any) -> Any:
    """Text from bytes, with booleans and whole floats normalised, which the two databases return differently."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


FORMAT = 1
MANIFEST, DATABASE = "manifest.json", "database.sqlite3"
#: Larger than any valid manifest; a larger one is rejected.
_MOST_MANIFEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of a backup; `taken_at` is ISO 8601, `tables` the sums by name."""

    format: int
    taken_at: str
    revision: str
    tables: Mapping[str, TableSum]


@contextmanager
def new_backup(path: Path) -> Iterator[zipfile.ZipFile]:
    """A new archive, which appears under its name once complete. Raises `UnusableInput` at FILE for one that exists."""
    if path.exists():
        raise UnusableInput.at("FILE", message=f"{str(path)!r} exists already; name a new file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            partial.chmod(0o600)  # it holds hashes of keys and all plans
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
                yield archive
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_manifest(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Add the manifest."""
    document = asdict(manifest) | {"tables": {name: asdict(table) for name, table in manifest.tables.items()}}
    archive.writestr(MANIFEST, json.dumps(document, indent=2))


@contextmanager
def open_backup(path: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """An archive to read, with its manifest. Raises `UnusableInput` at FILE if it is damaged or not a backup."""
    if not path.is_file():
        raise UnusableInput.at("FILE", message=f"there is no file {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive, _manifest(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        message = f"{str(path)!r} is no backup of gpuplan, or damaged; accepted: what `gpuplan db backup` has written"
        raise UnusableInput.at("FILE", message=message) from error


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST_BYTES:
        raise ValueError("too large a manifest")
    document = json.loads(archive.read(MANIFEST))
    if not isinstance(document, dict) or not isinstance(document["tables"], dict):
        raise ValueError("no manifest")
    if document["format"] != FORMAT:
        message = f"its format {document['format']!r} is none that this gpuplan reads; accepted: {FORMAT}"
        raise UnusableInput.at("FILE", message=message)
    tables = {
        name: TableSum(rows=sums["rows"], sha256_sum=sums["sha256_sum"]) for name, sums in document["tables"].items()
    }
    return Manifest(
        format=FORMAT, taken_at=str(document["taken_at"]), revision=str(document["revision"]), tables=tables
    )


def write_rows(archive: zipfile.ZipFile, table: str, columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    """Add the rows of a table."""
    with archive.open(f"tables/{table}.jsonl", "w", force_zip64=True) as file:
        file.write(_line(columns))
        for row in rows:
            file.write(_line(row))


@contextmanager
def backed_up_rows(archive: zipfile.ZipFile, table: str) -> Iterator[tuple[list[str], Iterator[list[Any]]]]:
    """The column names of a table, and its rows. Raises `ValueError` for a malformed line."""
    with archive.open(f"tables/{table}.jsonl") as file:
        columns = [str(load) for load in json.loads(file.readline())]
        yield columns, ([_value(load) for load in json.loads(line)] for line in file)


def _line(values: Sequence[Any]) -> bytes:
    return json.dumps([_as_json_value(value) for value in values], ensure_ascii=False).encode() + b"\n"


def _as_json_value(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _value(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value
