"""TPU slices: the price per chip of the listed rows, multiplied out to the documented slices of each generation.

A slice is rented whole. Its node is one host VM, so `fixed_nodes` is its hosts and the price per
node-hour is the chip's price times the chips of a host. The name's suffix counts cores up to v4
and for v5p (two per chip), chips for v5e and v6e. Slices end at 256 chips: larger ones are sold by
arrangement, and the default limit on nodes stands far below. v2 and v3 pods have their own price
per chip, listed for the 32-core slice, which larger pods of that zone share. Chips of one slice
exchange over the inter-chip interconnect whichever host they sit in. That a zone with a chip price
sells every slice size is assumed: no source lists sizes by zone.
"""

from collections.abc import Sequence
from fractions import Fraction

from catalog.accelerators import accelerators
from catalog.build.account import Harvest
from catalog.build.fact_tables import Row
from catalog.build.observation import observed
from catalog.build.prices import ListedPrice
from catalog.data_tables import data_table
from catalog.money import MICROS_PER_USD
from catalog.offer import InstanceType, Offer

PROVIDER = "gcp"
MAX_CHIPS = 256


def tpu_slices(priced: Sequence[ListedPrice]) -> Harvest:
    """Instance types and offers of every documented slice that has a chip price in some zone."""
    harvest = Harvest()
    for slice_row in data_table("tpu_slices.csv"):
        bases = [price for price in priced if price.row["instance_type"] == slice_row["priced_from"]]
        if bases:
            harvest.instance_types.append(_slice_type(slice_row))
            harvest.offers += [_slice_offer(slice_row, base) for base in bases]
    harvest.counts["TPU slice offers composed"] = len(harvest.offers)
    return harvest


def _slice_type(row: Row) -> InstanceType:
    """One host of the slice; the link is the chip's own, one direction of the vendor's total."""
    chips, hosts = int(row["chips"]), int(row["hosts"])
    if chips > MAX_CHIPS:
        raise ValueError(f"TPU slice {row['instance_type']} has {chips} chips, above {MAX_CHIPS}")
    link_gbs = accelerators()[row["accelerator"]].link_gbs
    return InstanceType(
        provider=PROVIDER,
        name=row["instance_type"],
        accelerator=row["accelerator"],
        accelerator_count=Fraction(chips, hosts),
        vcpus=float(row["host_vcpus"]) if row["host_vcpus"] else None,
        ram_gib=float(row["host_ram_gib"]) if row["host_ram_gib"] else None,
        intranode_link="ici",
        intranode_gbs=link_gbs / 2 if link_gbs else None,
        scaleup_domain=chips,
        clusters=hosts > 1,
        fixed_nodes=hosts,
        source=f"{row['source']} (topology {row['topology']})",
        as_of=row["as_of"],
    )


def _slice_offer(slice_row: Row, base: ListedPrice) -> Offer:
    row = base.row
    observed_at, approximately = observed(row["as_of"], read_from=row["read_from"], price_kind=base.price_kind)
    host_chips = Fraction(int(slice_row["chips"]), int(slice_row["hosts"]))
    usd_per_chip_hour = Fraction(row["usd_per_hour"]) / Fraction(row["accelerator_count"])
    return Offer(
        provider=PROVIDER,
        region=row["region"],
        zone=row["zone"],
        instance_type=slice_row["instance_type"],
        price_kind=base.price_kind,
        usd_micros_per_hour=round(usd_per_chip_hour * host_chips * MICROS_PER_USD),
        observed_at=observed_at,
        observed_approximately=approximately,
        source=f"{row['read_from']}: {row['instance_type']} per chip{_assumed(slice_row)}",
    )


def _assumed(slice_row: Row) -> str:
    """What is said of a slice that is not itself in the price list."""
    listed = slice_row["instance_type"] == slice_row["priced_from"]
    return "" if listed else "; that the place sells this size at that price is assumed"
