"""The catalogue: offers, accelerators, known models and snapshots."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.schemas.catalogue import OfferRow, SnapshotRow
from gpuplan.api.services.offer_listing import OfferFilter, matching, offer_rows
from gpuplan.api.services.service_context import ContextService
from gpuplan.catalog.model.accelerators import Accelerator, accelerators
from gpuplan.catalog.store.snapshot_list import StoredSnapshot

if TYPE_CHECKING:
    from gpuplan.planner.workload.presets import PresetRow

#: What refreshes have read since some snapshot (`CatalogueService.prices_since`).
PricesSince = Literal["none", "newer", "unconfirmed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPage:
    """Part of the matching offers: `rows`, how many match in `total`, and the index at which the next page starts, if any."""

    snapshot_id: str
    rows: Iterator[OfferRow]
    total: int
    next_index: int | None


class CatalogueService(ContextService):
    """Lists offers, accelerators, known models and snapshots."""

    def offers(
        self, wanted: OfferFilter, *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> OfferPage:
        """The matching offers, owned machines included, from index `start` on."""
        columns = self._context.columns_with_owned(snapshot)
        matches = matching(columns, wanted)
        end = len(matches) if limit is None else min(len(matches), start + limit)
        return OfferPage(
            snapshot_id=columns.snapshot_id,
            rows=offer_rows(columns, matches[start:end]),
            total=len(matches),
            next_index=end if end < len(matches) else None,
        )

    def version(self, snapshot: str | None) -> str:
        """Identifies what a listing of offers depends on: the snapshot, the owned machines and this release."""
        machines = hashlib.sha256(repr(self._context.owned).encode()).hexdigest()[:16] if self._context.owned else ""
        return f"{self._context.columns(snapshot).snapshot_id} {machines} {gpuplan_version()}"

    def accelerators(self) -> tuple[Accelerator, ...]:
        """Every known accelerator."""
        return tuple(accelerators().values())

    def presets(self) -> "tuple[PresetRow, ...]":
        """The models known by name."""
        from gpuplan.planner.workload.presets import presets

        return tuple(presets().values())

    def snapshots(self) -> tuple[SnapshotRow, ...]:
        """The snapshots in the store, newest first, each with whether it is the current one."""
        current = self._context.store.current_snapshot_id()
        return tuple(_snapshot_row(snapshot, current) for snapshot in self._context.store.snapshots())

    def prices_since(self, snapshot_id: str) -> PricesSince:
        """What refreshes have read since the snapshot of a plan.

        "none": the snapshot is still the current one. "newer": the current one holds prices that were read later.
        "unconfirmed": refreshes since then have read no price.
        """
        current = self._context.store.current_snapshot_id()
        if snapshot_id == current:
            return "none"
        read_at = {snapshot.id: snapshot.observed_at for snapshot in self._context.store.snapshots()}
        # A snapshot that is no longer stored is older than any that is.
        known = snapshot_id in read_at and read_at[current] <= read_at[snapshot_id]
        return "unconfirmed" if known else "newer"


def _snapshot_row(snapshot: StoredSnapshot, current: str) -> SnapshotRow:
    return SnapshotRow(
        id=snapshot.id,
        observed_at=snapshot.observed_at.isoformat(),
        created_at=snapshot.created_at.isoformat(),
        source=snapshot.source,
        offers=snapshot.offer_count,
        current=snapshot.id == current,
    )
