"""Frequent SQL statements, compiled once: recompiling takes half the time of a statement in SQLAlchemy.

On SQLite they go directly to the driver. On PostgreSQL, where the round trip dominates, they go through SQLAlchemy, which
classifies driver errors and detects lost connections.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import sqlalchemy as sa


class Rows(Protocol):
    """The common interface of a driver's cursor and SQLAlchemy's result."""

    def fetchall(self) -> Sequence[Any]:
        """All remaining rows."""

    def fetchone(self) -> Any:
        """The next row, or None after the last."""

    @property
    def rowcount(self) -> int:
        """The number of written rows."""


def execute_text(connection: sa.Connection, text: str, parameters: Any = ()) -> Rows:
    """Execute a statement in the driver's SQL and parameters; begins the transaction if needed."""
    if connection.dialect.name == "sqlite":
        if not connection.in_transaction():
            connection.begin()
        rows: Rows = connection.connection.cursor().execute(text, parameters)
        return rows
    return connection.exec_driver_sql(text, parameters)


class CompiledInsert:
    """An insert of whole rows into one table, with its conflict clause."""

    def __init__(self, statement: Any, columns: Sequence[str], dialect: sa.Dialect) -> None:
        """Compile for rows with a value for each of these columns."""
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
        """Insert one row, whose values have the columns' types. Raises their conversion errors."""
        values = {**row, **{name: stored(row[name]) for name, stored in self._stored.items()}}
        return execute_text(
            connection, self._text, values if self._by_place is None else [values[place] for place in self._by_place]
        )


@lru_cache(maxsize=64)
def compiled_insert(
    make: Callable[[sa.Table, str], Any], table: sa.Table, columns: tuple[str, ...], dialect: sa.Dialect
) -> CompiledInsert:
    """The statement that `make` builds for the table and dialect (by name), cached; each engine has its own dialect."""
    return CompiledInsert(make(table, dialect.name), columns, dialect)
