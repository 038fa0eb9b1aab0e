"""What may be forgotten: old snapshots but one a week, very old ones, and plans that nobody follows.

A row of prices, readings or instance types goes when no kept snapshot has it, which is when it began and ended
between two kept ones; every kept snapshot reads as before. SQLite uses the freed pages for later nights, so the
file stops growing rather than shrinks.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import sqlalchemy as sa

from catalog.ownership import Kind, forget_owners_of_missing
from catalog.saved import KEEP_RESPONSES
from catalog.schema import (
    actuals,
    audit,
    idempotency_keys,
    instance_types,
    notifications,
    offers,
    plans,
    prices,
    quota_use,
    readings,
    refreshes,
    runs,
    snapshots,
    watches,
)
from catalog.snapshot_list import StoredSnapshot, all_snapshots, current_snapshot

#: Ids of plans and snapshots as they stand in what a watch was last told.
_ID = re.compile(r"(?:[a-z]+-)?[0-9a-f]{20,}")

#: What retention deletes of that which has owners.
_OWNED: tuple[tuple[Kind, sa.Table], ...] = (("plan", plans), ("run", runs))

#: Counts of days that are over, for as long as somebody may want to look at them.
_QUOTAS_KEPT = timedelta(days=31)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How long things are kept, in days; None is for ever.

    Every snapshot for `every_snapshot_days` after its prices were read, then the first of each week for
    `weekly_snapshot_days`; reports of refreshes as long. Plans for `plans_days` after they were made, and
    notifications of watches and runs with their answers as long. The audit log for `audit_days`.
    """

    every_snapshot_days: int | None = 400
    weekly_snapshot_days: int | None = 1825
    plans_days: int | None = 400
    audit_days: int | None = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many rows of each kind were deleted."""

    snapshots: int
    prices: int
    plans: int
    notifications: int
    refreshes: int
    idempotency_keys: int
    runs: int
    audit: int


def retain(connection: sa.Connection, policy: RetentionPolicy, now: datetime, *, shipped: str) -> Forgotten:
    """Deletes what the policy lets go, in the transaction that is open, as seen at `now`.

    The current snapshot, the embedded ones that may become current again (`shipped` is this release's), the one
    written last, and those that a kept plan or a watch names always stay.
    """
    followed = _followed(connection)
    plans_gone = _delete_plans(connection, _before(now, policy.plans_days), followed)
    named = {*connection.execute(sa.select(plans.c.snapshot_id).distinct()).scalars(), *followed, shipped}
    gone = snapshots_to_drop(all_snapshots(connection), policy, now, pinned=named | {current_snapshot(connection)})
    told = _delete_older(connection, notifications.c.created_at, _before(now, policy.plans_days))
    reports = _delete_older(connection, refreshes.c.started_at, _before(now, policy.weekly_snapshot_days))
    keys = _delete_older(connection, idempotency_keys.c.created_at, now - KEEP_RESPONSES)
    runs_gone = _delete_older(connection, runs.c.created_at, _before(now, policy.plans_days))
    audit_gone = _delete_older(connection, audit.c.at, _before(now, policy.audit_days))
    connection.execute(sa.delete(quota_use).where(quota_use.c.day < (now - _QUOTAS_KEPT).date().isoformat()))
    for kind, table in _OWNED:
        forget_owners_of_missing(connection, kind, sa.select(table.c.id))
    prices_gone = _drop(connection, gone) if gone else 0
    return Forgotten(
        snapshots=len(gone),
        prices=prices_gone,
        plans=plans_gone,
        notifications=told,
        refreshes=reports,
        idempotency_keys=keys,
        runs=runs_gone,
        audit=audit_gone,
    )


def snapshots_to_drop(
    stored: Sequence[StoredSnapshot], policy: RetentionPolicy, now: datetime, *, pinned: Iterable[str | None]
) -> list[StoredSnapshot]:
    """The snapshots that the policy lets go, the oldest first: pure, and the same answer when asked again after.

    The one written last stays (the next night is written as changes against it), as do the `pinned`.
    """
    every, weekly = _before(now, policy.every_snapshot_days), _before(now, policy.weekly_snapshot_days)
    if every is None:
        return []
    newest = max((each.seq for each in stored), default=0)
    kept_ids = {*pinned, *(each.id for each in stored if each.seq == newest)}
    weeks: set[tuple[int, int]] = set()
    gone = []
    for each in sorted(stored, key=lambda each: (each.observed_at, each.seq)):
        year, week, _ = each.observed_at.isocalendar()
        thinned = each.observed_at < every and (year, week) in weeks
        weeks.add((year, week))
        too_old = weekly is not None and each.observed_at < weekly
        if (thinned or too_old) and each.id not in kept_ids:
            gone.append(each)
    return gone


def _before(now: datetime, days: int | None) -> datetime | None:
    return None if days is None else now - timedelta(days=days)


def _followed(connection: sa.Connection) -> set[str]:
    """The ids of plans and snapshots that watches tell changes against."""
    seen = connection.execute(sa.select(watches.c.last_told)).scalars()
    return {found for text in seen for found in _ID.findall(text)}


def _delete_plans(connection: sa.Connection, bound: datetime | None, followed: set[str]) -> int:
    if bound is None:
        return 0
    reported = sa.exists().where(actuals.c.plan_id == plans.c.id)
    old = sa.delete(plans).where(plans.c.created_at < bound, ~reported, plans.c.id.not_in(sorted(followed)))
    return connection.execute(old).rowcount


def _delete_older(connection: sa.Connection, time: sa.Column[datetime], bound: datetime | None) -> int:
    return 0 if bound is None else connection.execute(sa.delete(time.table).where(time < bound)).rowcount


def _drop(connection: sa.Connection, gone: Sequence[StoredSnapshot]) -> int:
    """Deletes these snapshots and the rows that no other has; gives how many prices that were."""
    _bridge(connection, {each.id: each.parent for each in gone})
    connection.execute(sa.delete(snapshots).where(snapshots.c.id.in_([each.id for each in gone])))
    kept = list(connection.execute(sa.select(snapshots.c.seq).order_by(snapshots.c.seq)).scalars())
    gaps = [gap for gap in pairwise([0, *kept]) if any(gap[0] < each.seq < gap[1] for each in gone)]
    deleted = {table: sum(_delete_within(connection, table, *gap) for gap in gaps) for table in _INTERVALS}
    if deleted[prices]:
        priced = sa.exists().where(prices.c.offer_id == offers.c.id)
        connection.execute(sa.delete(offers).where(~priced))
    return deleted[prices]


_INTERVALS = (prices, readings, instance_types)


def _bridge(connection: sa.Connection, parents: dict[str, str | None]) -> None:
    """Gives every snapshot whose parent goes the nearest one before it that stays; `parents` are of those that go."""
    rows = connection.execute(
        sa.select(snapshots.c.id, snapshots.c.parent).where(snapshots.c.parent.in_(list(parents)))
    )
    moved = []
    for child, given in rows.all():
        parent: str | None = given
        while parent is not None and parent in parents:
            parent = parents[parent]
        moved.append({"child": child, "nearest": None if child in parents else parent})
    if moved:
        bridge = sa.update(snapshots).where(snapshots.c.id == sa.bindparam("child"))
        connection.execute(bridge.values(parent=sa.bindparam("nearest")), moved)


def _delete_within(connection: sa.Connection, table: sa.Table, before: int, after: int) -> int:
    """Deletes the rows that began and ended between two kept numbers; the index on `last_seq` finds them."""
    # One that still holds is never among them: the snapshot written last is kept.
    within = sa.and_(table.c.last_seq > before, table.c.last_seq < after, table.c.first_seq > before)
    return connection.execute(sa.delete(table).where(within)).rowcount
