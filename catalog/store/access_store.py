"""Keys, sessions, quotas and the audit log in the store: one transaction per method.

Stored API keys and browser sessions: only the SHA-256 of a secret, never the secret.

A secret is 256 random bits, so its plain hash cannot be brute-forced. A session stores the hash of the key that opened it
and ends when that key's secret changes.

The audit log: one row per plan, refresh, key, watch, run, login and refusal.

Rows are append-only. Retention deletes whole days; nothing updates a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert, upsert
from gpuplan.catalog.store.schema import api_keys, audit, quota_use, sessions
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store_part import StorePart, reads, writes

#: The maximum page size of the log.
MOST_RECORDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """`identity` (the requester's id, with the `name`) performed `action` on `subject` through `via`.

    `outcome` is the result in a word or two; `request_id` and `address` are empty without a request.
    """

    at: datetime
    identity: str
    name: str
    via: str
    action: str
    subject: str
    outcome: str
    request_id: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAudit:
    """A record with its increasing number."""

    number: int
    record: AuditRecord


def write_audit(connection: sa.Connection, record: AuditRecord) -> None:
    """Add a record."""
    insert(connection, audit, record)


def read_audit(
    connection: sa.Connection,
    *,
    since: datetime | None = None,
    identity: str | None = None,
    before: int | None = None,
    limit: int = MOST_RECORDS,
) -> tuple[StoredAudit, ...]:
    """The newest records first, at most `limit`: `since` a time, by `identity` (an id or a name), `before` a number."""
    wanted = sa.select(audit).order_by(audit.c.number.desc()).limit(limit)
    if since is not None:
        wanted = wanted.where(audit.c.at >= since)
    if identity is not None:
        wanted = wanted.where(sa.or_(audit.c.identity == identity, audit.c.name == identity))
    if before is not None:
        wanted = wanted.where(audit.c.number < before)
    return tuple(_record(row) for row in connection.execute(wanted))


def _record(row: sa.Row[tuple[object, ...]]) -> StoredAudit:
    values = {name: row._mapping[name] for name in AuditRecord.__slots__}
    return StoredAudit(number=row._mapping["number"], record=AuditRecord(**values))


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
    insert(connection, api_keys, key)


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
    insert(connection, sessions, session)


def find_session(connection: sa.Connection, session_id: str) -> StoredSession | None:
    """The session with this id, or None."""
    row = connection.execute(sa.select(sessions).where(sessions.c.id == session_id)).first()
    return None if row is None else StoredSession(**row._mapping)


def delete_session(connection: sa.Connection, session_id: str) -> None:
    """End a session; a missing one counts as ended."""
    connection.execute(sa.delete(sessions).where(sessions.c.id == session_id))


class QuotaExceeded(Exception):
    """The identity has reached its daily number of plans; nothing is written."""

    def __init__(self, limit: int) -> None:
        """Stores the allowed number."""
        super().__init__(f"{limit} plans a day")
        self.limit = limit


def used(connection: sa.Connection, identity: str, day: date) -> int:
    """The number of plans of the identity on this day."""
    row = sa.select(quota_use.c.plans).where(quota_use.c.identity == identity, quota_use.c.day == day.isoformat())
    return connection.execute(row).scalar() or 0


def count_one(connection: sa.Connection, identity: str, now: datetime, limit: int | None) -> int:
    """Count one more plan in the open transaction and return today's total.

    Raises `QuotaExceeded` if it exceeds `limit`, which rolls the transaction back.
    """
    row = {"identity": identity, "day": now.date().isoformat(), "plans": 1}
    total = upsert(connection, quota_use, row, add="plans")
    if limit is not None and total > limit:
        raise QuotaExceeded(limit)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Written with a plan: its audit record, and the count against the daily `limit` (None: unlimited)."""

    record: AuditRecord
    counts_against_quota: bool = True
    limit: int | None = None

    def write(self, connection: sa.Connection) -> None:
        """Write in the plan's transaction. Raises `QuotaExceeded`, and then writes nothing."""
        if self.counts_against_quota:
            count_one(connection, self.record.identity, self.record.at, self.limit)
        write_audit(connection, self.record)


class AccessStore(StorePart):
    """Keys, sessions, quotas and the audit log."""

    find_key = reads(find_key)
    key = reads(read_key)
    every_key = reads(read_keys)
    has_valid_key = reads(has_valid_key)
    note_use = writes(note_use)
    find_session = reads(find_session)
    used = reads(used)
    record = writes(write_audit)

    def add_key(self, key: StoredKey, record: AuditRecord) -> None:
        """Store a new key and its audit record."""
        with self._writing() as connection:
            write_key(connection, key)
            write_audit(connection, record)

    def revoke_key(self, key_id: str, now: datetime, record: AuditRecord) -> StoredKey:
        """Revoke a key; one that is already revoked does not change. Raises `NotStored` at `key`."""
        with self._writing() as connection:
            read_key(connection, key_id)
            write_audit(connection, record)
            return change_key(connection, key_id, {"revoked_at": now})

    def rotate_key(self, key_id: str, secret_hash: str, record: AuditRecord) -> StoredKey:
        """Replace the key's secret, unless it is revoked. Raises `NotStored` at `key` if there is none."""
        with self._writing() as connection:
            write_audit(connection, record)
            return change_key(connection, key_id, {"secret_hash": secret_hash})

    def open_session(self, session: StoredSession, record: AuditRecord) -> None:
        """Store a session with its audit record, and delete expired sessions."""
        with self._writing() as connection:
            write_session(connection, session)
            write_audit(connection, record)

    def end_session(self, session_id: str, record: AuditRecord) -> None:
        """End a session and record it; a missing session counts as ended."""
        with self._writing() as connection:
            delete_session(connection, session_id)
            write_audit(connection, record)

    def charge(self, charge: Charge) -> None:
        """Count and record an action that writes nothing else. Raises `QuotaExceeded`, and then writes nothing."""
        with self._writing() as connection:
            charge.write(connection)

    def audit(
        self,
        *,
        since: datetime | None = None,
        identity: str | None = None,
        before: int | None = None,
        limit: int = MOST_RECORDS,
    ) -> tuple[StoredAudit, ...]:
        """The newest records first, at most `limit`: `since` a time, by `identity` (id or name), `before` a number."""
        with self._reading() as connection:
            return read_audit(connection, since=since, identity=identity, before=before, limit=limit)
