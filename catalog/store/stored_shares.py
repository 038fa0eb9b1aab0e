"""Share links: created and revoked by an object's owners, opened by anyone with the link and a key."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.ownership import KINDS, Kind, Viewer, changeable
from gpuplan.catalog.store.schema import share_readers, shares
from gpuplan.catalog.store.snapshot_list import NotStored


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
    connection.execute(sa.insert(shares), {name: getattr(share, name) for name in Share.__slots__})


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
