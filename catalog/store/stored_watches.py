"""Watched jobs; the last notified answer changes only together with its notifications."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import UNRESTRICTED, Viewer, forget_owners, readable, refuse_others, write_owner
from gpuplan.catalog.store.saved_answers import as_json
from gpuplan.catalog.store.schema import notifications, watches
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.stored_notifications import Notification, write_notification


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
    row = {name: getattr(watch, name) for name in watches.c.keys()}  # noqa: SIM118
    row |= {"job": as_json(watch.job), "last_told": _as_text(watch.last_told)}
    write_owner(connection, "watch", watch.id, owner, is_new=insert_or_ignore(connection, watches, row))
    return read_watch(connection, watch.id)


def count_watches(connection: sa.Connection) -> int:
    """The number of watches, including those that are over."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(watches)).scalar_one())


def read_watches(connection: sa.Connection, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, ...]:
    """Every watch that the viewer may read, the oldest first."""
    asked = sa.select(watches).where(readable("watch", watches.c.id, viewer))
    rows = connection.execute(asked.order_by(watches.c.created_at, watches.c.id))
    return tuple(_watch(row) for row in rows)


def read_watch(connection: sa.Connection, watch_id: str, viewer: Viewer = UNRESTRICTED) -> Watch:
    """The watch with this id. Raises `NotStored` at `watch` if the viewer cannot read one."""
    one = sa.select(watches).where(watches.c.id == watch_id, readable("watch", watches.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise _not_stored(watch_id)
    return _watch(row)


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
    notifications: Iterable[Notification],
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
    moved = moved.values(last_told=_as_text(last_told), tellings=before.tellings + 1, ended_at=ended_at)
    if not connection.execute(moved).rowcount:
        return False
    for notification in notifications:
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


def _as_text(document: Mapping[str, Any]) -> str:
    return as_json(dict(document))


def _watch(row: sa.Row[Any]) -> Watch:
    values = dict(row._mapping)
    return Watch(**values | {"job": json.loads(row.job), "last_told": json.loads(row.last_told)})
