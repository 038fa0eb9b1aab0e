"""Who did what: one row per plan, refresh, key, watch and run, and per login, and what was refused.

Rows are only added.

What retention lets go is deleted whole days at a time; nothing changes a row that is there.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from catalog.database import insert
from catalog.schema import audit

#: A page of the log never holds more.
MOST_RECORDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """`identity` (the id of who asked, with the `name`) did `action` to `subject`, by way of `via`.

    `outcome` is how it ended in a word or two; `request_id` and `address` are empty where there was no request.
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
    """A record with its number, which grows from one to the next."""

    number: int
    record: AuditRecord


def write_audit(connection: sa.Connection, record: AuditRecord) -> None:
    """Adds a record."""
    insert(connection, audit, {name: getattr(record, name) for name in AuditRecord.__slots__})


def read_audit(
    connection: sa.Connection,
    *,
    since: datetime | None = None,
    who: str | None = None,
    before: int | None = None,
    limit: int = MOST_RECORDS,
) -> tuple[StoredAudit, ...]:
    """The newest records first, `limit` of them, of those `since` a time, by `who` (an id or a name), `before` a number."""
    wanted = sa.select(audit).order_by(audit.c.number.desc()).limit(limit)
    if since is not None:
        wanted = wanted.where(audit.c.at >= since)
    if who is not None:
        wanted = wanted.where(sa.or_(audit.c.identity == who, audit.c.name == who))
    if before is not None:
        wanted = wanted.where(audit.c.number < before)
    return tuple(_record(row) for row in connection.execute(wanted))


def _record(row: sa.Row[tuple[object, ...]]) -> StoredAudit:
    values = {name: row._mapping[name] for name in AuditRecord.__slots__}
    return StoredAudit(number=row._mapping["number"], record=AuditRecord(**values))
