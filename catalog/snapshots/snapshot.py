"""A snapshot: instance types and prices at one time, identified by the hash of their contents."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise

from gpuplan.catalog.model.offer import InstanceType, Offer

#: Half of a SHA-256: ids collide once in 2^64 pairs of snapshots, and an id is short enough to type.
ID_DIGITS = 32

_TYPE_FIELDS = tuple(field.name for field in fields(InstanceType))
#: Without the estimate of a planned price, which no stored row has.
_OFFER_FIELDS = tuple(field.name for field in fields(Offer) if field.name != "price_estimate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All rentable machines and their prices, read up to `observed_at` (the newest row's time).

    `id` is `snapshot_id_of` the rows; both tuples are sorted by the rows' keys.
    """

    id: str
    observed_at: datetime
    instance_types: tuple[InstanceType, ...]
    offers: tuple[Offer, ...]


def snapshot_of(instance_types: Iterable[InstanceType], offers: Iterable[Offer]) -> Snapshot:
    """The snapshot of these rows, sorted by key.

    Raises `ValueError` if there are no offers, or if a type or an offer occurs twice.
    """
    types = tuple(sorted(instance_types, key=lambda row: (row.provider, row.name)))
    rows = tuple(sorted(offers, key=lambda row: row.key))
    if not rows:
        raise ValueError("a snapshot needs at least one offer")
    _refuse_duplicates([(instance_type.provider, instance_type.name) for instance_type in types], "instance type")
    _refuse_duplicates([row.key for row in rows], "offer")
    observed_at = max(row.observed_at for row in rows)
    return Snapshot(id=snapshot_id_of(types, rows), observed_at=observed_at, instance_types=types, offers=rows)


def snapshot_id_of(instance_types: Iterable[InstanceType], offers: Iterable[Offer]) -> str:
    """The hash of the contents, over every field of every row, independent of the order of rows."""
    digest = hashlib.sha256()
    for names, rows in ((_TYPE_FIELDS, instance_types), (_OFFER_FIELDS, offers)):
        lines = sorted(_line(row, names) for row in rows)
        digest.update(f"{len(lines)}\n".encode())
        digest.update("\n".join(lines).encode())
    return digest.hexdigest()[:ID_DIGITS]


def _line(row: InstanceType | Offer, names: tuple[str, ...]) -> str:
    """One row as unique text; 4, 4.0 and 4/1 give the same text."""
    return "\x1f".join([_text(getattr(row, name)) for name in names])


def _text(value: object) -> str:
    if value is None:
        return "\x00"
    if isinstance(value, tuple):
        return "\x1e".join(str(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _refuse_duplicates(keys: Sequence[tuple[str, ...]], what: str) -> None:
    for earlier, later in pairwise(keys):
        if earlier == later:
            raise ValueError(f"{what} {'/'.join(later)} is there twice")
