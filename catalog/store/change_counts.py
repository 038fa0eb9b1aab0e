"""How many offers each snapshot of a chain made dearer, cheaper, new and gone, counted in one pass over their prices."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store.price_history import line_to
from gpuplan.catalog.store.schema import prices, snapshots

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
