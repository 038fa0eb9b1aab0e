"""What one snapshot changed against another: offers that are new, vanished, at another price, available or not, stale or not.

`offer_changes` and `type_changes` are pure; `stored_diff` feeds them from the tables with the rows that differ,
a hundredth of what two whole snapshots hold.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.offer import InstanceType, Offer
from catalog.price_changes import Key
from catalog.price_points import instance_types_at
from catalog.schema import offers, prices, readings
from catalog.snapshot import Snapshot

_TYPE_FIELDS = tuple(each.name for each in fields(InstanceType))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a snapshot says of an offer: its price, whether it can be had, and since when no refresh has confirmed it.

    `stale_since` is None for one that is fresh.
    """

    usd_micros_per_hour: int
    available: bool
    stale_since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferChange:
    """An offer that two snapshots do not say the same of; None where a snapshot does not have it."""

    key: Key
    before: Seen | None
    after: Seen | None

    @property
    def what(self) -> tuple[str, ...]:
        """Which of `WORDS` say what happened: one for an offer that came or went, else one to three."""
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
        """The change of the price as a share of the old one (0.1: 10 % dearer), or None if there is no such thing."""
        if self.before is None or self.after is None or not self.before.usd_micros_per_hour:
            return None
        return self.after.usd_micros_per_hour / self.before.usd_micros_per_hour - 1

    @property
    def size(self) -> float:
        """How far the price moved; half the price is as far as twice the price."""
        if self.before is None or self.after is None:
            return 0.0
        old, new = self.before.usd_micros_per_hour, self.after.usd_micros_per_hour
        return abs(math.log(new / old)) if old and new else math.inf * (old != new)


#: What may have happened to an offer, as counted and shown.
WORDS = ("new", "vanished", "changed", "became_unavailable", "available_again", "became_stale", "fresh_again")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """An instance type that came, went, or has other facts; None where a snapshot does not have it."""

    provider: str
    name: str
    before: InstanceType | None
    after: InstanceType | None

    @property
    def fields(self) -> dict[str, tuple[object, object]]:
        """The facts that differ, as (old, new); empty for a type that came or went."""
        if self.before is None or self.after is None:
            return {}
        pairs = {name: (getattr(self.before, name), getattr(self.after, name)) for name in _TYPE_FIELDS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """All changes: of offers the largest move of a price first, of instance types by provider and name."""

    offers: tuple[OfferChange, ...]
    instance_types: tuple[TypeChange, ...]

    def counts(self) -> dict[str, dict[str, int]]:
        """How many offers of each provider each word is true of; providers without any change are left out."""
        found = Counter((change.key[0], word) for change in self.offers for word in change.what)
        providers = sorted({provider for provider, _ in found})
        return {provider: {word: found[provider, word] for word in WORDS} for provider in providers}


def snapshot_diff(before: Snapshot, after: Snapshot) -> SnapshotDiff:
    """What `after` changes against `before`."""
    return SnapshotDiff(
        offers=offer_changes(_seen(before.offers), _seen(after.offers)),
        instance_types=type_changes(before.instance_types, after.instance_types),
    )


def offer_changes(before: Mapping[Key, Seen], after: Mapping[Key, Seen]) -> tuple[OfferChange, ...]:
    """The offers that differ, the largest move of a price first, then by key; offers that both lack may be left out."""
    found = [OfferChange(key=key, before=before.get(key), after=after.get(key)) for key in before.keys() | after.keys()]
    return tuple(sorted((each for each in found if each.what), key=lambda each: (-each.size, each.key)))


def type_changes(before: Iterable[InstanceType], after: Iterable[InstanceType]) -> tuple[TypeChange, ...]:
    """The instance types that differ, by provider and name."""
    old, new = ({(each.provider, each.name): each for each in types} for types in (before, after))
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return tuple(TypeChange(provider=key[0], name=key[1], before=old.get(key), after=new.get(key)) for key in keys)


def stored_diff(connection: sa.Connection, before: int, after: int) -> SnapshotDiff:
    """What snapshot number `after` changes against number `before`; either may be the older one."""
    old, new = _differing(connection, before, after)
    types = (instance_types_at(connection, seq) for seq in (before, after))
    return SnapshotDiff(offers=offer_changes(old, new), instance_types=type_changes(*types))


def _seen(rows: Iterable[Offer]) -> dict[Key, Seen]:
    return {
        row.key: Seen(usd_micros_per_hour=row.usd_micros_per_hour, available=row.available, stale_since=row.stale_since)
        for row in rows
    }


def _differing(connection: sa.Connection, before: int, after: int) -> tuple[dict[Key, Seen], dict[Key, Seen]]:
    """What each of two snapshots says of the offers whose stored figures or staleness are not the same in both."""
    stale = {seq: _stale(connection, seq) for seq in (before, after)}
    moved = [
        number
        for number in stale[before].keys() & stale[after].keys()
        if (stale[before][number] is None) != (stale[after][number] is None)
    ]
    found: list[dict[Key, Seen]] = []
    for here, there in ((before, after), (after, before)):
        rows = [*_only_in(connection, here, there), *_in_both(connection, here, there, moved)]
        found.append(
            {
                tuple(key): Seen(usd_micros_per_hour=usd, available=available, stale_since=stale[here][number])
                for *key, usd, available, number in rows
            }
        )
    return found[0], found[1]


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


def _only_in(connection: sa.Connection, here: int, there: int) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """The price rows that hold at one number and not at the other."""
    if here < there:
        which = sa.and_(prices.c.last_seq >= here, prices.c.last_seq < there, prices.c.first_seq <= here)
    else:
        which = sa.and_(prices.c.last_seq >= here, prices.c.first_seq > there, prices.c.first_seq <= here)
    return connection.execute(sa.select(*_ROW).join_from(prices, offers).where(which)).all()


def _in_both(
    connection: sa.Connection, here: int, there: int, reading_ids: Sequence[int]
) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    """The price rows of these readings that hold at both numbers."""
    if not reading_ids:
        return []
    which = sa.and_(
        prices.c.last_seq >= max(here, there),
        prices.c.first_seq <= min(here, there),
        prices.c.reading_id.in_(reading_ids),
    )
    return connection.execute(sa.select(*_ROW).join_from(prices, offers).where(which)).all()


def _stale(connection: sa.Connection, seq: int) -> dict[int, datetime | None]:
    """Since when each reading of a snapshot has been stale."""
    query = sa.select(readings.c.reading_id, readings.c.stale_since)
    rows = connection.execute(query.where(readings.c.last_seq >= seq, readings.c.first_seq <= seq))
    return {row.reading_id: row.stale_since for row in rows}
