"""The audit log: who did what."""

from dataclasses import asdict, dataclass
from datetime import datetime

from gpuplan.api.schemas.access import AuditEntry
from gpuplan.api.services.service_context import ContextService, an_id
from gpuplan.catalog.store.access_store import StoredAudit


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Records, the newest first, and the number below which older ones follow (None: there are none)."""

    records: tuple[AuditEntry, ...]
    before: int | None


class AuditLogService(ContextService):
    """Reads the audit log."""

    def page(
        self,
        *,
        since: datetime | None = None,
        identity: str | None = None,
        before: int | None = None,
        limit: int = 1_000,
    ) -> AuditPage:
        """Who did what, the newest first. `before` is the number of the last record of the page before."""
        identity = an_id(identity, "who") if identity is not None else None
        stored = self._context.store.access.audit(since=since, identity=identity, before=before, limit=limit + 1)
        last = stored[limit - 1].number if len(stored) > limit else None
        return AuditPage(records=tuple(shown_record(row) for row in stored[:limit]), before=last)


def shown_record(stored: StoredAudit) -> AuditEntry:
    """A record of the audit log under its number."""
    return AuditEntry(number=stored.number, **asdict(stored.record) | {"at": stored.record.at.isoformat()})
