"""Share links: made and revoked by an object's owners, opened by anyone with the link and a key."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.access_store import AuditRecord, write_audit
from gpuplan.catalog.store.database import insert, insert_or_ignore
from gpuplan.catalog.store.ownership import KINDS, Kind, Viewer, changeable, refuse_others
from gpuplan.catalog.store.plan_store import read_plan
from gpuplan.catalog.store.run_store import read_run
from gpuplan.catalog.store.schema import share_readers, shares
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import StorePart, reads
from gpuplan.catalog.store.watch_store import read_watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A link to an object, without its secret; `created_by` is the display name of an identity."""

    id: str
    secret_hash: str
    kind: Kind
    object_id: str
    created_by: str
    created_at: datetime
    revoked_at: datetime | None = None


def write_share(connection: sa.Connection, share: Share) -> None:
    """Store a new link."""
    insert(connection, shares, share)


def find_share(connection: sa.Connection, share_id: str) -> Share | None:
    """The link with this id, including revoked ones, or None."""
    row = connection.execute(sa.select(shares).where(shares.c.id == share_id)).first()
    return None if row is None else Share(**row._mapping)


def read_shares(connection: sa.Connection, viewer: Viewer) -> tuple[Share, ...]:
    """Links to objects that the viewer may change, oldest first, including revoked ones."""
    mine = sa.or_(*(sa.and_(shares.c.kind == kind, changeable(kind, shares.c.object_id, viewer)) for kind in KINDS))
    rows = connection.execute(sa.select(shares).where(mine).order_by(shares.c.created_at, shares.c.id))
    return tuple(Share(**row._mapping) for row in rows)


def revoke_share(connection: sa.Connection, share_id: str, now: datetime) -> Share:
    """Revoke this link. Raises `NotStored` at `share` if there is none."""
    live = sa.update(shares).where(shares.c.id == share_id, shares.c.revoked_at.is_(None))
    connection.execute(live.values(revoked_at=now))
    connection.execute(sa.delete(share_readers).where(share_readers.c.share_id == share_id))
    share = find_share(connection, share_id)
    if share is None:
        raise no_share(share_id)
    return share


def write_reader(connection: sa.Connection, share_id: str, identity: str) -> bool:
    """Record that an identity opened the link; returns whether for the first time."""
    return insert_or_ignore(connection, share_readers, {"share_id": share_id, "identity": identity})


def no_share(share_id: str) -> UnusableInput:
    """The error for a missing link and for another owner's link, with the same message."""
    return NotStored.at(
        "share", message=f"no link {share_id[:80]!r} is stored here; accepted: the id of a link of yours"
    )


_READ: dict[Kind, Callable[[sa.Connection, str, Viewer], object]] = {
    "plan": read_plan,
    "run": read_run,
    "watch": read_watch,
}


class ShareStore(StorePart):
    """The share links in the store."""

    of = reads(read_shares)
    find = reads(find_share)

    def add(self, share: Share, viewer: Viewer, record: AuditRecord) -> None:
        """Store a link to an object of the viewer, with its audit record.

        Raises `NotStored` if the viewer cannot read such an object, `NotOwned` if another identity owns it.
        """
        with self._writing() as connection:
            _refuse(connection, share.kind, share.object_id, viewer)
            write_share(connection, share)
            write_audit(connection, record)

    def refuse(self, kind: Kind, object_id: str, viewer: Viewer) -> None:
        """Raises the errors of `add` without adding a link."""
        with self._reading() as connection:
            _refuse(connection, kind, object_id, viewer)

    def revoke(self, share_id: str, now: datetime, viewer: Viewer, record: AuditRecord) -> Share:
        """Revoke this link. Raises `NotStored` at `share` if the viewer has no such link."""
        with self._writing() as connection:
            if share_id not in {read_share.id for read_share in read_shares(connection, viewer)}:
                raise no_share(share_id)
            write_audit(connection, record)
            return revoke_share(connection, share_id, now)

    def add_reader(self, share_id: str, identity: str, record: AuditRecord) -> None:
        """Allow this identity to read the link's object until it is revoked; audited the first time."""
        with self._writing() as connection:
            if write_reader(connection, share_id, identity):
                write_audit(connection, record)


def _refuse(connection: sa.Connection, kind: Kind, object_id: str, viewer: Viewer) -> None:
    _READ[kind](connection, object_id, viewer)
    refuse_others(connection, kind, object_id, viewer)
