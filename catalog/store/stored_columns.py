"""A stored snapshot as columns: arrays directly from the rows, `Offer` objects only on access."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers, columns_from, day_number
from gpuplan.catalog.store.price_points import PriceRow, Reading


@dataclass(frozen=True, slots=True)
class StoredOffers(LazyOffers):
    """The offers of a stored snapshot in key order, each created when indexed."""

    rows: Sequence[PriceRow]
    readings: dict[int, Reading]

    def __len__(self) -> int:
        """The number of offers."""
        return len(self.rows)

    def offer_at(self, index: int) -> Offer:
        """One offer."""
        provider, region, zone, instance_type, price_kind, usd_micros, interruptions, available, number, _ = self.rows[
            index
        ]
        reading = self.readings[number]
        return Offer(
            provider=provider,
            region=region,
            zone=zone,
            instance_type=instance_type,
            price_kind=price_kind,
            usd_micros_per_hour=usd_micros,
            interruptions_per_hour=interruptions,
            available=bool(available),  # SQLite stores 0 and 1
            observed_at=reading.observed_at,
            observed_approximately=reading.observed_approximately,
            stale_since=reading.stale_since,
            modelled=reading.modelled,
            partial=reading.partial,
            source=reading.source,
        )


def stored_columns(
    snapshot_id: str, observed_at: datetime, instance_types: tuple[InstanceType, ...], offers: StoredOffers
) -> Columns:
    """The same arrays as `columns_of`, without making an object per offer.

    Raises `StoreFailure` if an offer has a price kind that this release does not know.
    """
    providers, places, _, names, kinds_of, usd_micros, interruptions, available, numbers, _ = _transposed(offers.rows)
    _refuse_unknown(snapshot_id, set(kinds_of) - set(price_kinds()))
    whole = {number for number, reading in offers.readings.items() if not reading.partial}
    days = {number: day_number(reading.observed_at) for number, reading in offers.readings.items()}
    return columns_from(
        snapshot_id,
        observed_at,
        instance_types,
        offers,
        places=list(zip(providers, places, strict=True)),
        names=names,
        price_kind_names=kinds_of,
        usd_micros=usd_micros,
        interruptions=interruptions,
        whole=map(whole.__contains__, numbers),
        available=available,
        days=map(days.__getitem__, numbers),
    )


def _transposed(rows: Sequence[PriceRow]) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*rows, strict=True)) if rows else ((),) * 10


def _refuse_unknown(snapshot_id: str, kinds: set[str]) -> None:
    if kinds:
        raise StoreFailure(
            f"snapshot {snapshot_id}: price kinds {', '.join(sorted(kinds))} come from a newer gpuplan; upgrade gpuplan"
        )
