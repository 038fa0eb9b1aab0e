"""Links to objects in the store: each method one transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

import sqlalchemy as sa

from catalog.audit import AuditRecord, write_audit
from catalog.ownership import Kind, Viewer, refuse_others
from catalog.runs import read_run
from catalog.saved import read_plan
from catalog.shares import Share, find_share, no_share, read_shares, revoke_share, write_reader, write_share
from catalog.watches import read_watch

Transaction = Callable[[], AbstractContextManager[sa.Connection]]

_READ: dict[Kind, Callable[[sa.Connection, str, Viewer], object]] = {
    "plan": read_plan,
    "run": read_run,
    "watch": read_watch,
}


class ShareStore:
    """The part of a store that links live in. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing

    def add(self, share: Share, viewer: Viewer, record: AuditRecord) -> None:
        """Keeps a link to an object that is the viewer's, with the record of it.

        Raises `NotStored` if there is no such object that the viewer may read, `NotOwned` if it is another's.
        """
        with self._writing() as connection:
            _refuse(connection, share.kind, share.object_id, viewer)
            write_share(connection, share)
            write_audit(connection, record)

    def refuse(self, kind: Kind, object_id: str, viewer: Viewer) -> None:
        """Raises as `add` would."""
        with self._reading() as connection:
            _refuse(connection, kind, object_id, viewer)

    def of(self, viewer: Viewer) -> tuple[Share, ...]:
        """Links to objects that are the viewer's, the oldest first, revoked ones among them."""
        with self._reading() as connection:
            return read_shares(connection, viewer)

    def find(self, share_id: str) -> Share | None:
        """The link with this id, revoked or not; None if there is none."""
        with self._reading() as connection:
            return find_share(connection, share_id)

    def revoke(self, share_id: str, now: datetime, viewer: Viewer, record: AuditRecord) -> Share:
        """Nobody may read by this link from now on. Raises `NotStored` at `share` if the viewer has no such link."""
        with self._writing() as connection:
            if share_id not in {each.id for each in read_shares(connection, viewer)}:
                raise no_share(share_id)
            write_audit(connection, record)
            return revoke_share(connection, share_id, now)

    def opened(self, share_id: str, identity: str, record: AuditRecord) -> None:
        """This identity may read what the link leads to from now on, until it is revoked; recorded the first time."""
        with self._writing() as connection:
            if write_reader(connection, share_id, identity):
                write_audit(connection, record)


def _refuse(connection: sa.Connection, kind: Kind, object_id: str, viewer: Viewer) -> None:
    _READ[kind](connection, object_id, viewer)
    refuse_others(connection, kind, object_id, viewer)
