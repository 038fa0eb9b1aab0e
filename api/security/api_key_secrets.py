"""API keys: `gpk_<id>_<secret>`, shown once; only the hash of the secret is stored.

The secret is 256 random bits, so a plain SHA-256 is enough: a slow hash only helps against guessable secrets.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from gpuplan.api.security.identity import SCOPES, Identity, with_lesser
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.catalog.store.access_store import StoredKey

#: The prefix identifies the format, so that leaked keys can be searched for in logs and repositories.
PREFIX = "gpk"
SESSION_PREFIX = "gps"
SHARE_PREFIX = "gpl"
_ID_BYTES, _SECRET_BYTES = 6, 32
_TEXT = re.compile(r"(gpk|gps|gpl)_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
MOST_NAME = 80
#: A key for more than a hundred years should have no expiry instead.
MOST_DAYS = 36_525


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A key, session or link as presented: its id and the hash of its secret."""

    id: str
    secret_hash: str

    def opens(self, secret_hash: str) -> bool:
        """Whether this hash matches, in constant time."""
        return hmac.compare_digest(self.secret_hash, secret_hash)


def new_secret(prefix: str, key_id: str | None = None) -> tuple[str, Presented]:
    """A new key, session or link as text, to be shown once, and its stored form."""
    key_id = key_id or secrets.token_hex(_ID_BYTES)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    return f"{prefix}_{key_id}_{secret}", Presented(id=key_id, secret_hash=hash_of(secret))


def presented(text: str, prefix: str = PREFIX) -> Presented | None:
    """The key, session or link in `text`, or None if it has another format."""
    match = _TEXT.fullmatch(text)
    if match is None or match[1] != prefix:
        return None
    return Presented(id=match[2], secret_hash=hash_of(match[3]))


def hash_of(secret: str) -> str:
    """The stored hash of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_key(
    *,
    name: str,
    scopes: tuple[str, ...],
    now: datetime,
    created_by: str,
    expires_at: datetime | None = None,
    requests_per_minute: int | None = None,
    plans_per_day: int | None = None,
) -> tuple[str, StoredKey]:
    """A new key as text, to be shown once, and its stored form. Raises `UnusableInput` naming each invalid field."""
    faults = []
    if not name.strip() or not name.isprintable() or len(name) > MOST_NAME:
        faults.append(Fault(("name",), f"is not a valid name; accepted: 1 to {MOST_NAME} printable characters"))
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        what = f"{unknown[0][:40]!r} is not a scope" if unknown else "is missing"
        faults.append(Fault(("scopes",), f"{what}; accepted: {', '.join(SCOPES)}, each including those before it"))
    if expires_at is not None and expires_at <= now:
        faults.append(Fault(("expires",), "is in the past; accepted: a duration such as 90d, or a future time"))
    for field, value in (("requests_per_minute", requests_per_minute), ("plans_per_day", plans_per_day)):
        if value is not None and not 0 < value < 2**31:
            faults.append(
                Fault((field,), "is not a valid limit; accepted: a whole number from 1, or nothing for the default")
            )
    if faults:
        raise UnusableInput(*faults)
    text, stored = new_secret(PREFIX)
    highest = max(scopes, key=SCOPES.index)
    return text, StoredKey(
        id=stored.id,
        name=name.strip(),
        secret_hash=stored.secret_hash,
        scopes=(highest,),
        created_at=now,
        created_by=created_by,
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        plans_per_day=plans_per_day,
    )


def identity_of(key: StoredKey, *, via: str = "key") -> Identity:
    """The identity of this key."""
    return Identity(
        id=f"key:{key.id}",
        name=key.name,
        scopes=with_lesser(key.scopes),
        via=via,
        requests_per_minute=key.requests_per_minute,
        plans_per_day=key.plans_per_day,
    )
