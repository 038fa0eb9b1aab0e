"""Links by which others may read a plan, run or watch: made, listed, revoked by its owners, opened by anybody with a key."""

from datetime import UTC, datetime

from api.identity.asking import keys_in_force, record, viewer
from api.questions.opened import Document, Opened, an_id
from catalog.ownership import Kind, NotOwned
from catalog.shares import Share
from catalog.snapshot_list import NotStored

#: Where the page opens a link.
OPENED_AT = "/shared/"


class Shares(Opened):
    """Questions about links."""

    def share(self, document: Document, *, now: datetime | None = None) -> Document:
        """A new link to an object of who is asking: the only answer that ever holds it, under `link`.

        Raises `NotStored` if there is no such object, `NotOwned` if it is somebody else's.
        """
        from api.documents.share import parse_share
        from api.identity.keys import SHARE_PREFIX, new_secret

        now = now or datetime.now(UTC)
        kind, object_id = parse_share(document)
        text, kept = new_secret(SHARE_PREFIX)
        noted = record("share.make", f"{kept.id} to {object_id}", now)
        share = Share(
            id=kept.id,
            secret_hash=kept.secret_hash,
            kind=kind,
            object_id=an_id(object_id, kind),
            created_by=noted.name,
            created_at=now,
        )
        self.store.shares.add(share, viewer(), noted)
        return {"link": f"{OPENED_AT}{text}"} | shown_share(share)

    def shares(self) -> Document:
        """Every link to what belongs to who is asking, without its secret, the oldest first."""
        return {"shares": [shown_share(each) for each in self.store.shares.of(viewer())]}

    def shares_of(self, kind: Kind, object_id: str) -> list[Document]:
        """The links to one object that hold. Raises `NotStored` or `NotOwned` as `share` would."""
        self.store.shares.refuse(kind, an_id(object_id, kind), viewer())
        live = [each for each in self.shares()["shares"] if each["revoked_at"] is None]
        return [each for each in live if (each["kind"], each["object_id"]) == (kind, object_id)]

    def may_share(self, kind: Kind, object_id: str) -> bool:
        """Whether who is asking may make a link to the object: with keys in force, where it is theirs."""
        if not keys_in_force():
            return False
        try:
            self.store.shares.refuse(kind, an_id(object_id, kind), viewer())
        except (NotStored, NotOwned):
            return False
        return True

    def revoke_share(self, share_id: str, *, now: datetime | None = None) -> Document:
        """Nobody reads by this link any more, also who has opened it. Raises `NotStored` for none of who is asking."""
        now = now or datetime.now(UTC)
        share_id = an_id(share_id, "share")
        return shown_share(self.store.shares.revoke(share_id, now, viewer(), record("share.revoke", share_id, now)))

    def open_share(self, link: str) -> tuple[Kind, str]:
        """What the link leads to, which who is asking may read from now on. Raises `NotStored` at `link` otherwise."""
        from api.identity.keys import SHARE_PREFIX, presented

        shown = presented(link.strip().rpartition("/")[2], SHARE_PREFIX)
        found = self.store.shares.find(shown.id) if shown is not None else None
        if shown is None or found is None or not shown.opens(found.secret_hash) or found.revoked_at is not None:
            message = "leads nowhere, or was revoked; accepted: a link that holds, ask whoever sent it for another"
            raise NotStored.at("link", message=message)
        reader = viewer().identity
        if reader is not None:
            noted = record("share.open", f"{found.id} to {found.object_id}", datetime.now(UTC))
            self.store.shares.opened(found.id, reader, noted)
        return found.kind, found.object_id


def shown_share(share: Share) -> Document:
    """A link as JSON, without its secret."""
    return {
        "id": share.id,
        "kind": share.kind,
        "object_id": share.object_id,
        "created_at": share.created_at.isoformat(),
        "created_by": share.created_by,
        "revoked_at": share.revoked_at.isoformat() if share.revoked_at else None,
    }
