"""Differences between two snapshots: new, vanished, repriced, available and stale offers.

`offer_changes` and `type_changes` are pure; `stored_diff` feeds them only the rows that differ, about a hundredth of two
whole snapshots.

Cache of snapshot diffs, which never change because snapshots are immutable.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from cachetools import LRUCache, cached

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.snapshot import Snapshot
from gpuplan.catalog.store.price_points import Key, instance_types_at
from gpuplan.catalog.store.schema import offers, prices, readings

_TYPE_FIELDS = tuple(field.name for field in fields(InstanceType))


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferState:
    """The state of an offer in a snapshot: price, availability, and since when no refresh has confirmed it.

    `stale_since` is None for a fresh one.
    """

    usd_micros_per_hour: int
    available: bool
    stale_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferChange:
    """An offer that differs between two snapshots; None for a snapshot that lacks it."""

    key: Key
    before: OfferState | None
    after: OfferState | None

    @property
    def what(self) -> tuple[str, ...]:
        """The words of `WORDS` that apply: one for an offer that came or went, else one to three."""
        if self.before is None:
            return ("new",)
        if self.after is None:
            return ("vanished",)
        words = []
        if self.before.usd_micros_per_hour != self.after.usd_micros_per_hour:
            words.append("changed")
        if self.before.available != self.after.available:
            words.append("available_again" if self.after.available else "became_unavailable")
        if (self.before.stale_since is None) != (self.after.stale_since is None):
            words.append("fresh_again" if self.after.stale_since is None else "became_stale")
        return tuple(words)

    @property
    def share(self) -> float | None:
        """The relative change of the price (0.1: 10 % dearer), or None if it is undefined."""
        if self.before is None or self.after is None or not self.before.usd_micros_per_hour:
            return None
        return self.after.usd_micros_per_hour / self.before.usd_micros_per_hour - 1

    @property
    def size(self) -> float:
        """Size of the price move; halving counts as much as doubling."""
        if self.before is None or self.after is None:
            return 0.0
        old, new = self.before.usd_micros_per_hour, self.after.usd_micros_per_hour
        return abs(math.log(new / old)) if old and new else math.inf * (old != new)


#: The kinds of change, as counted and displayed.
WORDS = ("new", "vanished", "changed", "became_unavailable", "available_again", "became_stale", "fresh_again")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """An instance type that came, went, or changed; None for a snapshot that lacks it."""

    provider: str
    name: str
    before: InstanceType | None
    after: InstanceType | None

    @property
    def fields(self) -> dict[str, tuple[object, object]]:
        """The changed fields, as (old, new); empty for a type that came or went."""
        if self.before is None or self.after is None:
            return {}
        pairs = {name: (getattr(self.before, name), getattr(self.after, name)) for name in _TYPE_FIELDS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """All changes: offers by size of the price move, instance types by provider and name."""

    offers: tuple[OfferChange, ...]
    instance_types: tuple[TypeChange, ...]

    def counts(self) -> dict[str, dict[str, int]]:
        """The number of offers per provider and kind of change; omits providers without changes."""
        counter = Counter((change.key[0], word) for change in self.offers for word in change.what)
        providers = sorted({provider for provider, _ in counter})
        return {provider: {word: counter[provider, word] for word in WORDS} for provider in providers}


def snapshot_diff(before: Snapshot, after: Snapshot) -> SnapshotDiff:
    """The changes from one snapshot to `after`."""
    return SnapshotDiff(
        offers=offer_changes(_seen(before.offers), _seen(after.offers)),
        instance_types=type_changes(before.instance_types, after.instance_types),
    )


def offer_changes(before: Mapping[Key, OfferState], after: Mapping[Key, OfferState]) -> tuple[OfferChange, ...]:
    """The offers that differ, largest price move first, then by key. Callers may leave out offers that neither has."""
    changes = [
        OfferChange(key=key, before=before.get(key), after=after.get(key)) for key in before.keys() | after.keys()
    ]
    return tuple(sorted((change for change in changes if change.what), key=lambda change: (-change.size, change.key)))


def type_changes(before: Iterable[InstanceType], after: Iterable[InstanceType]) -> tuple[TypeChange, ...]:
    """The instance types that differ, by provider and name."""
    old, new = (
        {(instance_type.provider, instance_type.name): instance_type for instance_type in types}
        for types in (before, after)
    )
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return tuple(TypeChange(provider=key[0], name=key[1], before=old.get(key), after=new.get(key)) for key in keys)


def stored_diff(connection: sa.Connection, before: int, after: int) -> SnapshotDiff:
    """The changes from snapshot number `before` to `after`; either may be older."""
    old, new = _differing(connection, before, after)
    types = (instance_types_at(connection, seq) for seq in (before, after))
    return SnapshotDiff(offers=offer_changes(old, new), instance_types=type_changes(*types))


def _seen(rows: Iterable[Offer]) -> dict[Key, OfferState]:
    return {
        row.key: OfferState(
            usd_micros_per_hour=row.usd_micros_per_hour, available=row.available, stale_since=row.stale_since
        )
        for row in rows
    }


def _differing(
    connection: sa.Connection, before: int, after: int
) -> tuple[dict[Key, OfferState], dict[Key, OfferState]]:
    """The states in each snapshot of the offers whose stored figures or staleness differ."""
    stale = {seq: _stale(connection, seq) for seq in (before, after)}
    moved = [
        number
        for number in stale[before].keys() & stale[after].keys()
        if (stale[before][number] is None) != (stale[after][number] is None)
    ]
    states: list[dict[Key, OfferState]] = []
    for seq, other_seq in ((before, after), (after, before)):
        rows = [*_only_in(connection, seq, other_seq), *_in_both(connection, seq, other_seq, moved)]
        states.append(
            {
                tuple(key): OfferState(usd_micros_per_hour=usd, available=available, stale_since=stale[seq][number])
                for *key, usd, available, number in rows
            }
        )
    return states[0], states[1]


_ROW = [
    offers.c.provider,
    offers.c.region,
    offers.c.zone,
    offers.c.instance_type,
    offers.c.price_kind,
    prices.c.usd_micros_per_hour,
    prices.c.available,
    prices.c.reading_id,
]


def _only_in(connection: sa.Connection, seq: int, other_seq: int) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """The price rows valid at one number but not at the other."""
    if seq < other_seq:
        which = sa.and_(prices.c.last_seq >= seq, prices.c.last_seq < other_seq, prices.c.first_seq <= seq)
    else:
        which = sa.and_(prices.c.last_seq >= seq, prices.c.first_seq > other_seq, prices.c.first_seq <= seq)
    return connection.execute(sa.select(*_ROW).join_from(prices, offers).where(which)).all()


def _in_both(
    connection: sa.Connection, seq: int, other_seq: int, reading_ids: Sequence[int]
) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """The price rows of these readings that are valid at both numbers."""
    if not reading_ids:
        return []
    which = sa.and_(
        prices.c.last_seq >= max(seq, other_seq),
        prices.c.first_seq <= min(seq, other_seq),
        prices.c.reading_id.in_(reading_ids),
    )
    return connection.execute(sa.select(*_ROW).join_from(prices, offers).where(which)).all()


def _stale(connection: sa.Connection, seq: int) -> dict[int, datetime | None]:
    """The time since which each reading of a snapshot has been stale."""
    query = sa.select(readings.c.reading_id, readings.c.stale_since)
    rows = connection.execute(query.where(readings.c.last_seq >= seq, readings.c.first_seq <= seq))
    return {row.reading_id: row.stale_since for row in rows}


#: Maximum over all cached diffs together; a change takes about 500 bytes, and a night changes a few thousand prices.
MOST_CHANGES = 100_000

#: Maximum number of concurrent computations: each holds a connection and a core while it reads.
MOST_AT_ONCE = 4

#: The ids of the snapshot before and the one after.
Pair = tuple[str, str]


class DiffCache:
    """The most recently used diffs; thread-safe, and each computed once even if several threads request it.

    A request for another pair, or for a cached one, does not wait for a slow computation.
    """

    def __init__(self, most_changes: int = MOST_CHANGES, most_at_once: int = MOST_AT_ONCE) -> None:
        """Creates an empty cache."""
        self._at_once = threading.BoundedSemaphore(most_at_once)
        self._changing = threading.Condition()
        self._diffs: LRUCache[Pair, SnapshotDiff] = LRUCache(most_changes, getsizeof=lambda diff: len(diff.offers))
        self._of = cached(self._diffs, key=lambda pair, _: pair, condition=self._changing)(self._work_out)

    def of(self, pair: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        """The diff of this pair, computed if not cached. Raises what `work_out` raises, and then caches nothing."""
        return self._of(pair, work_out)

    def _work_out(self, _: Pair, work_out: Callable[[], SnapshotDiff]) -> SnapshotDiff:
        with self._at_once:
            return work_out()

    def retain_only(self, snapshot_ids: Collection[str]) -> None:
        """Drop diffs of all other snapshots."""
        with self._changing:
            for pair in [diff for diff in self._diffs if not set(diff) <= set(snapshot_ids)]:
                del self._diffs[pair]
