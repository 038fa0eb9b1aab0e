"""What a machine shape cost over time: a point for each price, from the snapshot that brought it to the one that ended it.

A history follows the snapshots that plans rested on, each the parent of the next; so prices that a release
brought along after newer ones had been read are no part of it. Times are those at which a snapshot's newest row
was read, and never run backwards, as a clock that is set may. Where retention has dropped snapshots, a price
counts from the first kept one that has it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

import sqlalchemy as sa

from catalog.price_changes import Key
from catalog.schema import Texts, UtcMicros, offers, prices, readings, snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """One price of one offer, unchanged from `since` to `until` (None: it still holds).

    `vanished` is True where no other price followed at `until`. `source`, `observed_at`, `stale_since`,
    `modelled`, `partial` and `available` are what the last snapshot with this price says.
    """

    key: Key
    usd_micros_per_hour: int
    since: datetime
    until: datetime | None
    vanished: bool
    available: bool
    source: str
    observed_at: datetime
    stale_since: datetime | None
    modelled: tuple[str, ...]
    partial: tuple[str, ...]


class _Version(NamedTuple):
    """A reading as it stood from one snapshot number to another, in the driver's own types: few are ever shown."""

    first_seq: int
    last_seq: int
    source: Any
    observed_at: Any
    stale_since: Any
    modelled: Any
    partial: Any


class _Stretch(NamedTuple):
    """A price over the snapshots from index `first` to index `last` of the line."""

    key: Key
    usd_micros: int
    available: bool
    first: int
    last: int
    reading: _Version


class LineSnapshot(NamedTuple):
    """A snapshot as a history needs it: its number, and when its newest row was read."""

    seq: int
    observed_at: datetime


_KEY = [offers.c.provider, offers.c.region, offers.c.zone, offers.c.instance_type, offers.c.price_kind]
_VERSION = [readings.c[name] for name in _Version._fields]


def line_to(connection: sa.Connection, snapshot_id: str) -> list[LineSnapshot]:
    """The snapshot and those before it, each the parent of the next, the oldest first."""
    columns = (snapshots.c.id, snapshots.c.parent, snapshots.c.seq, snapshots.c.observed_at)
    known = {held: (parent, seq, at) for held, parent, seq, at in connection.execute(sa.select(*columns))}
    line, at = [], snapshot_id
    while at is not None:
        at, seq, observed_at = known[at]
        line.append(LineSnapshot(seq, observed_at))
    return line[::-1]


def price_points(connection: sa.Connection, line: Sequence[LineSnapshot], instance_type: str) -> list[PricePoint]:
    """Every price that offers of the instance type had in the snapshots of the line, by key and time."""
    return list(_points(list(_stretches(connection, line, instance_type)), line, connection.dialect))


def priced_types(connection: sa.Connection) -> list[str]:
    """The names of all instance types that have, or had, a price."""
    return list(connection.execute(sa.select(offers.c.instance_type).distinct()).scalars())


def _stretches(connection: sa.Connection, line: Sequence[LineSnapshot], instance_type: str) -> Iterator[_Stretch]:
    """The stored prices by key and time, those that follow one another at the same price as one."""
    seqs = [each.seq for each in line]
    pending: _Stretch | None = None
    for row in _rows(connection, seqs[-1], instance_type):
        price_first, price_last, usd_micros, available, reading_id = row[5:10]
        first, last = bisect_left(seqs, price_first), bisect_right(seqs, price_last) - 1
        if last < first:
            continue  # it held in snapshots beside the line alone
        reading = _Version(*row[10:])
        if not reading.first_seq <= seqs[last] <= reading.last_seq:
            reading = _version_at(connection, reading_id, seqs[last])
        stretch = _Stretch(row[:5], usd_micros, bool(available), first, last, reading)
        if pending is not None and _goes_on(pending, stretch):
            stretch = stretch._replace(first=pending.first)
        elif pending is not None:
            yield pending
        pending = stretch
    if pending is not None:
        yield pending


def _rows(connection: sa.Connection, newest: int, instance_type: str) -> list[Any]:
    """Prices of the type up to a snapshot number, sorted by key and time, as the driver's own tuples."""
    with connection.execute(_query(newest), {"name": instance_type}) as found:
        rows = [] if found.cursor is None else list(found.cursor.fetchall())
    rows.sort()  # key and first number are unique, so nothing past them is ever compared
    return rows


def _query(newest: int) -> sa.Select[Any]:
    """Prices of one instance type up to a snapshot number, each with its reading as it last stood."""
    end = sa.case((prices.c.last_seq > newest, newest), else_=prices.c.last_seq)
    version = readings.alias()
    latest = sa.select(sa.func.max(version.c.first_seq)).where(
        version.c.reading_id == prices.c.reading_id, version.c.first_seq <= end
    )
    same = sa.and_(readings.c.reading_id == prices.c.reading_id, readings.c.first_seq == latest.scalar_subquery())
    columns = [
        *_KEY,
        prices.c.first_seq.label("price_first"),
        prices.c.last_seq.label("price_last"),
        prices.c.usd_micros_per_hour,
        prices.c.available,
        prices.c.reading_id,
        *_VERSION,
    ]
    joined = sa.select(*columns).select_from(offers.join(prices).join(readings, same))
    return joined.where(offers.c.instance_type == sa.bindparam("name"), prices.c.first_seq <= newest)


def _version_at(connection: sa.Connection, reading_id: int, seq: int) -> _Version:
    """A reading as it stood at a snapshot number; needed where a snapshot beside the line moved it on."""
    held = sa.and_(readings.c.reading_id == reading_id, readings.c.first_seq <= seq, readings.c.last_seq >= seq)
    with connection.execute(sa.select(*_VERSION).where(held)) as found:
        if found.cursor is None:
            raise AssertionError("a query gives rows")
        return _Version(*found.cursor.fetchall()[0])


def _goes_on(before: _Stretch, after: _Stretch) -> bool:
    return (before.key, before.usd_micros, before.last + 1) == (after.key, after.usd_micros, after.first)


def _points(stretches: Sequence[_Stretch], line: Sequence[LineSnapshot], dialect: sa.Dialect) -> Iterator[PricePoint]:
    times = list(accumulate((each.observed_at for each in line), max))
    utc, texts = UtcMicros(), Texts()
    for stretch, following in zip(stretches, [*stretches[1:], None], strict=False):
        ended = stretch.last + 1 < len(line)
        replaced = following is not None and (following.key, following.first) == (stretch.key, stretch.last + 1)
        reading = stretch.reading
        observed_at = utc.process_result_value(reading.observed_at, dialect)
        if observed_at is None:
            raise AssertionError("a reading has a time")
        yield PricePoint(
            key=stretch.key,
            usd_micros_per_hour=stretch.usd_micros,
            since=times[stretch.first],
            until=times[stretch.last + 1] if ended else None,
            vanished=ended and not replaced,
            available=stretch.available,
            source=reading.source,
            observed_at=observed_at,
            stale_since=utc.process_result_value(reading.stale_since, dialect),
            modelled=texts.process_result_value(reading.modelled, dialect) or (),
            partial=texts.process_result_value(reading.partial, dialect) or (),
        )
