"""Snapshots in the tables: written as changes against the previous one, read as the rows valid at a number.

The row changes from one snapshot to the next: rows to end and rows to begin.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.store.schema import OPEN, instance_types, offers, prices, readings

Key = tuple[str, str, str, str, str]


class Figures(NamedTuple):
    """The figures of one offer: price in micro-dollars per node-hour, and interruption risk."""

    usd_micros_per_hour: int
    interruptions_per_hour: float | None
    available: bool


class Reading(NamedTuple):
    """The fields shared by offers of one place that were read together: source, time, missing parts."""

    provider: str
    region: str
    source: str
    modelled: tuple[str, ...]
    partial: tuple[str, ...]
    observed_at: datetime
    observed_approximately: bool
    stale_since: datetime | None


class CurrentPrice(NamedTuple):
    """A price that is valid in the latest snapshot."""

    offer_id: int
    figures: Figures
    reading_id: int


@dataclass(slots=True, kw_only=True)
class PriceChanges:
    """Rows to end (by offer and reading id) and to begin; an updated reading is in both.

    `begun_prices` identifies the offer by key, since it may not have had a price before.
    """

    ended_prices: list[int] = field(default_factory=list)
    begun_prices: list[tuple[Key, Figures, int]] = field(default_factory=list)
    ended_readings: list[int] = field(default_factory=list)
    begun_readings: dict[int, Reading] = field(default_factory=dict)


def figures_of(offer: Offer) -> Figures:
    """The offer's own figures."""
    return Figures(offer.usd_micros_per_hour, offer.interruptions_per_hour, offer.available)


def reading_of(offer: Offer) -> Reading:
    """The fields that the offer shares with others."""
    return Reading(
        offer.provider,
        offer.region,
        offer.source,
        offer.modelled,
        offer.partial,
        offer.observed_at,
        offer.observed_approximately,
        offer.stale_since,
    )


def price_changes(
    current: Mapping[Key, CurrentPrice], readings: Mapping[int, Reading], first_free_id: int, offers: Iterable[Offer]
) -> PriceChanges:
    """The changes that turn the current prices and readings into `offers`.

    A reading updates to the value of most of its unchanged offers; only the other offers are rewritten. New readings are
    numbered from `first_free_id`.
    """
    given = {offer.key: (figures_of(offer), reading_of(offer)) for offer in offers}
    moved = _moved_readings(current, given)
    changes = PriceChanges(
        ended_prices=[price.offer_id for key, price in current.items() if key not in given],
        ended_readings=[number for number, reading in readings.items() if moved.get(number) != reading],
        begun_readings={number: reading for number, reading in moved.items() if readings[number] != reading},
    )
    numbers = {reading: number for number, reading in sorted(moved.items(), reverse=True)}
    for key, (figures, reading) in given.items():
        price = current.get(key)
        if price is not None:
            if price.figures == figures and moved[price.reading_id] == reading:
                continue
            changes.ended_prices.append(price.offer_id)
        if reading not in numbers:
            numbers[reading] = first_free_id
            changes.begun_readings[first_free_id] = reading
            first_free_id += 1
        changes.begun_prices.append((key, figures, numbers[reading]))
    return changes


def _moved_readings(
    current: Mapping[Key, CurrentPrice], given: Mapping[Key, tuple[Figures, Reading]]
) -> dict[int, Reading]:
    votes: defaultdict[int, Counter[Reading]] = defaultdict(Counter)
    for key, (figures, reading) in given.items():
        price = current.get(key)
        if price is not None and price.figures == figures:
            votes[price.reading_id][reading] += 1
    return {number: vote.most_common(1)[0][0] for number, vote in votes.items()}


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
