"""Stored API keys and browser sessions: only the SHA-256 of a secret, never the secret.

A secret is 256 random bits, so its plain hash cannot be brute-forced. A session stores the hash of the key that opened it
and ends when that key's secret changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.schema import api_keys, sessions
from gpuplan.catalog.store.snapshot_list import NotStored

#: Resolution of `last_used_at`, so that a busy key does not write on each request.
USE_IS_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A key without its secret. `requests_per_minute` and `plans_per_day` are None for the service's defaults."""

    id: str
    name: str
    secret_hash: str
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    requests_per_minute: int | None = None
    plans_per_day: int | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether the key is valid."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A browser session opened with a key."""

    id: str
    secret_hash: str
    key_id: str
    key_hash: str
    created_at: datetime
    expires_at: datetime


def write_key(connection: sa.Connection, key: StoredKey) -> None:
    """Store a new key."""
    connection.execute(sa.insert(api_keys), {name: getattr(key, name) for name in StoredKey.__slots__})


def find_key(connection: sa.Connection, key_id: str) -> StoredKey | None:
    """The key with this id, or None."""
    row = connection.execute(sa.select(api_keys).where(api_keys.c.id == key_id)).first()
    return None if row is None else StoredKey(**row._mapping)


def read_key(connection: sa.Connection, key_id: str) -> StoredKey:
    """The key with this id. Raises `NotStored` at `key` if there is none."""
    key = find_key(connection, key_id)
    if key is None:
        raise NotStored.at("key", message=f"no key {key_id[:80]!r} is stored here; accepted: the id of a key")
    return key


def read_keys(connection: sa.Connection) -> tuple[StoredKey, ...]:
    """Every key, oldest first, including expired and revoked ones."""
    rows = connection.execute(sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
    return tuple(StoredKey(**row._mapping) for row in rows)


def has_valid_key(connection: sa.Connection, now: datetime) -> bool:
    """Whether any key is currently valid."""
    return any(key.is_valid(now) for key in read_keys(connection))


def change_key(connection: sa.Connection, key_id: str, values: Mapping[str, Any]) -> StoredKey:
    """Update a key that is not revoked and return it. Raises `NotStored` at `key` if there is none."""
    live = sa.update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    connection.execute(live.values(**values))
    return read_key(connection, key_id)


def note_use(connection: sa.Connection, key_id: str, now: datetime) -> None:
    """Record that a key was used, unless recorded within the last minute."""
    stale = sa.or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < now - USE_IS_NOTED_EVERY)
    connection.execute(sa.update(api_keys).where(api_keys.c.id == key_id, stale).values(last_used_at=now))


def write_session(connection: sa.Connection, session: StoredSession) -> None:
    """Store a session, and delete expired ones."""
    connection.execute(sa.delete(sessions).where(sessions.c.expires_at <= session.created_at))
    connection.execute(sa.insert(sessions), {name: getattr(session, name) for name in StoredSession.__slots__})


def find_session(connection: sa.Connection, session_id: str) -> StoredSession | None:
    """The session with this id, or None."""
    row = connection.execute(sa.select(sessions).where(sessions.c.id == session_id)).first()
    return None if row is None else StoredSession(**row._mapping)


def delete_session(connection: sa.Connection, session_id: str) -> None:
    """End a session; a missing one counts as ended."""
    connection.execute(sa.delete(sessions).where(sessions.c.id == session_id))
