"""API keys and the sessions that browsers open with them, as they are stored: never a secret, only its SHA-256.

A secret is 256 random bits, so that its plain hash cannot be searched for; a session holds the hash of the key that
opened it, and ends with that key's secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from catalog.schema import api_keys, sessions
from catalog.snapshot_list import NotStored

#: `last_used_at` is no more exact than this, so that a busy key does not write with each request.
USE_IS_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A key without its secret. `requests_per_minute` and `plans_per_day` are None where the service's own hold."""

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

    def holds(self, now: datetime) -> bool:
        """Whether it may be used."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A browser that has logged in with a key."""

    id: str
    secret_hash: str
    key_id: str
    key_hash: str
    created_at: datetime
    expires_at: datetime


def write_key(connection: sa.Connection, key: StoredKey) -> None:
    """Keeps a new key."""
    connection.execute(sa.insert(api_keys), {name: getattr(key, name) for name in StoredKey.__slots__})


def find_key(connection: sa.Connection, key_id: str) -> StoredKey | None:
    """The key with this id, None if there is none."""
    row = connection.execute(sa.select(api_keys).where(api_keys.c.id == key_id)).first()
    return None if row is None else StoredKey(**row._mapping)


def read_key(connection: sa.Connection, key_id: str) -> StoredKey:
    """The key with this id. Raises `NotStored` at `key` if there is none."""
    found = find_key(connection, key_id)
    if found is None:
        raise NotStored.at("key", message=f"no key {key_id[:80]!r} is stored here; accepted: the id of a key")
    return found


def read_keys(connection: sa.Connection) -> tuple[StoredKey, ...]:
    """Every key, the oldest first, also those that hold no more."""
    rows = connection.execute(sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
    return tuple(StoredKey(**row._mapping) for row in rows)


def any_key_holds(connection: sa.Connection, now: datetime) -> bool:
    """Whether anybody could use a key now."""
    return any(key.holds(now) for key in read_keys(connection))


def change_key(connection: sa.Connection, key_id: str, values: Mapping[str, Any]) -> StoredKey:
    """Puts other values into a key that is not revoked, and gives it. Raises `NotStored` at `key` if there is none."""
    live = sa.update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    connection.execute(live.values(**values))
    return read_key(connection, key_id)


def note_use(connection: sa.Connection, key_id: str, now: datetime) -> None:
    """Notes that a key was used, unless that was noted within the last minute."""
    stale = sa.or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < now - USE_IS_NOTED_EVERY)
    connection.execute(sa.update(api_keys).where(api_keys.c.id == key_id, stale).values(last_used_at=now))


def write_session(connection: sa.Connection, session: StoredSession) -> None:
    """Keeps a session, and forgets those that have expired."""
    connection.execute(sa.delete(sessions).where(sessions.c.expires_at <= session.created_at))
    connection.execute(sa.insert(sessions), {name: getattr(session, name) for name in StoredSession.__slots__})


def find_session(connection: sa.Connection, session_id: str) -> StoredSession | None:
    """The session with this id, None if there is none."""
    row = connection.execute(sa.select(sessions).where(sessions.c.id == session_id)).first()
    return None if row is None else StoredSession(**row._mapping)


def delete_session(connection: sa.Connection, session_id: str) -> None:
    """Ends a session; one that is not there has ended already."""
    connection.execute(sa.delete(sessions).where(sessions.c.id == session_id))
