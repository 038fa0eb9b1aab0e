"""What may be asked of access itself: keys made, listed, revoked, given another secret; and who did what."""

from dataclasses import dataclass
from datetime import UTC, datetime

from api.identity.asking import charge, counting, record, refuse_used_up
from api.questions.opened import Document, Opened, an_id
from catalog.audit import StoredAudit
from catalog.errors import UnusableInput
from catalog.keys import StoredKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Records, the newest first, and the number below which older ones come (None: there are none)."""

    records: tuple[Document, ...]
    before: int | None


class AccessQuestions(Opened):
    """Questions about keys and the audit log."""

    def make_key(self, document: Document, *, now: datetime | None = None) -> Document:
        """A new key: the only answer that ever holds it, under `key`."""
        from api.documents.key import parse_key
        from api.identity.keys import new_key

        now = now or datetime.now(UTC)
        asked = parse_key(document)
        by = record("key.create", "", now)
        text, key = new_key(
            name=asked.name,
            scopes=(asked.scope,),
            now=now,
            created_by=by.name,
            expires_at=asked.expires_at(now),
            requests_per_minute=asked.requests_per_minute,
            plans_per_day=asked.plans_per_day,
        )
        self.store.access.add_key(key, record("key.create", key.id, now, outcome=asked.scope))
        return {"key": text} | shown_key(key, now)

    def keys(self, *, now: datetime | None = None) -> Document:
        """Every key without its secret, the oldest first."""
        now = now or datetime.now(UTC)
        return {"keys": [shown_key(each, now) for each in self.store.access.every_key()]}

    def revoke_key(self, key_id: str, *, now: datetime | None = None) -> Document:
        """Nobody can use it from now on; one revoked before stays as it is. Raises `NotStored` at `key`."""
        now = now or datetime.now(UTC)
        key_id = an_id(key_id, "key")
        return shown_key(self.store.access.revoke_key(key_id, now, record("key.revoke", key_id, now)), now)

    def rotate_key(self, key_id: str, *, now: datetime | None = None) -> Document:
        """Another secret for the same key, under `key`; the one before opens nothing from now on. Raises `NotStored`."""
        from api.identity.keys import PREFIX, new_secret

        now = now or datetime.now(UTC)
        key_id = an_id(key_id, "key")
        if not self.store.access.key(key_id).holds(now):
            message = "is revoked or has expired; accepted: a key that holds, or make a new one"
            raise UnusableInput.at("key", message=message)
        text, kept = new_secret(PREFIX, key_id)
        key = self.store.access.rotate_key(key_id, kept.secret_hash, record("key.rotate", key_id, now))
        return {"key": text} | shown_key(key, now)

    def audit(
        self,
        *,
        since: datetime | None = None,
        who: str | None = None,
        before: int | None = None,
        limit: int = 1_000,
    ) -> AuditPage:
        """Who did what, the newest first."""
        who = an_id(who, "who") if who is not None else None
        found = self.store.access.audit(since=since, who=who, before=before, limit=limit + 1)
        more = found[limit - 1].number if len(found) > limit else None
        return AuditPage(records=tuple(shown_record(each) for each in found[:limit]), before=more)

    def count_plan(self, action: str, subject: str) -> None:
        """Write down a long question, which counts as a plan. Raises `QuotaExceeded`."""
        now = datetime.now(UTC)
        refuse_used_up(now)
        with counting(now):
            self.store.access.charge(charge(action, subject, now, outcome="started"))


def shown_key(key: StoredKey, now: datetime) -> Document:
    """A key as JSON, without its secret."""
    state = "revoked" if key.revoked_at else "holds" if key.holds(now) else "expired"
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scopes[0],
        "state": state,
        "created_at": key.created_at.isoformat(),
        "created_by": key.created_by,
        "expires_at": _time(key.expires_at),
        "revoked_at": _time(key.revoked_at),
        "last_used_at": _time(key.last_used_at),
        "requests_per_minute": key.requests_per_minute,
        "plans_per_day": key.plans_per_day,
    }


def shown_record(stored: StoredAudit) -> Document:
    """A record of the audit log as JSON."""
    each = stored.record
    return {
        "number": stored.number,
        "at": each.at.isoformat(),
        "identity": each.identity,
        "name": each.name,
        "via": each.via,
        "action": each.action,
        "subject": each.subject,
        "outcome": each.outcome,
        "request_id": each.request_id,
        "address": each.address,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
