"""Status of the snapshot in use: its age, and how the last refresh went."""

from dataclasses import dataclass
from datetime import UTC, datetime

from gpuplan.api.services.service_context import ContextService, days_between


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRefresh:
    """How the last refresh went and how many days ago, and the last whole one, None before the first."""

    id: str
    outcome: str
    finished_at: str
    age_days: float
    last_whole_age_days: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStatus:
    """Which snapshot is loaded, its age, and the last refresh, None before the first."""

    snapshot_id: str
    offers: int
    observed_at: str
    age_days: float
    last_refresh: LastRefresh | None


class StatusService(ContextService):
    """Reports whether the service can answer."""

    def readiness(self) -> SnapshotStatus:
        """Which snapshot is loaded and how old it is. Raises `StoreFailure` when the store cannot be read."""
        self._context.store.ping()
        columns = self._context.columns()
        now = datetime.now(UTC)
        return SnapshotStatus(
            snapshot_id=columns.snapshot_id,
            offers=len(columns),
            observed_at=columns.observed_at.isoformat(),
            age_days=days_between(now, columns.observed_at),
            last_refresh=self._last_refresh(now),
        )

    def _last_refresh(self, now: datetime) -> LastRefresh | None:
        last = self._context.store.last_refresh()
        if last is None:
            return None
        whole = self._context.store.last_whole_refresh_at()
        return LastRefresh(
            id=last.id,
            outcome=last.outcome,
            finished_at=last.finished_at.isoformat(),
            age_days=days_between(now, last.finished_at),
            last_whole_age_days=None if whole is None else days_between(now, whole),
        )
