"""Watches and their notifications in the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import (
    UNRESTRICTED,
    Viewer,
    forget_owners,
    read_owners,
    readable,
    refuse_others,
    write_owner,
)
from gpuplan.catalog.store.schema import notifications, watches
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import StorePart, reads, writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One message to one channel: waiting, delivered, or given up, with the reason in `last_error`.

    `telling` numbers the changes that its watch reported. `held_until` is the end of a sender's lease, which also frees the
    message of a sender that died.
    """

    id: str
    watch_id: str
    telling: int
    snapshot_id: str
    channel: str
    event: str
    payload: dict[str, Any]
    created_at: datetime
    attempts: int = 0
    held_until: datetime | None = None
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None
    last_error: str = ""


def write_notification(connection: sa.Connection, notification: Notification) -> None:
    """Store a message unless it exists."""
    insert_or_ignore(connection, notifications, notification)


def read_notifications(connection: sa.Connection, watch_id: str) -> tuple[Notification, ...]:
    """All notifications of one watch, newest first."""
    table = notifications
    asked = sa.select(table).where(table.c.watch_id == watch_id)
    return _all(connection, asked.order_by(table.c.telling.desc(), table.c.channel))


def read_waiting(connection: sa.Connection) -> tuple[Notification, ...]:
    """All notifications neither delivered nor given up, oldest first."""
    table = notifications
    asked = sa.select(table).where(table.c.delivered_at.is_(None), table.c.given_up_at.is_(None))
    return _all(connection, asked.order_by(table.c.created_at, table.c.watch_id, table.c.channel))


def hold(connection: sa.Connection, notification_id: str, now: datetime, until: datetime) -> bool:
    """Lease the message up to `until`; returns False if another sender leases it or it no longer waits."""
    table = notifications
    free = sa.or_(table.c.held_until.is_(None), table.c.held_until <= now)
    waits = sa.and_(table.c.id == notification_id, table.c.delivered_at.is_(None), table.c.given_up_at.is_(None), free)
    return bool(connection.execute(sa.update(table).where(waits).values(held_until=until)).rowcount)


def settle(
    connection: sa.Connection,
    notification_id: str,
    *,
    attempts: int,
    error: str = "",
    delivered_at: datetime | None = None,
    given_up_at: datetime | None = None,
) -> None:
    """Record the result and number of attempts, and end the lease."""
    table = notifications
    values = {"held_until": None, "delivered_at": delivered_at, "given_up_at": given_up_at, "last_error": error}
    done = sa.update(table).where(table.c.id == notification_id)
    connection.execute(done.values(attempts=table.c.attempts + attempts, **values))


def note(connection: sa.Connection, notification_id: str, error: str) -> None:
    """Record why a message still waits, unless another sender has settled or leased it meanwhile."""
    table = notifications
    waits = sa.and_(table.c.delivered_at.is_(None), table.c.given_up_at.is_(None), table.c.held_until.is_(None))
    connection.execute(sa.update(table).where(table.c.id == notification_id, waits).values(last_error=error))


def _all(connection: sa.Connection, asked: sa.Select[Any]) -> tuple[Notification, ...]:
    return tuple(Notification(**row._mapping) for row in connection.execute(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A saved job, its recipients, and the last notified answer.

    `threshold_percent` is the relative change of cost that triggers a notification, above 0 and below 100. `last_told` is
    the answer that changes are compared with, as a JSON object, and `tellings` counts its updates. `checked_at` is when the
    job was last planned and `problem` why that failed (empty if it did not). A watch with `ended_at` is over: its deadline
    has passed.
    """

    id: str
    name: str
    job: dict[str, Any]
    channels: tuple[str, ...]
    threshold_percent: float
    created_at: datetime
    last_told: dict[str, Any]
    tellings: int = 0
    checked_at: datetime | None = None
    problem: str = ""
    ended_at: datetime | None = None


def write_watch(connection: sa.Connection, watch: Watch, owner: str | None = None) -> Watch:
    """Store a watch of this owner and return the one that counts: an existing one with the same id takes precedence."""
    write_owner(connection, "watch", watch.id, owner, is_new=insert_or_ignore(connection, watches, watch))
    return read_watch(connection, watch.id)


def count_watches(connection: sa.Connection) -> int:
    """The number of watches, including those that are over."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(watches)).scalar_one())


def read_watches(connection: sa.Connection, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, ...]:
    """Every watch that the viewer may read, the oldest first."""
    asked = sa.select(watches).where(readable("watch", watches.c.id, viewer))
    rows = connection.execute(asked.order_by(watches.c.created_at, watches.c.id))
    return tuple(Watch(**row._mapping) for row in rows)


def read_watch(connection: sa.Connection, watch_id: str, viewer: Viewer = UNRESTRICTED) -> Watch:
    """The watch with this id. Raises `NotStored` at `watch` if the viewer cannot read one."""
    one = sa.select(watches).where(watches.c.id == watch_id, readable("watch", watches.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise _not_stored(watch_id)
    return Watch(**row._mapping)


def delete_watch(connection: sa.Connection, watch_id: str, viewer: Viewer = UNRESTRICTED) -> None:
    """Delete a watch and all its notifications, sent or not.

    Raises `NotStored` at `watch` if the viewer cannot read one, `NotOwned` if another identity owns it.
    """
    read_watch(connection, watch_id, viewer)
    refuse_others(connection, "watch", watch_id, viewer)
    connection.execute(sa.delete(watches).where(watches.c.id == watch_id))
    forget_owners(connection, "watch", watch_id)
    connection.execute(sa.delete(notifications).where(notifications.c.watch_id == watch_id))


def tell(
    connection: sa.Connection,
    before: Watch,
    last_told: Mapping[str, Any],
    messages: Iterable[Notification],
    *,
    ended_at: datetime | None = None,
) -> bool:
    """Update the last notified answer and store its notifications, atomically; False if the watch has changed or gone since.

    `before` is the watch as it was read: of two concurrent checks, only one succeeds.
    """
    same = sa.and_(
        watches.c.id == before.id,
        watches.c.created_at == before.created_at,  # a watch of the same name may have been saved since
        watches.c.tellings == before.tellings,
    )
    moved = sa.update(watches).where(same)
    moved = moved.values(last_told=dict(last_told), tellings=before.tellings + 1, ended_at=ended_at)
    if not connection.execute(moved).rowcount:
        return False
    for notification in messages:
        write_notification(connection, notification)
    return True


def mark_checked(connection: sa.Connection, problems: Sequence[tuple[str, str]], now: datetime) -> None:
    """Record that each watch, given as (id, problem or empty), was planned at `now`."""
    noted = sa.update(watches).where(watches.c.id == sa.bindparam("watch"))
    noted = noted.values(problem=sa.bindparam("problem"), checked_at=now)
    if problems:
        connection.execute(noted, [{"watch": watch_id, "problem": problem} for watch_id, problem in problems])


def _not_stored(watch_id: str) -> UnusableInput:
    return NotStored.at("watch", message=f"no watch {watch_id[:80]!r} is stored here; accepted: the id of a watch")


class WatchStore(StorePart):
    """The watches in the store."""

    save = writes(write_watch)
    every = reads(read_watches)
    count = reads(count_watches)
    forget = writes(delete_watch)
    tell = writes(tell)
    mark_checked = writes(mark_checked)
    waiting = reads(read_waiting)
    hold = writes(hold)
    settle = writes(settle)
    note = writes(note)

    def owners(self, watch_id: str) -> tuple[str | None, ...]:
        """The owners of the watch, which also own what is made for it: None for everybody."""
        with self._reading() as connection:
            return read_owners(connection, "watch", watch_id) or (None,)

    def one(self, watch_id: str, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, tuple[Notification, ...]]:
        """One watch and all its notifications, newest first. Raises `NotStored` if the viewer cannot read one."""
        with self._reading() as connection:
            return read_watch(connection, watch_id, viewer), read_notifications(connection, watch_id)
