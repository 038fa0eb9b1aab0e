"""Status of the snapshot in use: its age, and how the last refresh went."""

from datetime import UTC, datetime

from gpuplan.api.services.service_context import Document, ServiceContext, days_between


class StatusService:
    """Reports whether the service can answer."""

    def __init__(self, context: ServiceContext) -> None:
        """Report on the store of `context`."""
        self._context = context

    def readiness(self) -> Document:
        """Which snapshot is loaded and how old it is. Raises `StoreFailure` when the store cannot be read."""
        self._context.store.ping()
        columns = self._context.columns()
        now = datetime.now(UTC)
        return {
            "status": "ready",
            "snapshot_id": columns.snapshot_id,
            "offers": len(columns),
            "observed_at": columns.observed_at.isoformat(),
            "age_days": days_between(now, columns.observed_at),
            "last_refresh": self._last_refresh(now),
        }

    def _last_refresh(self, now: datetime) -> Document | None:
        """How the last refresh went and how long ago; None before the first."""
        last = self._context.store.last_refresh()
        if last is None:
            return None
        whole = self._context.store.last_whole_refresh_at()
        return {
            "id": last.id,
            "outcome": last.outcome,
            "finished_at": last.finished_at.isoformat(),
            "age_days": days_between(now, last.finished_at),
            "last_whole_age_days": None if whole is None else days_between(now, whole),
        }
