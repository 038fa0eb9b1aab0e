"""A snapshot as numpy columns, for arithmetic over all offers at once."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
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
    known = {(row.provider, row.name) for row in types}
    missing = [
        row.key for row in rows if (row.provider, row.instance_type) not in known or row.price_kind not in price_kinds()
    ]
    if missing:
        raise ValueError(f"{len(missing)} offers name an unknown instance type or price kind, the first {missing[0]}")
    return columns_from(
        snapshot_id,
        observed_at,
        types,
        rows,
        places=[(row.provider, row.region) for row in rows],
        names=[row.instance_type for row in rows],
        price_kind_names=[row.price_kind for row in rows],
        usd_micros=[row.usd_micros_per_hour for row in rows],
        interruptions=[row.interruptions_per_hour for row in rows],
        whole=(not row.partial for row in rows),
        available=(row.available for row in rows),
        days=(day_number(row.observed_at) for row in rows),
    )


def columns_from(
    snapshot_id: str,
    observed_at: datetime,
    instance_types: tuple[InstanceType, ...],
    offers: Sequence[Offer],
    *,
    places: Sequence[tuple[str, str]],
    names: Sequence[str],
    price_kind_names: Sequence[str],
    usd_micros: Sequence[int],
    interruptions: Sequence[float | None],
    whole: Iterable[bool],
    available: Iterable[bool],
    days: Iterable[int],
) -> Columns:
    """Columns of offers in the order of their keys, from the fields of each."""
    count, kinds = len(offers), tuple(price_kinds())
    regions = tuple(sorted(set(places)))
    type_at = {(instance_type.provider, instance_type.name): i for i, instance_type in enumerate(instance_types)}
    region_at = {place: i for i, place in enumerate(regions)}
    kind_at = {kind: i for i, kind in enumerate(kinds)}
    providers = (provider for provider, _ in places)
    type_index = np.fromiter(map(type_at.__getitem__, zip(providers, names, strict=True)), np.int32, count)
    region_index = np.fromiter(map(region_at.__getitem__, places), np.int32, count)
    kind_index = np.fromiter(map(kind_at.__getitem__, price_kind_names), np.int32, count)
    usd_per_hour = np.fromiter(usd_micros, np.float64, count) / 1e6
    plannable = np.fromiter(whole, np.bool_, count)
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
        observed_day=np.fromiter(days, np.int32, count),
        on_demand_usd=on_demand_prices(
            kinds,
            type_index=type_index,
            region_index=region_index,
            kind_index=kind_index,
            usd_per_hour=usd_per_hour,
            plannable=plannable,
        ),
    )
