"""API keys: made, listed, revoked, and rotated to a new secret."""

from dataclasses import asdict
from datetime import UTC, datetime

from gpuplan.api.schemas.access import Key, Keys, NewKey
from gpuplan.api.security.authorization import record
from gpuplan.api.security.identity import SCOPES
from gpuplan.api.services.service_context import ContextService, Document, an_id
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.access_store import StoredKey


class KeyService(ContextService):
    """Makes, lists, revokes and rotates keys."""

    def make(self, document: Document, *, now: datetime | None = None) -> NewKey:
        """A new key with its text under `key`; no other answer holds the text."""
        from gpuplan.api.schemas.api_key import parse_key
        from gpuplan.api.security.api_key_secrets import new_key

        now = now or datetime.now(UTC)
        request = parse_key(document)
        creation = record("key.create", "", now)
        text, key = new_key(
            name=request.name,
            scopes=(request.scope,),
            now=now,
            created_by=creation.name,
            expires_at=request.expires_at(now),
            requests_per_minute=request.requests_per_minute,
            plans_per_day=request.plans_per_day,
        )
        self._context.store.access.add_key(key, record("key.create", key.id, now, outcome=request.scope))
        return NewKey(key=text, **asdict(shown_key(key, now)))

    def listed(self) -> Keys:
        """Every key without its secret, the oldest first."""
        now = datetime.now(UTC)
        return Keys(keys=tuple(shown_key(stored_key, now) for stored_key in self._context.store.access.every_key()))

    def revoke(self, key_id: str) -> Key:
        """Make a key useless from now on. A key revoked before does not change. Raises `NotStored` at `key`."""
        now = datetime.now(UTC)
        key_id = an_id(key_id, "key")
        return shown_key(self._context.store.access.revoke_key(key_id, now, record("key.revoke", key_id, now)), now)

    def rotate(self, key_id: str) -> NewKey:
        """A new secret for the same key, under `key`. The old secret stops working at once. Raises `NotStored`."""
        from gpuplan.api.security.api_key_secrets import PREFIX, new_secret

        now = datetime.now(UTC)
        key_id = an_id(key_id, "key")
        if not self._context.store.access.key(key_id).is_valid(now):
            message = "is revoked or has expired; accepted: a key that holds, or make a new one"
            raise UnusableInput.at("key", message=message)
        text, secret = new_secret(PREFIX, key_id)
        key = self._context.store.access.rotate_key(key_id, secret.secret_hash, record("key.rotate", key_id, now))
        return NewKey(key=text, **asdict(shown_key(key, now)))


def shown_key(key: StoredKey, now: datetime) -> Key:
    """A key without its secret."""
    return Key(
        id=key.id,
        name=key.name,
        scope=next(scope for scope in SCOPES if scope == key.scopes[0]),
        state="revoked" if key.revoked_at else "holds" if key.is_valid(now) else "expired",
        created_at=key.created_at.isoformat(),
        created_by=key.created_by,
        expires_at=_time(key.expires_at),
        revoked_at=_time(key.revoked_at),
        last_used_at=_time(key.last_used_at),
        requests_per_minute=key.requests_per_minute,
        plans_per_day=key.plans_per_day,
    )


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
