"""Notifications of watches: stored until delivered, leased by one sender at a time."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import notifications


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
    row = {name: getattr(notification, name) for name in notifications.c.keys()}  # noqa: SIM118
    insert_or_ignore(connection, notifications, row | {"payload": as_json(notification.payload)})


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
    rows = connection.execute(asked)
    return tuple(Notification(**dict(row._mapping) | {"payload": json.loads(row.payload)}) for row in rows)
