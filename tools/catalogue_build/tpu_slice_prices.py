"""TPU slices: the listed price per chip, multiplied out to the documented slices of each generation.

v2 and v3 pods have a separate price per chip, listed for the 32-core slice, which larger pods of the zone share. A zone
with a chip price is assumed to sell every slice size: no source lists sizes by zone.
"""

from collections.abc import Sequence
from fractions import Fraction

from gpuplan.catalog.model.money import MICROS_PER_USD
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.tpu_slices import PROVIDER, TpuSlice
from gpuplan.catalog.model.tpu_slices import tpu_slices as documented_slices
from tools.catalogue_build.listed_prices import ListedPrice
from tools.catalogue_build.observation_dates import observed
from tools.catalogue_build.price_row_outcomes import Harvest


def tpu_slices(priced: Sequence[ListedPrice]) -> Harvest:
    """Instance types and offers of every documented slice that has a chip price in some zone."""
    harvest = Harvest()
    for documented_slice in documented_slices():
        bases = [price for price in priced if price.row["instance_type"] == documented_slice.priced_from]
        if bases:
            harvest.instance_types.append(documented_slice.instance_type)
            harvest.offers += [_slice_offer(documented_slice, base) for base in bases]
    harvest.counts["TPU slice offers composed"] = len(harvest.offers)
    return harvest


def _slice_offer(tpu_slice: TpuSlice, base: ListedPrice) -> Offer:
    row = base.row
    observed_at, approximately = observed(row["as_of"], read_from=row["source"], price_kind=base.price_kind)
    usd_per_chip_hour = Fraction(row["usd_per_hour"]) / Fraction(row["accelerator_count"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        zone=row["zone"],
        instance_type=tpu_slice.name,
        price_kind=base.price_kind,
        usd_micros_per_hour=round(usd_per_chip_hour * tpu_slice.chips_per_host * MICROS_PER_USD),
        observed_at=observed_at,
        observed_approximately=approximately,
        source=f"{row['source']}: {row['instance_type']} per chip{_assumed(tpu_slice)}",
    )


def _assumed(tpu_slice: TpuSlice) -> str:
    """The assumption about a slice that is not itself in the price list."""
    return (
        "" if tpu_slice.name == tpu_slice.priced_from else "; that the place sells this size at that price is assumed"
    )
