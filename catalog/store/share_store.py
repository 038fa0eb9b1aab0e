"""Share links in the store: one transaction per method."""

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store import stored_shares
from gpuplan.catalog.store.audit_log import AuditRecord, write_audit
from gpuplan.catalog.store.ownership import Kind, Viewer, refuse_others
from gpuplan.catalog.store.saved_answers import read_plan
from gpuplan.catalog.store.store_part import StorePart, reads
from gpuplan.catalog.store.stored_runs import read_run
from gpuplan.catalog.store.stored_shares import Share, no_share, read_shares, revoke_share, write_reader, write_share
from gpuplan.catalog.store.stored_watches import read_watch

_READ: dict[Kind, Callable[[sa.Connection, str, Viewer], object]] = {
    "plan": read_plan,
    "run": read_run,
    "watch": read_watch,
}


class ShareStore(StorePart):
    """The share links in the store."""

    of = reads(stored_shares.read_shares)
    find = reads(stored_shares.find_share)

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
