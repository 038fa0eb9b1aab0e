"""A snapshot as numpy columns, for arithmetic over all offers at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.model.price_kinds import price_kinds

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """A snapshot: tables of instance types, regions and kinds, and one array element per offer.

    Arrays of length `len(self)` hold, per offer, indices into `instance_types`, `regions` ((provider, region) pairs) and
    `kinds`, the price in dollars per node-hour, and the expected interruptions per node-hour (nan if the source has none).
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

    def __len__(self) -> int:
        return len(self.usd_per_hour)

    def offer(self, index: int) -> Offer:
        """The row of element `index`."""
        return self.offers[index]


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
    return Columns(
        snapshot_id=snapshot_id,
        observed_at=observed_at,
        instance_types=types,
        regions=regions,
        kinds=kinds,
        offers=rows,
        type_index=np.fromiter((type_at[row.provider, row.instance_type] for row in rows), np.int32, len(rows)),
        region_index=np.fromiter((region_at[row.provider, row.region] for row in rows), np.int32, len(rows)),
        kind_index=np.fromiter((kind_at[row.price_kind] for row in rows), np.int32, len(rows)),
        usd_per_hour=np.fromiter((row.usd_micros_per_hour / 1e6 for row in rows), np.float64, len(rows)),
        interruptions_per_hour=np.fromiter(
            (np.nan if row.interruptions_per_hour is None else row.interruptions_per_hour for row in rows),
            np.float64,
            len(rows),
        ),
        plannable=np.fromiter((not row.partial for row in rows), np.bool_, len(rows)),
        verified=np.fromiter((row.available for row in rows), np.bool_, len(rows)),
    )
