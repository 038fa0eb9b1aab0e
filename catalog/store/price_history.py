"""Price history of an instance type: one point per price, with the times at which it was observed.

A point lasts from the snapshot that introduced a price to the one that ended it. A history follows the chain of snapshots
that plans used, each the parent of the next, so it omits embedded prices of a release that arrived after newer ones had
been read. Times are those at which a snapshot's newest row was read, and never run backwards, even if a clock was set back.
Where retention has dropped snapshots, a price counts from the first remaining one that has it. A snapshot also holds prices
that were last observed before it, hence the separate observation times.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from gpuplan.catalog.store.price_points import Key
from gpuplan.catalog.store.schema import Texts, UtcMicros, offers, prices, readings, snapshots


class Observation(NamedTuple):
    """A time at which a source stated an offer's price.

    `joined` is True if the offer was confirmed continuously since the previous observation: no refresh in between failed to
    confirm it, and it had not vanished.
    """

    at: datetime
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """One price of one offer, unchanged from `since` to `until` (None: still valid).

    `vanished` is True if no other price followed at `until`. `source`, `observed_at`, `stale_since`, `modelled`, `partial`
    and `available` are from the last snapshot with this price. `observations` are the times at which a source stated this
    price, in order.
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
    observations: tuple[Observation, ...]


class _Version(NamedTuple):
    """A reading between two snapshot numbers, in the driver's types, since few are displayed."""

    first_seq: int
    last_seq: int
    source: Any
    observed_at: Any
    stale_since: Any
    modelled: Any
    partial: Any


class _Read(NamedTuple):
    """The reading's values from index `first` to index `last` of the chain, in the driver's types."""

    first: int
    last: int
    observed_at: Any
    is_stale: bool


class _Stretch(NamedTuple):
    """A price over the snapshots from index `first` to index `last` of the chain, and its readings."""

    key: Key
    usd_micros: int
    available: bool
    first: int
    last: int
    reading: _Version
    read: list[_Read]


class LineSnapshot(NamedTuple):
    """A snapshot for a history: its number, and when its newest row was read."""

    seq: int
    observed_at: datetime


_KEY = [offers.c.provider, offers.c.region, offers.c.zone, offers.c.instance_type, offers.c.price_kind]
_VERSION = [readings.c[name] for name in _Version._fields]


def line_to(connection: sa.Connection, snapshot_id: str) -> list[LineSnapshot]:
    """The chain of parents that ends in the snapshot, oldest first."""
    columns = (snapshots.c.id, snapshots.c.parent, snapshots.c.seq, snapshots.c.observed_at)
    known = {known: (parent, seq, at) for known, parent, seq, at in connection.execute(sa.select(*columns))}
    line, at = [], snapshot_id
    while at is not None:
        at, seq, observed_at = known[at]
        line.append(LineSnapshot(seq, observed_at))
    return line[::-1]


def price_points(connection: sa.Connection, line: Sequence[LineSnapshot], instance_type: str) -> list[PricePoint]:
    """Every price of the instance type's offers in the chain's snapshots, by key and time."""
    rows = _rows(connection, _query(line[-1].seq, offers.c.instance_type == sa.bindparam("name")), name=instance_type)
    return list(_points(list(_stretches(connection, line, rows)), line, connection.dialect))


def price_points_of(connection: sa.Connection, line: Sequence[LineSnapshot], keys: Collection[Key]) -> list[PricePoint]:
    """Every price of these offers in the chain's snapshots, by key and time."""
    # The index is that of the instance type; databases do not use one for tuples.
    which = sa.and_(offers.c.instance_type.in_({key[3] for key in keys}), sa.tuple_(*_KEY).in_(list(keys)))
    rows = _rows(connection, _query(line[-1].seq, which))
    return list(_points(list(_stretches(connection, line, rows)), line, connection.dialect))


def priced_types(connection: sa.Connection) -> list[str]:
    """The names of all instance types that have or had a price."""
    return list(connection.execute(sa.select(offers.c.instance_type).distinct()).scalars())


def _stretches(connection: sa.Connection, line: Sequence[LineSnapshot], rows: list[Any]) -> Iterator[_Stretch]:
    """The stored prices of `_rows` by key and time, with consecutive equal prices merged."""
    seqs = [line_snapshot.seq for line_snapshot in line]
    pending: _Stretch | None = None
    read = _read(connection, seqs, {row[9] for row in rows})
    for row in rows:
        price_first, price_last, usd_micros, available, reading_id = row[5:10]
        first, last = bisect_left(seqs, price_first), bisect_right(seqs, price_last) - 1
        if last < first:
            continue  # it was valid only in snapshots outside the chain
        reading = _Version(*row[10:])
        if not reading.first_seq <= seqs[last] <= reading.last_seq:
            reading = _version_at(connection, reading_id, seqs[last])
        stretch = _Stretch(
            row[:5], usd_micros, bool(available), first, last, reading, _within(read[reading_id], first, last)
        )
        if pending is not None and _goes_on(pending, stretch):
            stretch = stretch._replace(first=pending.first, read=pending.read + stretch.read)
        elif pending is not None:
            yield pending
        pending = stretch
    if pending is not None:
        yield pending


def _rows(connection: sa.Connection, query: sa.Select[Any], **given: str) -> list[Any]:
    """The rows of `_query`, sorted by key and time, as driver tuples."""
    with connection.execute(query, given) as result:
        rows = [] if result.cursor is None else list(result.cursor.fetchall())
    rows.sort()  # key and first number are unique, so the sort compares nothing after them
    return rows


def _query(newest: int, which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Prices of the offers that match up to a snapshot number, each with the latest version of its reading."""
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
    return joined.where(which, prices.c.first_seq <= newest)


def _read(connection: sa.Connection, seqs: Sequence[int], reading_ids: Collection[int]) -> dict[int, list[_Read]]:
    """The values of these readings along the chain, by reading and time."""
    columns = [readings.c[name] for name in ("reading_id", "first_seq", "last_seq", "observed_at", "stale_since")]
    which = sa.and_(readings.c.reading_id.in_(reading_ids), readings.c.first_seq <= seqs[-1])
    with connection.execute(sa.select(*columns).where(which)) as result:
        rows = [] if result.cursor is None else sorted(map(tuple, result.cursor.fetchall()), key=itemgetter(0, 1))
    made: defaultdict[int, list[_Read]] = defaultdict(list)
    for reading_id, first_seq, last_seq, observed_at, stale_since in rows:
        first, last = bisect_left(seqs, first_seq), bisect_right(seqs, last_seq) - 1
        if first <= last:
            made[reading_id].append(_Read(first, last, observed_at, stale_since is not None))
    return made


def _within(read: list[_Read], first: int, last: int) -> list[_Read]:
    """The versions of a reading that overlap the snapshots from index `first` to index `last`."""
    begin = bisect_left(read, first, key=attrgetter("last"))
    end = bisect_right(read, last, key=attrgetter("first"))
    return read[begin:end]


def _version_at(connection: sa.Connection, reading_id: int, seq: int) -> _Version:
    """A reading at a snapshot number; needed if a snapshot outside the chain updated it."""
    is_current = sa.and_(readings.c.reading_id == reading_id, readings.c.first_seq <= seq, readings.c.last_seq >= seq)
    with connection.execute(sa.select(*_VERSION).where(is_current)) as result:
        if result.cursor is None:
            raise AssertionError("a query gives rows")
        return _Version(*result.cursor.fetchall()[0])


def _goes_on(before: _Stretch, after: _Stretch) -> bool:
    return (before.key, before.usd_micros, before.last + 1) == (after.key, after.usd_micros, after.first)


def _points(stretches: Sequence[_Stretch], line: Sequence[LineSnapshot], dialect: sa.Dialect) -> Iterator[PricePoint]:
    times = list(accumulate((line_snapshot.observed_at for line_snapshot in line), max))
    utc, texts = UtcMicros(), Texts()
    at = cache(partial(utc.process_result_value, dialect=dialect))
    before: _Stretch | None = None
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
            observations=tuple(_observations(before, stretch, at)),
        )
        before = stretch


def _observations(
    before: _Stretch | None, stretch: _Stretch, at: Callable[[Any], datetime | None]
) -> Iterator[Observation]:
    """The observation times of a stretch; a stale reading keeps the time of its last confirmation."""
    follows = before is not None and (before.key, before.last + 1) == (stretch.key, stretch.first)
    joined = follows and before is not None and not before.read[-1].is_stale
    last: Any = None
    for observed_at in stretch.read:
        if observed_at.observed_at != last:
            when = at(observed_at.observed_at)
            if when is None:
                raise AssertionError("a reading has a time")
            yield Observation(when, joined)
            last, joined = observed_at.observed_at, True
        joined = joined and not observed_at.is_stale


#: The groups of changed offers.
GROUPS = ("dearer", "cheaper", "new", "gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChanges:
    """How many offers of each of the `GROUPS` a snapshot has against the one that it followed."""

    snapshot_id: str
    before: str
    observed_at: datetime
    counts: dict[str, int]


def change_counts(connection: sa.Connection, snapshot_id: str, most: int) -> list[SnapshotChanges]:
    """The changes of the `most` last snapshots of the chain that ends in this one, oldest first.

    They are those of a diff with the snapshot before; a change of availability only belongs to no group.
    """
    seqs = [one.seq for one in line_to(connection, snapshot_id)[-most - 1 :]]
    table = prices.c
    asked = sa.select(table.offer_id, table.first_seq, table.last_seq, table.usd_micros_per_hour)
    which = sa.and_(table.last_seq >= seqs[0], table.first_seq <= seqs[-1])
    rows = connection.execute(asked.where(which).order_by(table.offer_id, table.first_seq))
    counts = [Counter[str]() for _ in seqs]
    before: tuple[int, int, int] | None = None
    for offer, first_seq, last_seq, usd in rows:
        first, last = bisect_left(seqs, first_seq), bisect_right(seqs, last_seq) - 1
        if last < first:
            continue  # it was valid only in snapshots outside the chain
        follows = before is not None and before[:2] == (offer, first - 1)
        if before is not None and not follows:
            _gone(counts, before[1])
        if follows and before is not None and usd != before[2]:
            counts[first]["dearer" if usd > before[2] else "cheaper"] += 1
        elif not follows and first:
            counts[first]["new"] += 1
        before = (offer, last, usd)
    if before is not None:
        _gone(counts, before[1])
    return _named(connection, seqs, counts)


def _gone(counts: Sequence[Counter[str]], last: int) -> None:
    """An offer ended at the snapshot after the `last` that has it, if there is one."""
    if last + 1 < len(counts):
        counts[last + 1]["gone"] += 1


def _named(connection: sa.Connection, seqs: Sequence[int], counts: Sequence[Counter[str]]) -> list[SnapshotChanges]:
    columns = (snapshots.c.seq, snapshots.c.id, snapshots.c.observed_at)
    known = {seq: (name, at) for seq, name, at in connection.execute(sa.select(*columns))}
    return [
        SnapshotChanges(
            snapshot_id=known[seq][0],
            before=known[previous][0],
            observed_at=known[seq][1],
            counts={group: count[group] for group in GROUPS},
        )
        for previous, seq, count in zip(seqs, seqs[1:], counts[1:], strict=False)
    ]
