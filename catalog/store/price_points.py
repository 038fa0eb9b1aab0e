"""Snapshots in the tables: written as changes against the previous one, read as the rows valid at a number."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.store.price_changes import CurrentPrice, Figures, Key, PriceChanges, Reading, price_changes
from gpuplan.catalog.store.schema import OPEN, instance_types, offers, prices, readings

TYPE_FIELDS = tuple(field.name for field in fields(InstanceType))

#: One offer as read: key (provider, region, zone, instance type, kind), figures, reading id, offer id.
PriceRow = tuple[str, str, str, str, str, int, float | None, bool, int, int]

_TYPE_COLUMNS = [instance_types.c[name] for name in TYPE_FIELDS]
_READING_COLUMNS = [readings.c[name] for name in Reading._fields]
_KEY_COLUMNS = [offers.c.provider, offers.c.region, offers.c.zone, offers.c.instance_type, offers.c.price_kind]
_PRICE_ROW = [*_KEY_COLUMNS, *(prices.c[name] for name in Figures._fields), prices.c.reading_id, prices.c.offer_id]


def instance_types_at(connection: sa.Connection, seq: int) -> tuple[InstanceType, ...]:
    """The instance types of snapshot number `seq`, sorted by provider and name."""
    rows = connection.execute(sa.select(*_TYPE_COLUMNS).where(_is_valid_at(instance_types, seq))).all()
    return tuple(
        sorted(
            (InstanceType(**row._mapping) for row in rows),
            key=lambda instance_type: (instance_type.provider, instance_type.name),
        )
    )


def price_rows_at(connection: sa.Connection, seq: int) -> list[PriceRow]:
    """The prices of snapshot number `seq`, sorted by key."""
    query = sa.select(*_PRICE_ROW).join_from(prices, offers).where(_is_valid_at(prices, seq))
    with connection.execute(query) as result:
        # Driver tuples: no column needs conversion, and SQLAlchemy's rows would take twice the time.
        rows: list[PriceRow] = [] if result.cursor is None else list(result.cursor.fetchall())
    rows.sort()  # keys are unique, so the sort compares nothing after them
    return rows


def readings_at(connection: sa.Connection, seq: int) -> dict[int, Reading]:
    """The readings of snapshot number `seq` by id."""
    query = sa.select(readings.c.reading_id, *_READING_COLUMNS).where(_is_valid_at(readings, seq))
    return {number: Reading(*values) for number, *values in connection.execute(query)}


def write_contents(
    connection: sa.Connection, seq: int, types: Sequence[InstanceType], new_offers: Sequence[Offer]
) -> None:
    """Write snapshot number `seq`: end the rows of number `seq - 1` that differ, and begin the new ones."""
    _write_types(connection, seq, types)
    ids = _offer_ids(connection, new_offers)
    current = {row[:5]: CurrentPrice(row[9], Figures(*row[5:8]), row[8]) for row in price_rows_at(connection, seq - 1)}
    free_id = _next_id(connection, readings.c.reading_id)
    changes = price_changes(current, readings_at(connection, seq - 1), free_id, new_offers)
    _write_changes(connection, seq, changes, ids)


def _is_valid_at(table: sa.Table, seq: int) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.last_seq >= seq, table.c.first_seq <= seq)


def _next_id(connection: sa.Connection, column: sa.Column[Any]) -> int:
    return (connection.execute(sa.select(sa.func.max(column))).scalar() or 0) + 1


def _write_types(connection: sa.Connection, seq: int, types: Iterable[InstanceType]) -> None:
    query = sa.select(instance_types.c.id, *_TYPE_COLUMNS).where(_is_valid_at(instance_types, seq - 1))
    stored = {tuple(values): number for number, *values in connection.execute(query)}
    given = dict.fromkeys(tuple(getattr(instance_type, name) for name in TYPE_FIELDS) for instance_type in types)
    _end(connection, instance_types, instance_types.c.id, seq, [stored[row] for row in stored if row not in given])
    number = _next_id(connection, instance_types.c.id)
    begun = [dict(zip(TYPE_FIELDS, row, strict=True)) for row in given if row not in stored]
    rows = [{"id": number + i, "first_seq": seq, "last_seq": OPEN, **row} for i, row in enumerate(begun)]
    _insert(connection, instance_types, rows)


def _offer_ids(connection: sa.Connection, new_offers: Iterable[Offer]) -> dict[Key, int]:
    """The id of every offer ever seen, after adding new ones."""
    ids: dict[Key, int] = {
        (provider, region, zone, name, kind): number
        for number, provider, region, zone, name, kind in connection.execute(sa.select(offers.c.id, *_KEY_COLUMNS))
    }
    unseen = [offer.key for offer in new_offers if offer.key not in ids]
    numbered = dict(zip(unseen, range(_next_id(connection, offers.c.id), OPEN), strict=False))
    names = [column.name for column in _KEY_COLUMNS]
    _insert(connection, offers, [{"id": n, **dict(zip(names, key, strict=True))} for key, n in numbered.items()])
    return ids | numbered


def _write_changes(connection: sa.Connection, seq: int, changes: PriceChanges, ids: dict[Key, int]) -> None:
    _end(connection, readings, readings.c.reading_id, seq, changes.ended_readings)
    _end(connection, prices, prices.c.offer_id, seq, changes.ended_prices)
    begun_readings = [
        {"reading_id": number, "first_seq": seq, "last_seq": OPEN, **reading._asdict()}
        for number, reading in changes.begun_readings.items()
    ]
    _insert(connection, readings, begun_readings)
    begun_prices = [
        {"offer_id": ids[key], "first_seq": seq, "last_seq": OPEN, "reading_id": number, **figures._asdict()}
        for key, figures, number in changes.begun_prices
    ]
    _insert(connection, prices, begun_prices)


def _end(connection: sa.Connection, table: sa.Table, column: sa.Column[Any], seq: int, ids: Iterable[int]) -> None:
    ended = [{"ended": number} for number in ids]
    if ended:
        which = sa.and_(column == sa.bindparam("ended"), table.c.last_seq == OPEN)
        connection.execute(sa.update(table).where(which).values(last_seq=seq - 1), ended)


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)
