"""What a machine shape cost over time: a point for each price, from the snapshot that brought it to the one that ended it.

A history follows the snapshots that plans rested on, each the parent of the next; so prices that a release
brought along after newer ones had been read are no part of it. Times are those at which a snapshot's newest row
was read, and never run backwards, as a clock that is set may. Where retention has dropped snapshots, a price
counts from the first kept one that has it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

import sqlalchemy as sa

from catalog.price_changes import Key
from catalog.schema import offers, prices, readings
from catalog.snapshot_list import StoredSnapshot


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
    """A reading as it stood from one snapshot number to another."""

    first_seq: int
    last_seq: int
    source: str
    observed_at: datetime
    stale_since: datetime | None
    modelled: tuple[str, ...]
    partial: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A price over the snapshots from index `first` to index `last` of the line."""

    key: Key
    usd_micros: int
    available: bool
    first: int
    last: int
    reading: _Version


_KEY = [offers.c.provider, offers.c.region, offers.c.zone, offers.c.instance_type, offers.c.price_kind]
_VERSION = [readings.c[name] for name in _Version._fields]


def line_of(snapshots: Sequence[StoredSnapshot], snapshot_id: str) -> list[StoredSnapshot]:
    """The snapshot and those before it, each the parent of the next, the oldest first."""
    known = {each.id: each for each in snapshots}
    line = [known[snapshot_id]]
    while line[-1].parent is not None:
        line.append(known[line[-1].parent])
    return line[::-1]


def price_points(connection: sa.Connection, line: Sequence[StoredSnapshot], instance_type: str) -> list[PricePoint]:
    """Every price that offers of the instance type had in the snapshots of the line, by key and time."""
    return list(_points(list(_stretches(connection, line, instance_type)), line))


def priced_types(connection: sa.Connection) -> list[str]:
    """The names of all instance types that have, or had, a price."""
    return list(connection.execute(sa.select(offers.c.instance_type).distinct()).scalars())


def _stretches(connection: sa.Connection, line: Sequence[StoredSnapshot], instance_type: str) -> Iterator[_Stretch]:
    """The stored prices by key and time, those that follow one another at the same price as one."""
    seqs = [each.seq for each in line]
    found = connection.execute(_query(seqs[-1]), {"name": instance_type}).all()
    pending: _Stretch | None = None
    for row in sorted(found, key=lambda each: each[:6]):
        first, last = bisect_left(seqs, row.price_first), bisect_right(seqs, row.price_last) - 1
        if last < first:
            continue  # it held in snapshots beside the line alone
        reading = _Version(*row[-len(_Version._fields) :])
        if not reading.first_seq <= seqs[last] <= reading.last_seq:
            reading = _version_at(connection, row.reading_id, seqs[last])
        stretch = _Stretch(
            key=tuple(row[:5]),
            usd_micros=row.usd_micros_per_hour,
            available=row.available,
            first=first,
            last=last,
            reading=reading,
        )
        if pending is not None and _goes_on(pending, stretch):
            stretch = replace(stretch, first=pending.first)
        elif pending is not None:
            yield pending
        pending = stretch
    if pending is not None:
        yield pending


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
    return _Version(*connection.execute(sa.select(*_VERSION).where(held)).one())


def _goes_on(before: _Stretch, after: _Stretch) -> bool:
    return (before.key, before.usd_micros, before.last + 1) == (after.key, after.usd_micros, after.first)


def _points(stretches: Sequence[_Stretch], line: Sequence[StoredSnapshot]) -> Iterator[PricePoint]:
    times = list(accumulate((each.observed_at for each in line), max))
    for stretch, following in zip(stretches, [*stretches[1:], None], strict=False):
        ended = stretch.last + 1 < len(line)
        replaced = following is not None and (following.key, following.first) == (stretch.key, stretch.last + 1)
        reading = stretch.reading
        yield PricePoint(
            key=stretch.key,
            usd_micros_per_hour=stretch.usd_micros,
            since=times[stretch.first],
            until=times[stretch.last + 1] if ended else None,
            vanished=ended and not replaced,
            available=stretch.available,
            source=reading.source,
            observed_at=reading.observed_at,
            stale_since=reading.stale_since,
            modelled=reading.modelled,
            partial=reading.partial,
        )
