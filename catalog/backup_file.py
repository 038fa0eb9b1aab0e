"""A backup as a file: a zip archive of a manifest and the contents, so that any tool can look inside.

`manifest.json` says the format, when it was taken, at which revision the tables were, and for every table how many rows
it has and a checksum of them. The contents are `database.sqlite3`, a whole SQLite database, or `tables/NAME.jsonl`, a
line of column names and then one line of values per row.
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

from catalog.errors import UnusableInput
from catalog.table_rows import TableSum

FORMAT = 1
MANIFEST, DATABASE = "manifest.json", "database.sqlite3"
#: More than any manifest has; one that claims more is none of ours.
_MOST_MANIFEST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says of itself; `taken_at` is ISO 8601, `tables` the sums by name."""

    format: int
    taken_at: str
    revision: str
    tables: Mapping[str, TableSum]


@contextmanager
def new_backup(path: Path) -> Iterator[zipfile.ZipFile]:
    """A new archive, which is there under its name once it is whole. Raises `UnusableInput` at FILE for one that exists."""
    if path.exists():
        raise UnusableInput.at("FILE", message=f"{str(path)!r} exists already; name a new file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            partial.chmod(0o600)  # keys are in it as hashes, and all that was planned
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
                yield archive
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_manifest(archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Adds the manifest."""
    said = asdict(manifest) | {"tables": {name: asdict(each) for name, each in manifest.tables.items()}}
    archive.writestr(MANIFEST, json.dumps(said, indent=2))


@contextmanager
def opened_backup(path: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """An archive to read, with its manifest. Raises `UnusableInput` at FILE for what is no backup of ours, or damaged."""
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
    said = json.loads(archive.read(MANIFEST))
    if not isinstance(said, dict) or not isinstance(said["tables"], dict):
        raise ValueError("no manifest")
    if said["format"] != FORMAT:
        message = f"its format {said['format']!r} is none that this gpuplan reads; accepted: {FORMAT}"
        raise UnusableInput.at("FILE", message=message)
    tables = {name: TableSum(rows=each["rows"], sha256_sum=each["sha256_sum"]) for name, each in said["tables"].items()}
    return Manifest(format=FORMAT, taken_at=str(said["taken_at"]), revision=str(said["revision"]), tables=tables)


def write_rows(archive: zipfile.ZipFile, table: str, columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    """Adds the rows of a table."""
    with archive.open(f"tables/{table}.jsonl", "w", force_zip64=True) as file:
        file.write(_line(columns))
        for row in rows:
            file.write(_line(row))


@contextmanager
def kept_rows(archive: zipfile.ZipFile, table: str) -> Iterator[tuple[list[str], Iterator[list[Any]]]]:
    """The column names of a table, and its rows. Raises `ValueError` for what is no such line."""
    with archive.open(f"tables/{table}.jsonl") as file:
        columns = [str(each) for each in json.loads(file.readline())]
        yield columns, ([_value(each) for each in json.loads(line)] for line in file)


def _line(values: Sequence[Any]) -> bytes:
    return json.dumps([_said(each) for each in values], ensure_ascii=False).encode() + b"\n"


def _said(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _value(said: Any) -> Any:
    return base64.b64decode(said["base64"]) if isinstance(said, dict) else said
