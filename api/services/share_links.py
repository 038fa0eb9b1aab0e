"""Links that let other key holders read a plan, run or watch: made, listed, revoked and opened."""

from dataclasses import asdict
from datetime import UTC, datetime

from gpuplan.api.schemas.access import NewShare, Share, Shares
from gpuplan.api.security.authorization import keys_in_force, record, viewer
from gpuplan.api.services.service_context import ContextService, Document, an_id
from gpuplan.catalog.store import share_store
from gpuplan.catalog.store.ownership import Kind, NotOwned
from gpuplan.catalog.store.snapshot_list import NotStored

#: Path at which the web page opens a link.
SHARED_PATH = "/shared/"


class ShareService(ContextService):
    """Makes, lists, revokes and opens links."""

    def make(self, document: Document, *, now: datetime | None = None) -> NewShare:
        """A new link to an object of the requester, under `link`; no other answer holds the link.

        Raises `NotStored` if there is no such object, `NotOwned` if it belongs to another owner.
        """
        from gpuplan.api.schemas.share_link import parse_share
        from gpuplan.api.security.api_key_secrets import SHARE_PREFIX, new_secret

        now = now or datetime.now(UTC)
        kind, object_id = parse_share(document)
        text, secret = new_secret(SHARE_PREFIX)
        entry = record("share.make", f"{secret.id} to {object_id}", now)
        share = share_store.Share(
            id=secret.id,
            secret_hash=secret.secret_hash,
            kind=kind,
            object_id=an_id(object_id, kind),
            created_by=entry.name,
            created_at=now,
        )
        self._context.store.shares.add(share, viewer(), entry)
        return NewShare(link=f"{SHARED_PATH}{text}", **asdict(shown_share(share)))

    def listed(self) -> Shares:
        """Every link to objects of the requester, without its secret, the oldest first."""
        return Shares(shares=tuple(shown_share(share) for share in self._context.store.shares.of(viewer())))

    def of_object(self, kind: Kind, object_id: str) -> list[Share]:
        """The links to one object that are not revoked. Raises `NotStored` or `NotOwned` as `make` does."""
        self._context.store.shares.refuse(kind, an_id(object_id, kind), viewer())
        live = [share for share in self.listed().shares if share.revoked_at is None]
        return [share for share in live if (share.kind, share.object_id) == (kind, object_id)]

    def may_share(self, kind: Kind, object_id: str) -> bool:
        """Whether the requester may make a link to the object: they own it, and the service requires keys."""
        if not keys_in_force():
            return False
        try:
            self._context.store.shares.refuse(kind, an_id(object_id, kind), viewer())
        except (NotStored, NotOwned):
            return False
        return True

    def revoke(self, share_id: str) -> Share:
        """End a link, also for readers who have opened it. Raises `NotStored` if the requester has no such link."""
        now = datetime.now(UTC)
        share_id = an_id(share_id, "share")
        return shown_share(
            self._context.store.shares.revoke(share_id, now, viewer(), record("share.revoke", share_id, now))
        )

    def open(self, link: str) -> tuple[Kind, str]:
        """The object of a link, which the requester may read from now on. Raises `NotStored` at `link` for no such link."""
        from gpuplan.api.security.api_key_secrets import SHARE_PREFIX, presented

        shown = presented(link.strip().rpartition("/")[2], SHARE_PREFIX)
        share = self._context.store.shares.find(shown.id) if shown is not None else None
        if shown is None or share is None or not shown.opens(share.secret_hash) or share.revoked_at is not None:
            message = (
                "leads nowhere: it was revoked, or what it led to is not stored any more (plans are deleted after a time, with "
                "their links); ask whoever sent it for another"
            )
            raise NotStored.at("link", message=message)
        reader = viewer().identity
        if reader is not None:
            entry = record("share.open", f"{share.id} to {share.object_id}", datetime.now(UTC))
            self._context.store.shares.add_reader(share.id, reader, entry)
        return share.kind, share.object_id


def shown_share(share: share_store.Share) -> Share:
    """A link without its secret."""
    return Share(
        id=share.id,
        kind=share.kind,
        object_id=share.object_id,
        created_at=share.created_at.isoformat(),
        created_by=share.created_by,
        revoked_at=share.revoked_at.isoformat() if share.revoked_at else None,
    )
