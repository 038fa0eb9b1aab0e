"""List snapshots, select the current one, and resolve a user's abbreviation."""

import difflib
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.schema import snapshots


class NotStored(UnusableInput):
    """The user named a snapshot or plan that the store does not have (HTTP 404)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnapshot:
    """A snapshot without its rows. `parent` was current when this one was written."""

    id: str
    seq: int
    created_at: datetime
    observed_at: datetime
    source: str
    parent: str | None
    offer_count: int


def all_snapshots(connection: sa.Connection) -> list[StoredSnapshot]:
    """Every snapshot, last written first."""
    rows = connection.execute(sa.select(snapshots).order_by(snapshots.c.seq.desc()))
    return [StoredSnapshot(**row._mapping) for row in rows]


def is_stored(connection: sa.Connection, snapshot_id: str) -> bool:
    """Whether a snapshot with exactly this id is stored."""
    return connection.execute(sa.select(snapshots.c.id).where(snapshots.c.id == snapshot_id)).first() is not None


_COLUMNS = sa.select(snapshots.c.id, snapshots.c.source, snapshots.c.observed_at)
#: Ordered by number, not by time: a refresh may hold only older rows (its newest place vanished, or a clock was set back).
_REFRESHED = _COLUMNS.where(snapshots.c.source == "refresh").order_by(snapshots.c.seq.desc()).limit(1).subquery()
_EMBEDDED = _COLUMNS.where(snapshots.c.source == "embedded").order_by(snapshots.c.seq.desc()).limit(1).subquery()
#: Runs before every plan, so it is built once: the refresh and the embedded snapshot written last.
_NEWEST = sa.union_all(sa.select(_REFRESHED), sa.select(_EMBEDDED))


def current_snapshot(connection: sa.Connection) -> str | None:
    """The id of the last refresh, unless a release brought embedded prices read after it; None if empty."""
    rows = connection.execute(_NEWEST)
    newest = {source: (snapshot_id, observed_at) for snapshot_id, source, observed_at in rows}
    refreshed, embedded = newest.get("refresh"), newest.get("embedded")
    if refreshed is None or (embedded is not None and embedded[1] > refreshed[1]):
        return None if embedded is None else str(embedded[0])
    return str(refreshed[0])


def find_snapshot(connection: sa.Connection, text: str) -> StoredSnapshot:
    """The snapshot with this id or this unique prefix of an id.

    Raises `NotStored` at `snapshot` with the nearest ids if none or several match.
    """
    known = all_snapshots(connection)
    wanted = text.strip().lower()
    begins = [snapshot for snapshot in known if wanted and snapshot.id.startswith(wanted)]
    matches = [begin for begin in begins if begin.id == wanted] or begins
    if len(matches) == 1:
        return matches[0]
    what = "several snapshots begin with" if matches else "no snapshot"
    ids = [snapshot.id for snapshot in matches or known]
    near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.6) or ids[:3]
    nearest = f"nearest: {', '.join(near)}" if near else "none is stored yet"
    raise NotStored.at("snapshot", message=f"{what} {text[:80]!r}; {nearest}")
