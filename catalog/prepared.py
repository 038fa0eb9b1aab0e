"""Statements of every plan, compiled once: half of what one takes through SQLAlchemy is finding out again how it reads.

On SQLite they go to the driver itself. On PostgreSQL, where the way to the server takes longer than all of this, they
go through SQLAlchemy, which names the failures of its driver and notices lost connections.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import sqlalchemy as sa


class Rows(Protocol):
    """What a driver's cursor and SQLAlchemy's result have in common."""

    def fetchall(self) -> Sequence[Any]:
        """Every row that is left."""

    def fetchone(self) -> Any:
        """The next row, None after the last."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""


def straight(connection: sa.Connection, text: str, parameters: Any = ()) -> Rows:
    """What a statement gives, in the words and with the parameters of the driver; begins the transaction if need be."""
    if connection.dialect.name == "sqlite":
        if not connection.in_transaction():
            connection.begin()
        found: Rows = connection.connection.cursor().execute(text, parameters)
        return found
    return connection.exec_driver_sql(text, parameters)


class PreparedInsert:
    """An insert of whole rows into one table, with what it does about a row that is there."""

    def __init__(self, statement: Any, columns: Sequence[str], dialect: sa.Dialect) -> None:
        """For rows that have a value for each of these columns."""
        compiled = statement.compile(dialect=dialect, column_keys=list(columns))
        self._text = str(compiled)
        self._by_place: list[str] | None = compiled.positiontup
        table: sa.Table = statement.table
        self._stored: dict[str, Callable[[Any], Any]] = {
            name: stored
            for name in columns
            if (stored := table.c[name].type.dialect_impl(dialect).bind_processor(dialect)) is not None
        }

    def execute(self, connection: sa.Connection, row: Mapping[str, Any]) -> Rows:
        """Insert one row, whose values are those of the columns' types. Raises what these raise for others."""
        values = {**row, **{name: stored(row[name]) for name, stored in self._stored.items()}}
        return straight(
            connection, self._text, values if self._by_place is None else [values[each] for each in self._by_place]
        )


@lru_cache(maxsize=64)
def prepared_insert(
    make: Callable[[sa.Table, str], Any], table: sa.Table, columns: tuple[str, ...], dialect: sa.Dialect
) -> PreparedInsert:
    """What `make` makes of the table for this dialect (by its name), prepared once; each engine has a dialect of its own."""
    return PreparedInsert(make(table, dialect.name), columns, dialect)
