"""Retention: deletes old snapshots except one per week, very old ones, and plans that nobody follows.

A row of prices, readings or instance types is deleted when no remaining snapshot has it, that is, when it began and ended
between two remaining ones; all remaining snapshots read as before. SQLite reuses the freed pages, so the file stops growing
rather than shrinks.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import sqlalchemy as sa

from gpuplan.catalog.store.ownership import Kind, forget_owners_of_missing
from gpuplan.catalog.store.plan_store import KEEP_RESPONSES, forget_notes_of_missing
from gpuplan.catalog.store.schema import (
    actuals,
    adopted_plans,
    audit,
    capacity_answers,
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
from gpuplan.catalog.store.snapshot_list import StoredSnapshot, all_snapshots, current_snapshot

#: Ids of plans and snapshots as they occur in a watch's last notification.
_ID = re.compile(r"(?:[a-z]+-)?[0-9a-f]{20,}")

#: Tables with owners that retention deletes from.
_OWNED: tuple[tuple[Kind, sa.Table], ...] = (("plan", plans), ("run", runs))

#: Days for which counts of past days remain available.
_QUOTA_RETENTION = timedelta(days=31)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """Retention periods in days; None is unlimited.

    Every snapshot stays for `every_snapshot_days` after its prices were read, then the first of each week for
    `weekly_snapshot_days`; refresh reports and capacity answers as long. Plans stay for `plans_days` after they were made,
    and notifications of watches and runs with their answers as long. The audit log stays for `audit_days`.
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
    """Delete expired rows at time `now`, in the open transaction.

    These always stay: the current snapshot, embedded ones that may become current again (`shipped` is this release's), the
    one written last, and those that a remaining plan or a watch names.
    """
    followed = _followed(connection)
    plans_gone = _delete_plans(connection, _before(now, policy.plans_days), followed)
    named = {*connection.execute(sa.select(plans.c.snapshot_id).distinct()).scalars(), *followed, shipped}
    gone = snapshots_to_drop(all_snapshots(connection), policy, now, pinned=named | {current_snapshot(connection)})
    notifications_deleted = _delete_older(connection, notifications.c.created_at, _before(now, policy.plans_days))
    reports = _delete_older(connection, refreshes.c.started_at, _before(now, policy.weekly_snapshot_days))
    keys = _delete_older(connection, idempotency_keys.c.created_at, now - KEEP_RESPONSES)
    runs_gone = _delete_older(connection, runs.c.created_at, _before(now, policy.plans_days))
    audit_gone = _delete_older(connection, audit.c.at, _before(now, policy.audit_days))
    _delete_older(connection, capacity_answers.c.asked_at, _before(now, policy.weekly_snapshot_days))
    connection.execute(sa.delete(quota_use).where(quota_use.c.day < (now - _QUOTA_RETENTION).date().isoformat()))
    for kind, table in _OWNED:
        forget_owners_of_missing(connection, kind, sa.select(table.c.id))
    forget_notes_of_missing(connection)
    prices_gone = _drop(connection, gone) if gone else 0
    return Forgotten(
        snapshots=len(gone),
        prices=prices_gone,
        plans=plans_gone,
        notifications=notifications_deleted,
        refreshes=reports,
        idempotency_keys=keys,
        runs=runs_gone,
        audit=audit_gone,
    )


def snapshots_to_drop(
    stored: Sequence[StoredSnapshot], policy: RetentionPolicy, now: datetime, *, pinned: Iterable[str | None]
) -> list[StoredSnapshot]:
    """The expired snapshots, oldest first; pure and idempotent.

    The one written last stays (the next refresh is written as changes against it), as do the `pinned` ones.
    """
    every, weekly = _before(now, policy.every_snapshot_days), _before(now, policy.weekly_snapshot_days)
    if every is None:
        return []
    newest = max((snapshot.seq for snapshot in stored), default=0)
    pinned_ids = {*pinned, *(snapshot.id for snapshot in stored if snapshot.seq == newest)}
    weeks: set[tuple[int, int]] = set()
    gone = []
    for stored_snapshot in sorted(stored, key=lambda snapshot: (snapshot.observed_at, snapshot.seq)):
        year, week, _ = stored_snapshot.observed_at.isocalendar()
        thinned = stored_snapshot.observed_at < every and (year, week) in weeks
        weeks.add((year, week))
        too_old = weekly is not None and stored_snapshot.observed_at < weekly
        if (thinned or too_old) and stored_snapshot.id not in pinned_ids:
            gone.append(stored_snapshot)
    return gone


def _before(now: datetime, days: int | None) -> datetime | None:
    return None if days is None else now - timedelta(days=days)


def _followed(connection: sa.Connection) -> set[str]:
    """The ids of plans and snapshots that watches compare with."""
    seen = connection.execute(sa.select(sa.type_coerce(watches.c.last_told, sa.Text))).scalars()
    return {plan_id for text in seen for plan_id in _ID.findall(text)}


def _delete_plans(connection: sa.Connection, bound: datetime | None, followed: set[str]) -> int:
    if bound is None:
        return 0
    reported = sa.exists().where(actuals.c.plan_id == plans.c.id)
    adopted = sa.exists().where(adopted_plans.c.plan_id == plans.c.id)
    old = sa.delete(plans).where(plans.c.created_at < bound, ~reported, ~adopted, plans.c.id.not_in(sorted(followed)))
    return connection.execute(old).rowcount


def _delete_older(connection: sa.Connection, time: sa.Column[datetime], bound: datetime | None) -> int:
    return 0 if bound is None else connection.execute(sa.delete(time.table).where(time < bound)).rowcount


def _drop(connection: sa.Connection, gone: Sequence[StoredSnapshot]) -> int:
    """Delete these snapshots and the rows that no other has; returns the number of deleted prices."""
    _bridge(connection, {stored_snapshot.id: stored_snapshot.parent for stored_snapshot in gone})
    connection.execute(sa.delete(snapshots).where(snapshots.c.id.in_([stored_snapshot.id for stored_snapshot in gone])))
    remaining = list(connection.execute(sa.select(snapshots.c.seq).order_by(snapshots.c.seq)).scalars())
    gaps = [
        gap
        for gap in pairwise([0, *remaining])
        if any(gap[0] < stored_snapshot.seq < gap[1] for stored_snapshot in gone)
    ]
    deleted = {table: sum(_delete_within(connection, table, *gap) for gap in gaps) for table in _INTERVALS}
    if deleted[prices]:
        priced = sa.exists().where(prices.c.offer_id == offers.c.id)
        connection.execute(sa.delete(offers).where(~priced))
    return deleted[prices]


_INTERVALS = (prices, readings, instance_types)


def _bridge(connection: sa.Connection, parents: dict[str, str | None]) -> None:
    """Set the parent of snapshots whose parent is deleted to the nearest remaining ancestor; `parents` covers the deleted
    ones.
    """
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
    """Delete the rows that began and ended between two remaining numbers, using the index on `last_seq`."""
    # A valid row is never among them, because the snapshot written last stays.
    within = sa.and_(table.c.last_seq > before, table.c.last_seq < after, table.c.first_seq > before)
    return connection.execute(sa.delete(table).where(within)).rowcount
