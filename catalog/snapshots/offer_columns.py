"""A snapshot as numpy columns, for arithmetic over all offers at once."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds


class LazyOffers(Sequence[Offer]):
    """A subclass states `__len__`, and how one offer is created."""

    __slots__ = ()

    @abstractmethod
    def offer_at(self, index: int) -> Offer:
        """The offer at this index."""

    @overload
    def __getitem__(self, index: int) -> Offer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Offer]: ...

    def __getitem__(self, index: int | slice) -> Offer | Sequence[Offer]:
        """One offer, or the offers of a slice."""
        if isinstance(index, slice):
            return [self.offer_at(i) for i in range(*index.indices(len(self)))]
        return self.offer_at(index)


Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """A snapshot: tables of instance types, regions and kinds, and one array element per offer.

    Arrays of length `len(self)` hold, per offer, indices into `instance_types`, `regions` ((provider, region) pairs) and
    `kinds`, the price in dollars per node-hour, and the expected interruptions per node-hour (nan if the source has none);
    the day on which the price was observed (days since 1970), and the least on-demand price of the same type and region
    (nan without one), which stays the same when offers are left out.
    `offer(i)` returns the row. Compared and hashed by identity: one snapshot in memory is one object.
    """

    snapshot_id: str
    observed_at: datetime
    instance_types: tuple[InstanceType, ...]
    regions: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    offers: Sequence[Offer]
    type_index: Ints
    region_index: Ints
    kind_index: Ints
    usd_per_hour: Floats
    interruptions_per_hour: Floats
    plannable: Flags
    verified: Flags
    observed_day: Ints
    on_demand_usd: Floats

    def __len__(self) -> int:
        return len(self.usd_per_hour)

    def offer(self, index: int) -> Offer:
        """The row of element `index`."""
        return self.offers[index]

    def subset(self, at: NDArray[np.int64], offers: Sequence[Offer]) -> "Columns":
        """The snapshot with the offers at these elements only; `offers` are their rows."""
        return replace(self, offers=offers, **{name: getattr(self, name)[at] for name in _PER_OFFER})


#: The fields of `Columns` with one element per offer.
_PER_OFFER = (
    "type_index",
    "region_index",
    "kind_index",
    "usd_per_hour",
    "interruptions_per_hour",
    "plannable",
    "verified",
    "observed_day",
    "on_demand_usd",
)


def on_demand_prices(
    kinds: Sequence[str],
    *,
    type_index: Ints,
    region_index: Ints,
    kind_index: Ints,
    usd_per_hour: Floats,
    plannable: Flags,
) -> Floats:
    """Per offer, the least whole on-demand price of its type and region; nan without one."""
    place = type_index.astype(np.int64) * (int(region_index.max(initial=0)) + 1) + region_index
    plain = np.array([price_kinds()[name].is_plain for name in kinds], np.bool_)
    at = np.flatnonzero(plain[kind_index] & plannable) if len(place) else np.zeros(0, np.int64)
    if not len(at):
        return np.full(len(place), np.nan)
    least = np.full(int(place.max()) + 1, np.inf)
    np.minimum.at(least, place[at], usd_per_hour[at])
    of_place = least[place]
    return np.where(np.isfinite(of_place), of_place, np.nan)


def day_number(moment: datetime) -> int:
    """The UTC day of a time as days since 1970."""
    return moment.astimezone(UTC).date().toordinal() - _EPOCH


_EPOCH = date(1970, 1, 1).toordinal()


def columns_of(
    snapshot_id: str, observed_at: datetime, instance_types: Sequence[InstanceType], offers: Sequence[Offer]
) -> Columns:
    """Columns of a snapshot, in an order that depends only on the rows' keys.

    Raises `ValueError` if an offer names an instance type or price kind that is missing.
    """
    types = tuple(sorted(instance_types, key=lambda row: (row.provider, row.name)))
    rows = sorted(offers, key=lambda row: row.key)
    regions = tuple(sorted({(row.provider, row.region) for row in rows}))
    kinds = tuple(price_kinds())
    type_at = {(instance_type.provider, instance_type.name): i for i, instance_type in enumerate(types)}
    region_at = {place: i for i, place in enumerate(regions)}
    kind_at = {kind: i for i, kind in enumerate(kinds)}
    missing = [
        row.key for row in rows if (row.provider, row.instance_type) not in type_at or row.price_kind not in kind_at
    ]
    if missing:
        raise ValueError(f"{len(missing)} offers name an unknown instance type or price kind, the first {missing[0]}")
    type_index = np.fromiter((type_at[row.provider, row.instance_type] for row in rows), np.int32, len(rows))
    region_index = np.fromiter((region_at[row.provider, row.region] for row in rows), np.int32, len(rows))
    kind_index = np.fromiter((kind_at[row.price_kind] for row in rows), np.int32, len(rows))
    usd_per_hour = np.fromiter((row.usd_micros_per_hour / 1e6 for row in rows), np.float64, len(rows))
    plannable = np.fromiter((not row.partial for row in rows), np.bool_, len(rows))
    return Columns(
        snapshot_id=snapshot_id,
        observed_at=observed_at,
        instance_types=types,
        regions=regions,
        kinds=kinds,
        offers=rows,
        type_index=type_index,
        region_index=region_index,
        kind_index=kind_index,
        usd_per_hour=usd_per_hour,
        interruptions_per_hour=np.fromiter(
            (np.nan if row.interruptions_per_hour is None else row.interruptions_per_hour for row in rows),
            np.float64,
            len(rows),
        ),
        plannable=plannable,
        verified=np.fromiter((row.available for row in rows), np.bool_, len(rows)),
        observed_day=np.fromiter((day_number(row.observed_at) for row in rows), np.int32, len(rows)),
        on_demand_usd=on_demand_prices(
            kinds,
            type_index=type_index,
            region_index=region_index,
            kind_index=kind_index,
            usd_per_hour=usd_per_hour,
            plannable=plannable,
        ),
    )
