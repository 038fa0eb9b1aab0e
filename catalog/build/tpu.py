"""TPU slices: the price per chip of the listed rows, multiplied out to the documented slices of each generation.

v2 and v3 pods have their own price per chip, listed for the 32-core slice, which larger pods of that
zone share. That a zone with a chip price sells every slice size is assumed: no source lists sizes by
zone.
"""

from collections.abc import Sequence
from fractions import Fraction

from catalog.build.account import Harvest
from catalog.build.observation import observed
from catalog.build.prices import ListedPrice
from catalog.money import MICROS_PER_USD
from catalog.offer import Offer
from catalog.tpu_slices import PROVIDER, TpuSlice
from catalog.tpu_slices import tpu_slices as documented_slices


def tpu_slices(priced: Sequence[ListedPrice]) -> Harvest:
    """Instance types and offers of every documented slice that has a chip price in some zone."""
    harvest = Harvest()
    for each in documented_slices():
        bases = [price for price in priced if price.row["instance_type"] == each.priced_from]
        if bases:
            harvest.instance_types.append(each.instance_type)
            harvest.offers += [_slice_offer(each, base) for base in bases]
    harvest.counts["TPU slice offers composed"] = len(harvest.offers)
    return harvest


def _slice_offer(each: TpuSlice, base: ListedPrice) -> Offer:
    row = base.row
    observed_at, approximately = observed(row["as_of"], read_from=row["read_from"], price_kind=base.price_kind)
    usd_per_chip_hour = Fraction(row["usd_per_hour"]) / Fraction(row["accelerator_count"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        zone=row["zone"],
        instance_type=each.name,
        price_kind=base.price_kind,
        usd_micros_per_hour=round(usd_per_chip_hour * each.chips_per_host * MICROS_PER_USD),
        observed_at=observed_at,
        observed_approximately=approximately,
        source=f"{row['read_from']}: {row['instance_type']} per chip{_assumed(each)}",
    )


def _assumed(each: TpuSlice) -> str:
    """What is said of a slice that is not itself in the price list."""
    return "" if each.name == each.priced_from else "; that the place sells this size at that price is assumed"
