"""A stored snapshot as columns: arrays directly from the rows, `Offer` objects only on access."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload

import numpy as np

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.snapshots.offer_columns import Columns, day_number, on_demand_prices
from gpuplan.catalog.store.price_points import PriceRow, Reading


@dataclass(frozen=True, slots=True)
class StoredOffers(Sequence[Offer]):
    """The offers of a stored snapshot in key order, each created when indexed."""

    rows: Sequence[PriceRow]
    readings: dict[int, Reading]

    def __len__(self) -> int:
        """The number of offers."""
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        """One offer, or the offers of a slice."""
        if isinstance(index, slice):
            return StoredOffers(self.rows[index], self.readings)
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
    regions = tuple(sorted(set(zip(providers, places, strict=True))))
    kinds = tuple(price_kinds())
    _refuse_unknown(snapshot_id, set(kinds_of) - set(kinds))
    type_at = {(instance_type.provider, instance_type.name): i for i, instance_type in enumerate(instance_types)}
    region_at = {place: i for i, place in enumerate(regions)}
    kind_at = {kind: i for i, kind in enumerate(kinds)}
    whole = {number for number, reading in offers.readings.items() if not reading.partial}
    days = {number: day_number(reading.observed_at) for number, reading in offers.readings.items()}
    count = len(offers)
    type_index = np.fromiter(map(type_at.__getitem__, zip(providers, names, strict=True)), np.int32, count)
    region_index = np.fromiter(map(region_at.__getitem__, zip(providers, places, strict=True)), np.int32, count)
    kind_index = np.fromiter(map(kind_at.__getitem__, kinds_of), np.int32, count)
    usd_per_hour = np.fromiter(usd_micros, np.float64, count) / 1e6
    plannable = np.fromiter(map(whole.__contains__, numbers), np.bool_, count)
    return Columns(
        snapshot_id=snapshot_id,
        observed_at=observed_at,
        instance_types=instance_types,
        regions=regions,
        kinds=kinds,
        offers=offers,
        type_index=type_index,
        region_index=region_index,
        kind_index=kind_index,
        usd_per_hour=usd_per_hour,
        interruptions_per_hour=np.array(interruptions, dtype=np.float64),  # None becomes nan
        plannable=plannable,
        verified=np.fromiter(available, np.bool_, count),
        observed_day=np.fromiter(map(days.__getitem__, numbers), np.int32, count),
        on_demand_usd=on_demand_prices(
            kinds,
            type_index=type_index,
            region_index=region_index,
            kind_index=kind_index,
            usd_per_hour=usd_per_hour,
            plannable=plannable,
        ),
    )


def _transposed(rows: Sequence[PriceRow]) -> tuple[tuple[Any, ...], ...]:
    return tuple(zip(*rows, strict=True)) if rows else ((),) * 10


def _refuse_unknown(snapshot_id: str, kinds: set[str]) -> None:
    if kinds:
        raise StoreFailure(
            f"snapshot {snapshot_id}: price kinds {', '.join(sorted(kinds))} come from a newer gpuplan; upgrade gpuplan"
        )
