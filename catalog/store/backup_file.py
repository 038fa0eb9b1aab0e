"""The format of a backup: a zip archive of a manifest and the contents, readable by any tool.

`manifest.json` holds the format, the time of the backup, the schema revision, and for every table its number of rows and
their checksum. The contents are `database.sqlite3`, a whole SQLite database, or `tables/NAME.jsonl`: a line of column
names, then one line of values per row.
"""

import base64
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.table_rows import TableSum

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
