"""Whose a stored object is, and who may read or change it.

An object has the owners who made it. Its owners and admins may change it; they may read it, and so may whoever has
opened a link to it that is not revoked. One without an owner was made before there were owners, or where no keys were
in force: everybody may read it, and admins alone may change it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from catalog.database import insert_or_keep
from catalog.errors import UnusableInput
from catalog.schema import object_owners, share_readers, shares

Kind = Literal["plan", "run", "watch"]
KINDS: tuple[Kind, ...] = ("plan", "run", "watch")
#: The owner of what is everybody's, although others have made it too.
EVERYBODY = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at or changes an object: an identity, or None for one who may do so with all of them."""

    identity: str | None


#: The user of this machine, and admins.
UNRESTRICTED = Viewer(None)


class NotOwned(UnusableInput):
    """Whoever asks may read the object, and yet not change it."""


def readable(kind: Kind, object_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """The condition under which the viewer may read the object whose id stands in this column."""
    if viewer.identity is None:
        return sa.true()
    owned = _owners(kind, object_id)
    mine = owned.where(object_owners.c.identity.in_((viewer.identity, EVERYBODY)))
    opened = (
        sa.select(sa.literal(1))
        .select_from(share_readers.join(shares, shares.c.id == share_readers.c.share_id))
        .where(shares.c.kind == kind, shares.c.object_id == object_id, shares.c.revoked_at.is_(None))
        .where(share_readers.c.identity == viewer.identity)
    )
    return sa.or_(mine.exists(), ~owned.exists(), opened.exists())


def changeable(kind: Kind, object_id: sa.ColumnElement[str], viewer: Viewer) -> sa.ColumnElement[bool]:
    """The condition under which the viewer may change the object whose id stands in this column."""
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
    """The identities whose the object is; `EVERYBODY` may be among them."""
    one = sa.select(object_owners.c.identity).where(
        object_owners.c.kind == kind, object_owners.c.object_id == object_id
    )
    return tuple(connection.execute(one.order_by(object_owners.c.identity)).scalars())


def write_owner(connection: sa.Connection, kind: Kind, object_id: str, owner: str | None, *, is_new: bool) -> None:
    """Notes who has made an object, in the transaction that keeps it; None where no keys are in force.

    An object that was everybody's before (not `is_new`, and without owners) stays so, whoever makes it again.
    """
    if owner is None and is_new:
        return
    if is_new or read_owners(connection, kind, object_id):
        row = {"kind": kind, "object_id": object_id, "identity": EVERYBODY if owner is None else owner}
        insert_or_keep(connection, object_owners, row)


def forget_owners(connection: sa.Connection, kind: Kind, object_id: str) -> None:
    """Forgets whose an object was that is gone, and every link to it."""
    linked = sa.select(shares.c.id).where(shares.c.kind == kind, shares.c.object_id == object_id)
    connection.execute(sa.delete(share_readers).where(share_readers.c.share_id.in_(linked)))
    connection.execute(sa.delete(shares).where(shares.c.kind == kind, shares.c.object_id == object_id))
    one = sa.and_(object_owners.c.kind == kind, object_owners.c.object_id == object_id)
    connection.execute(sa.delete(object_owners).where(one))


def forget_owners_of_missing(connection: sa.Connection, kind: Kind, kept_ids: sa.Select[tuple[str]]) -> None:
    """Forgets the owners of all objects of a kind that are not among those kept, and every link to them."""
    gone = sa.and_(shares.c.kind == kind, shares.c.object_id.not_in(kept_ids))
    connection.execute(sa.delete(share_readers).where(share_readers.c.share_id.in_(sa.select(shares.c.id).where(gone))))
    connection.execute(sa.delete(shares).where(gone))
    orphans = sa.and_(object_owners.c.kind == kind, object_owners.c.object_id.not_in(kept_ids))
    connection.execute(sa.delete(object_owners).where(orphans))
