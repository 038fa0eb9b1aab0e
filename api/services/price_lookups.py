"""Prices over time, and what one snapshot changes against another."""

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.services.price_history import DiffPage, HistoryFilter, PricePage, compared, diff_page, price_page
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.store.snapshot_list import StoredSnapshot


class PriceHistoryService(ContextService):
    """Reads stored prices and compares snapshots."""

    def prices(
        self, wanted: HistoryFilter, *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> PricePage:
        """Prices of one instance type over time, up to a snapshot (by default the current one)."""
        last = self.last_snapshot(snapshot)
        return price_page(self._context.store, wanted, snapshot_id=last, start=start, limit=limit)

    def last_snapshot(self, snapshot: str | None) -> str:
        """The id of the snapshot with which a history ends: the current one by default. Raises `NotStored`."""
        store = self._context.store
        return store.find_snapshot(store.current_snapshot_id() if snapshot is None else snapshot).id

    def version(self, last: str) -> str:
        """Identifies what a history up to snapshot `last` depends on: all stored snapshots and this release."""
        return f"{last} {' '.join(snapshot.id for snapshot in self._context.store.snapshots())} {gpuplan_version()}"

    def compared(
        self, before: str | None, after: str | None, *, field: str = "against"
    ) -> tuple[StoredSnapshot, StoredSnapshot]:
        """Two snapshots to compare. The defaults are the current one and its parent."""
        return compared(self._context.store, before, after, field=field)

    def diff(
        self,
        before: StoredSnapshot,
        after: StoredSnapshot,
        *,
        provider: str | None = None,
        start: int = 0,
        limit: int | None = None,
    ) -> DiffPage:
        """What one snapshot changes against another, the largest price changes first."""
        return diff_page(self._context.store, before, after, provider=provider, start=start, limit=limit)
