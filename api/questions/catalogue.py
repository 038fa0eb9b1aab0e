"""What may be asked of the catalogue: offers, accelerators, snapshots, prices over time and what changed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from api.catalogue import OfferFilter, accelerator_rows, matching, offer_rows
from api.questions.opened import Document, Opened
from api.version import gpuplan_version
from catalog.columns import Columns, columns_of
from catalog.snapshot_list import StoredSnapshot

if TYPE_CHECKING:
    from api.history import DiffPage, HistoryFilter, PricePage

#: What refreshes have read since some snapshot (`Catalogue.prices_since`).
PricesSince = Literal["none", "newer", "unconfirmed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPage:
    """Part of the matching offers: `rows`, how many match in `total`, and where the next page starts, if any."""

    snapshot_id: str
    rows: Iterator[Document]
    total: int
    next_index: int | None


class Catalogue(Opened):
    """Questions about what exists and what it costs."""

    def offers(
        self, wanted: OfferFilter, *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> OfferPage:
        """The offers that match, own machines among them, from the `start`-th on."""
        columns = self.columns_with_owned(snapshot)
        found = matching(columns, wanted)
        end = len(found) if limit is None else min(len(found), start + limit)
        return OfferPage(
            snapshot_id=columns.snapshot_id,
            rows=offer_rows(columns, found[start:end]),
            total=len(found),
            next_index=end if end < len(found) else None,
        )

    def columns_with_owned(self, snapshot: str | None) -> Columns:
        """The snapshot's columns, with the user's own machines as offers among them."""
        columns = self.columns(snapshot)
        if not self.owned:
            return columns
        kept = self._with_owned
        if kept is None or kept.snapshot_id != columns.snapshot_id:
            from providers.local import offers_of

            types = [*columns.instance_types, *(each.instance_type for each in self.owned)]
            offers = [*columns.offers, *offers_of(self.owned)]
            kept = self._with_owned = columns_of(columns.snapshot_id, columns.observed_at, types, offers)
        return kept

    def catalogue_version(self, snapshot: str | None) -> str:
        """What a listing of offers rests on: the snapshot, the user's own machines, and this release."""
        machines = hashlib.sha256(repr(self.owned).encode()).hexdigest()[:16] if self.owned else ""
        return f"{self.columns(snapshot).snapshot_id} {machines} {gpuplan_version()}"

    def accelerators(self) -> list[Document]:
        """Every accelerator known, as rows."""
        return accelerator_rows()

    def snapshots(self) -> list[Document]:
        """The snapshots in the store, newest first, each with whether it is the current one."""
        current = self.store.current_snapshot_id()
        return [_snapshot_row(each, current) for each in self.store.snapshots()]

    def prices_since(self, snapshot_id: str) -> PricesSince:
        """What refreshes have read since the snapshot that a plan rests on.

        "none": it is still the current one; "newer": the current one holds prices that were read later;
        "unconfirmed": refreshes since then have read no price.
        """
        current = self.store.current_snapshot_id()
        if snapshot_id == current:
            return "none"
        read_at = {each.id: each.observed_at for each in self.store.snapshots()}
        # A snapshot that is no longer stored is older than any that is.
        known = snapshot_id in read_at and read_at[current] <= read_at[snapshot_id]
        return "unconfirmed" if known else "newer"

    def prices(
        self, wanted: "HistoryFilter", *, snapshot: str | None = None, start: int = 0, limit: int | None = None
    ) -> "PricePage":
        """Prices of one instance type over time, up to a snapshot (the current one by default)."""
        from api.history import price_page

        end = self.end_of_history(snapshot)
        return price_page(self.store, wanted, snapshot_id=end, start=start, limit=limit)

    def end_of_history(self, snapshot: str | None) -> str:
        """The id of the snapshot up to which prices are told: the current one by default."""
        return self.store.find_snapshot(self.store.current_snapshot_id() if snapshot is None else snapshot).id

    def history_version(self, end: str) -> str:
        """What a history up to the snapshot `end` rests on: that and all others there are, and this release."""
        return f"{end} {' '.join(each.id for each in self.store.snapshots())} {gpuplan_version()}"

    def compared(
        self, before: str | None, after: str | None, *, field: str = "against"
    ) -> tuple[StoredSnapshot, StoredSnapshot]:
        """Two snapshots to compare: the current one and the one that it followed, where none is named."""
        from api.history import compared

        return compared(self.store, before, after, field=field)

    def diff(
        self,
        before: StoredSnapshot,
        after: StoredSnapshot,
        *,
        provider: str | None = None,
        start: int = 0,
        limit: int | None = None,
    ) -> "DiffPage":
        """What one snapshot changes against another, the largest moves of a price first."""
        from api.history import diff_page

        return diff_page(self.store, before, after, provider=provider, start=start, limit=limit)


def _snapshot_row(snapshot: StoredSnapshot, current: str) -> Document:
    """One snapshot as JSON."""
    return {
        "id": snapshot.id,
        "observed_at": snapshot.observed_at.isoformat(),
        "created_at": snapshot.created_at.isoformat(),
        "source": snapshot.source,
        "offers": snapshot.offer_count,
        "current": snapshot.id == current,
    }
