"""Owners of stored objects, and read and write permissions.

The creators of an object own it. Owners and admins may change it; owners, admins and those who opened an unrevoked link may
read it. An object without an owner dates from before ownership, or from a service without keys: everybody may read it, and
only admins may change it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.database import insert_or_ignore
from gpuplan.catalog.store.schema import object_owners, share_readers, shares

Kind = Literal["plan", "run", "watch"]
KINDS: tuple[Kind, ...] = ("plan", "run", "watch")
#: The owner of an object that belongs to everybody, even if others created it too.
EVERYBODY = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The requester: an identity, or None for unrestricted access."""

    identity: str | None


#: The local user, and admins.
UNRESTRICTED = Viewer(None)


class NotOwned(UnusableInput):
    """The requester may read the object but not change it."""


def readable(kind: Kind, object_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """The SQL condition under which the viewer may read the object whose id is in this column."""
    if viewer.identity is None:
        return sa.true()
    owned = _owners(kind, object_id)
    mine = owned.where(object_owners.c.identity.in_((viewer.identity, EVERYBODY)))
    shared_with_viewer = (
        sa.select(sa.literal(1))
        .select_from(share_readers.join(shares, shares.c.id == share_readers.c.share_id))
        .where(shares.c.kind == kind, shares.c.object_id == object_id, shares.c.revoked_at.is_(None))
        .where(share_readers.c.identity == viewer.identity)
    )
    return sa.or_(mine.exists(), ~owned.exists(), shared_with_viewer.exists())


def changeable(kind: Kind, object_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """The SQL condition under which the viewer may change the object whose id is in this column."""
    if viewer.identity is None:
        return sa.true()
    return _owners(kind, object_id).where(object_owners.c.identity == viewer.identity).exists()


def _owners(kind: Kind, object_id: sa.ColumnElement[str]) -> sa.Select[Any]:
    named = sa.select(sa.literal(1)).select_from(object_owners)
    return named.where(object_owners.c.kind == kind, object_owners.c.object_id == object_id)


def refuse_others(connection: sa.Connection, kind: Kind, object_id: str, viewer: Viewer) -> None:
    """Raises `NotOwned` at the kind of the object unless the viewer may change it."""
    asked: sa.ColumnElement[str] = sa.literal(object_id)
    if not connection.execute(sa.select(changeable(kind, asked, viewer))).scalar_one():
        message = f"{object_id[:80]!r} belongs to another identity; accepted: the key that made it, or one with the scope admin"
        raise NotOwned.at(kind, message=message)


def read_owners(connection: sa.Connection, kind: Kind, object_id: str) -> tuple[str, ...]:
    """The identities that own the object; may include `EVERYBODY`."""
    one = sa.select(object_owners.c.identity).where(
        object_owners.c.kind == kind, object_owners.c.object_id == object_id
    )
    return tuple(connection.execute(one.order_by(object_owners.c.identity)).scalars())


def write_owner(connection: sa.Connection, kind: Kind, object_id: str, owner: str | None, *, is_new: bool) -> None:
    """Record the creator of an object in the transaction that stores it; None without keys.

    An object that already belonged to everybody (not `is_new`, and without owners) stays so when it is created again.
    """
    if owner is None and is_new:
        return
    if is_new or read_owners(connection, kind, object_id):
        row = {"kind": kind, "object_id": object_id, "identity": EVERYBODY if owner is None else owner}
        insert_or_ignore(connection, object_owners, row)


def forget_owners(connection: sa.Connection, kind: Kind, object_id: str) -> None:
    """Delete the owners and links of a deleted object."""
    linked = sa.select(shares.c.id).where(shares.c.kind == kind, shares.c.object_id == object_id)
    connection.execute(sa.delete(share_readers).where(share_readers.c.share_id.in_(linked)))
    connection.execute(sa.delete(shares).where(shares.c.kind == kind, shares.c.object_id == object_id))
    one = sa.and_(object_owners.c.kind == kind, object_owners.c.object_id == object_id)
    connection.execute(sa.delete(object_owners).where(one))


def forget_owners_of_missing(connection: sa.Connection, kind: Kind, existing_ids: sa.Select[tuple[str]]) -> None:
    """Delete the owners and links of all objects of a kind that no longer exist."""
    gone = sa.and_(shares.c.kind == kind, shares.c.object_id.not_in(existing_ids))
    connection.execute(sa.delete(share_readers).where(share_readers.c.share_id.in_(sa.select(shares.c.id).where(gone))))
    connection.execute(sa.delete(shares).where(gone))
    orphans = sa.and_(object_owners.c.kind == kind, object_owners.c.object_id.not_in(existing_ids))
    connection.execute(sa.delete(object_owners).where(orphans))
