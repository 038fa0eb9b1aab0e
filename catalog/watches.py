"""Jobs that are watched: what was last told of each, moved only together with the notifications that tell it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from catalog.database import insert_or_keep
from catalog.errors import UnusableInput
from catalog.notifications import Notification, write_notification
from catalog.ownership import UNRESTRICTED, Viewer, forget_owners, readable, refuse_others, write_owner
from catalog.saved import as_json
from catalog.schema import notifications, watches
from catalog.snapshot_list import NotStored


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A saved job, whom to tell, and what they were last told.

    `threshold_percent` is the change of cost worth telling, above 0 and below 100. `last_told` is the answer that
    changes are told against, as a JSON object, and `tellings` how many times it has moved. `checked_at` is when
    the job was last planned and `problem` why that failed then (empty if it did not). A watch with `ended_at` is
    over: its deadline has passed.
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
    """Keeps a watch of this owner, and gives the one that counts: that with the same id, if it was there already."""
    row = {name: getattr(watch, name) for name in watches.c.keys()}  # noqa: SIM118
    row |= {"job": as_json(watch.job), "last_told": _told(watch.last_told)}
    write_owner(connection, "watch", watch.id, owner, is_new=insert_or_keep(connection, watches, row))
    return read_watch(connection, watch.id)


def count_watches(connection: sa.Connection) -> int:
    """How many there are, those that are over among them."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(watches)).scalar_one())


def read_watches(connection: sa.Connection, viewer: Viewer = UNRESTRICTED) -> tuple[Watch, ...]:
    """Every watch that the viewer may read, the oldest first."""
    asked = sa.select(watches).where(readable("watch", watches.c.id, viewer))
    rows = connection.execute(asked.order_by(watches.c.created_at, watches.c.id))
    return tuple(_watch(row) for row in rows)


def read_watch(connection: sa.Connection, watch_id: str, viewer: Viewer = UNRESTRICTED) -> Watch:
    """The watch with this id. Raises `NotStored` at `watch` if there is none that the viewer may read."""
    one = sa.select(watches).where(watches.c.id == watch_id, readable("watch", watches.c.id, viewer))
    row = connection.execute(one).first()
    if row is None:
        raise _not_stored(watch_id)
    return _watch(row)


def delete_watch(connection: sa.Connection, watch_id: str, viewer: Viewer = UNRESTRICTED) -> None:
    """Forgets a watch and all it had to say, sent or not.

    Raises `NotStored` at `watch` if there is none that the viewer may read, `NotOwned` if it is another's.
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
    said: Iterable[Notification],
    *,
    ended_at: datetime | None = None,
) -> bool:
    """Moves what was last told and keeps what tells it, both or neither; False if the watch has moved or gone since.

    `before` is the watch as it was read: of two checks at once, one tells.
    """
    same = sa.and_(
        watches.c.id == before.id,
        watches.c.created_at == before.created_at,  # another of this name may have been saved since
        watches.c.tellings == before.tellings,
    )
    moved = sa.update(watches).where(same)
    moved = moved.values(last_told=_told(last_told), tellings=before.tellings + 1, ended_at=ended_at)
    if not connection.execute(moved).rowcount:
        return False
    for each in said:
        write_notification(connection, each)
    return True


def mark_checked(connection: sa.Connection, problems: Sequence[tuple[str, str]], now: datetime) -> None:
    """Notes of each watch, given as (id, problem or empty), that it was planned at `now`."""
    noted = sa.update(watches).where(watches.c.id == sa.bindparam("watch"))
    noted = noted.values(problem=sa.bindparam("said"), checked_at=now)
    if problems:
        connection.execute(noted, [{"watch": watch_id, "said": problem} for watch_id, problem in problems])


def _not_stored(watch_id: str) -> UnusableInput:
    return NotStored.at("watch", message=f"no watch {watch_id[:80]!r} is stored here; accepted: the id of a watch")


def _told(document: Mapping[str, Any]) -> str:
    return as_json(dict(document))


def _watch(row: sa.Row[Any]) -> Watch:
    values = dict(row._mapping)
    return Watch(**values | {"job": json.loads(row.job), "last_told": json.loads(row.last_told)})
