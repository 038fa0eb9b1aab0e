"""Tables as they are in the database, whatever release made them: their columns, rows, and a checksum of these.

A checksum is the sum of the hashes of all rows, so that it does not depend on the order in which a database gives them,
and is the same for the same rows in either kind of database.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

#: alembic's own, which a restore makes anew.
VERSION_TABLE = "alembic_version"
_AT_ONCE = 2000
_MODULUS = 2**256


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSum:
    """How many rows a table has, and their checksum in hexadecimal."""

    rows: int
    sha256_sum: str


def tables_there(connection: sa.Connection) -> list[sa.Table]:
    """Every table of the store, those first that others refer to."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != VERSION_TABLE]


def rows_of(connection: sa.Connection, table: sa.Table) -> Iterator[Sequence[Any]]:
    """Every row, as few in memory at once as the driver can."""
    streamed = connection.execute(sa.select(table), execution_options={"yield_per": _AT_ONCE})
    yield from (tuple(row) for row in streamed)


class Summing:
    """Sums up rows as they pass."""

    def __init__(self, columns: Sequence[str]) -> None:
        """Of rows with these columns; a row counts the same in whatever order its columns stand."""
        self._order = sorted(range(len(columns)), key=lambda number: columns[number])
        self._rows, self._sum = 0, 0

    def passing(self, rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """The same rows, counted."""
        for row in rows:
            text = json.dumps([_text(row[number]) for number in self._order], ensure_ascii=False)
            self._rows += 1
            self._sum = (self._sum + int.from_bytes(hashlib.sha256(text.encode()).digest())) % _MODULUS
            yield row

    def done(self) -> TableSum:
        """The sum of all that passed."""
        return TableSum(rows=self._rows, sha256_sum=f"{self._sum:064x}")


def sums(connection: sa.Connection, tables: Sequence[sa.Table]) -> dict[str, TableSum]:
    """The sums of these tables, by name."""
    found = {}
    for table in tables:
        summing = Summing(table.columns.keys())
        for _ in summing.passing(rows_of(connection, table)):
            pass
        found[table.name] = summing.done()
    return found


def _text(value: Any) -> Any:
    """Bytes as text, and what the two kinds of database give differently alike: booleans, and whole floats."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
