"""The part of the store that says who may ask, how much, and what was asked: each method one transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime

import sqlalchemy as sa

from catalog.audit import MOST_RECORDS, AuditRecord, StoredAudit, read_audit, write_audit
from catalog.keys import (
    StoredKey,
    StoredSession,
    any_key_holds,
    change_key,
    delete_session,
    find_key,
    find_session,
    note_use,
    read_key,
    read_keys,
    write_key,
    write_session,
)
from catalog.quota_use import count_one, used

Transaction = Callable[[], AbstractContextManager[sa.Connection]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What is written with a plan: its audit record, and that it counts against `limit` a day (None: without end)."""

    record: AuditRecord
    counted: bool = True
    limit: int | None = None

    def write(self, connection: sa.Connection) -> None:
        """In the plan's own transaction. Raises `QuotaExceeded`, and then nothing of it is written."""
        if self.counted:
            count_one(connection, self.record.identity, self.record.at, self.limit)
        write_audit(connection, self.record)


class AccessStore:
    """Keys, sessions, quotas and the audit log. Every method raises `StoreFailure` if the database cannot be used."""

    def __init__(self, *, reading: Transaction, writing: Transaction) -> None:
        """On the store's own ways to begin a transaction."""
        self._reading = reading
        self._writing = writing

    def add_key(self, key: StoredKey, record: AuditRecord) -> None:
        """Keeps a new key, with the record of it."""
        with self._writing() as connection:
            write_key(connection, key)
            write_audit(connection, record)

    def find_key(self, key_id: str) -> StoredKey | None:
        """The key with this id, None if there is none."""
        with self._reading() as connection:
            return find_key(connection, key_id)

    def key(self, key_id: str) -> StoredKey:
        """The key with this id. Raises `NotStored` at `key` if there is none."""
        with self._reading() as connection:
            return read_key(connection, key_id)

    def every_key(self) -> tuple[StoredKey, ...]:
        """Every key, the oldest first, also those that hold no more."""
        with self._reading() as connection:
            return read_keys(connection)

    def any_key_holds(self, now: datetime) -> bool:
        """Whether anybody could use a key now."""
        with self._reading() as connection:
            return any_key_holds(connection, now)

    def revoke_key(self, key_id: str, now: datetime, record: AuditRecord) -> StoredKey:
        """Nobody can use it from now on; one that was revoked before stays as it is. Raises `NotStored` at `key`."""
        with self._writing() as connection:
            read_key(connection, key_id)
            write_audit(connection, record)
            return change_key(connection, key_id, {"revoked_at": now})

    def rotate_key(self, key_id: str, secret_hash: str, record: AuditRecord) -> StoredKey:
        """Another secret from now on, unless it is revoked. Raises `NotStored` at `key` if there is none."""
        with self._writing() as connection:
            write_audit(connection, record)
            return change_key(connection, key_id, {"secret_hash": secret_hash})

    def note_use(self, key_id: str, now: datetime) -> None:
        """Notes that a key was used, at most once a minute."""
        with self._writing() as connection:
            note_use(connection, key_id, now)

    def open_session(self, session: StoredSession, record: AuditRecord) -> None:
        """Keeps a session with the record of it, and forgets those that have expired."""
        with self._writing() as connection:
            write_session(connection, session)
            write_audit(connection, record)

    def find_session(self, session_id: str) -> StoredSession | None:
        """The session with this id, None if there is none."""
        with self._reading() as connection:
            return find_session(connection, session_id)

    def end_session(self, session_id: str, record: AuditRecord) -> None:
        """Ends a session, with the record of it; one that is not there has ended already."""
        with self._writing() as connection:
            delete_session(connection, session_id)
            write_audit(connection, record)

    def used(self, identity: str, day: date) -> int:
        """How many plans the identity had on this day (UTC)."""
        with self._reading() as connection:
            return used(connection, identity, day)

    def charge(self, charge: Charge) -> None:
        """Counts and records what writes nothing else. Raises `QuotaExceeded`, and then nothing is written."""
        with self._writing() as connection:
            charge.write(connection)

    def record(self, record: AuditRecord) -> None:
        """Adds a record to the audit log."""
        with self._writing() as connection:
            write_audit(connection, record)

    def audit(
        self,
        *,
        since: datetime | None = None,
        who: str | None = None,
        before: int | None = None,
        limit: int = MOST_RECORDS,
    ) -> tuple[StoredAudit, ...]:
        """The newest records first: `since` a time, by `who` (an id or a name), `before` a number, `limit` of them."""
        with self._reading() as connection:
            return read_audit(connection, since=since, who=who, before=before, limit=limit)
