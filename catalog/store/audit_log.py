"""The audit log: one row per plan, refresh, key, watch, run, login and refusal.

Rows are append-only. Retention deletes whole days; nothing updates a row.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gpuplan.catalog.store.database import insert
from gpuplan.catalog.store.schema import audit

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
