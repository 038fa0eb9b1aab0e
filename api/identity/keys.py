"""API keys: `gpk_<id>_<secret>`, shown once; of the secret only its hash is kept.

The secret is 256 random bits, so a plain SHA-256 is enough: there is nothing to guess that a slow hash would protect.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from api.identity.who import SCOPES, Identity, with_lesser
from catalog.errors import Fault, UnusableInput
from catalog.keys import StoredKey

#: The first part says what it is, so that a key that leaks into a log or a repository can be searched for.
PREFIX = "gpk"
SESSION_PREFIX = "gps"
SHARE_PREFIX = "gpl"
_ID_BYTES, _SECRET_BYTES = 6, 32
_TEXT = re.compile(r"(gpk|gps|gpl)_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
MOST_NAME = 80
#: Beyond a hundred years somebody means for ever, and leaves the expiry out.
MOST_DAYS = 36_525


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A key, session or link as somebody shows it: which, and the hash of its secret."""

    id: str
    secret_hash: str

    def opens(self, secret_hash: str) -> bool:
        """Whether this is the one with that hash; takes as long either way."""
        return hmac.compare_digest(self.secret_hash, secret_hash)


def new_secret(prefix: str, key_id: str | None = None) -> tuple[str, Presented]:
    """A new key, session or link as text, to be shown once, and what is kept of it."""
    key_id = key_id or secrets.token_hex(_ID_BYTES)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    return f"{prefix}_{key_id}_{secret}", Presented(id=key_id, secret_hash=hash_of(secret))


def presented(text: str, prefix: str = PREFIX) -> Presented | None:
    """The key, session or link in `text`, None if that is none."""
    found = _TEXT.fullmatch(text)
    if found is None or found[1] != prefix:
        return None
    return Presented(id=found[2], secret_hash=hash_of(found[3]))


def hash_of(secret: str) -> str:
    """The hash that is kept of a secret."""
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
    """A new key as text, to be shown once, and as it is kept. Raises `UnusableInput` naming each field at fault."""
    faults = []
    if not name.strip() or not name.isprintable() or len(name) > MOST_NAME:
        faults.append(Fault(("name",), f"is no name; accepted: 1 to {MOST_NAME} printable characters"))
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        what = f"{unknown[0][:40]!r} is no scope" if unknown else "is missing"
        faults.append(Fault(("scopes",), f"{what}; accepted: {', '.join(SCOPES)}, each with those before it"))
    if expires_at is not None and expires_at <= now:
        faults.append(Fault(("expires",), "lies in the past; accepted: a duration such as 90d, or a time to come"))
    for field, value in (("requests_per_minute", requests_per_minute), ("plans_per_day", plans_per_day)):
        if value is not None and not 0 < value < 2**31:
            faults.append(Fault((field,), "is no limit; accepted: a whole number from 1, or nothing for the usual"))
    if faults:
        raise UnusableInput(*faults)
    text, kept = new_secret(PREFIX)
    highest = max(scopes, key=SCOPES.index)
    return text, StoredKey(
        id=kept.id,
        name=name.strip(),
        secret_hash=kept.secret_hash,
        scopes=(highest,),
        created_at=now,
        created_by=created_by,
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        plans_per_day=plans_per_day,
    )


def identity_of(key: StoredKey, *, via: str = "key") -> Identity:
    """Who asks with this key."""
    return Identity(
        id=f"key:{key.id}",
        name=key.name,
        scopes=with_lesser(key.scopes),
        via=via,
        requests_per_minute=key.requests_per_minute,
        plans_per_day=key.plans_per_day,
    )
