"""Tables as the database has them, regardless of the release: columns, rows, and checksums.

A checksum is the sum of the hashes of all rows, so it does not depend on their order, and equal rows give equal checksums
in both kinds of database.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

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
