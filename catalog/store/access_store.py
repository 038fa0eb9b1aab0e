"""Keys, sessions, quotas and the audit log in the store: one transaction per method."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store import audit_log, quota_use, stored_keys
from gpuplan.catalog.store.audit_log import MOST_RECORDS, AuditRecord, StoredAudit, read_audit, write_audit
from gpuplan.catalog.store.quota_use import count_one
from gpuplan.catalog.store.store_part import StorePart, reads, writes
from gpuplan.catalog.store.stored_keys import (
    StoredKey,
    StoredSession,
    change_key,
    delete_session,
    read_key,
    write_key,
    write_session,
)


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

    find_key = reads(stored_keys.find_key)
    key = reads(stored_keys.read_key)
    every_key = reads(stored_keys.read_keys)
    has_valid_key = reads(stored_keys.has_valid_key)
    note_use = writes(stored_keys.note_use)
    find_session = reads(stored_keys.find_session)
    used = reads(quota_use.used)
    record = writes(audit_log.write_audit)

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
