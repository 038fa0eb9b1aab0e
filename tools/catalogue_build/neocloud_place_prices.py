"""Egress and storage prices of neoclouds: one price list for all their places, and a stated guess where none is published."""

from collections.abc import Sequence
from decimal import Decimal

from gpuplan.catalog.model.egress_rates import INTER_REGION, WORLDWIDE
from tools.catalogue_build.fact_tables import Row, mapping_table

EGRESS, BLOCK, OBJECT = "egress", "block", "object"
GB_PER_GIB = Decimal(2**30) / Decimal(10**9)
#: How many of a fact's units make up one of ours: USD per GB, and per GB and month of 730.5 hours as bills count.
UNITS = {
    "GB": Decimal(1),
    "GiB": 1 / GB_PER_GIB,
    "GB-month": Decimal(1),
    "GiB-month": 1 / GB_PER_GIB,
    "GB-hour": Decimal("730.5"),
}
SMALLEST_UNIT_PRICE = Decimal("0.00000001")


def neocloud_egress(places: Sequence[Row]) -> list[Row]:
    """Rows of egress.csv for every place of the providers without egress prices by region.

    Moving data between places of one provider is taken at the same price: no neocloud publishes another.
    """
    return [
        {
            "provider": place["provider"],
            "region": place["region"],
            "destination": destination,
            "up_to_gb": "",
            "usd_per_gb": price["usd"],
            "as_of": price["as_of"],
            "source": price["source"],
            "note": price["note"],
        }
        for place in places
        for price in (_price(place["provider"], EGRESS),)
        for destination in (WORLDWIDE, INTER_REGION)
    ]


def neocloud_storage(places: Sequence[Row]) -> list[Row]:
    """Rows of storage.csv, block and object storage, for every place of these providers."""
    return [
        {
            "provider": place["provider"],
            "region": place["region"],
            "kind": kind,
            "sku": price["sku"],
            "usd_per_gb_month": price["usd"],
            "as_of": price["as_of"],
            "source": price["source"],
            "note": price["note"],
        }
        for place in places
        for kind in (BLOCK, OBJECT)
        for price in (_price(place["provider"], kind),)
    ]


def _price(provider: str, item: str) -> Row:
    """The provider's price; else its block price for objects; else the dearest that another one publishes, and says so."""
    facts = [row for row in mapping_table("neocloud_place_prices") if row["item"] == item]
    stated = [row for row in facts if row["provider"] == provider]
    if stated:
        return _stated(stated[0], "" if _usd(stated[0]) else f"{provider} charges nothing for {item}")
    if item == OBJECT and (block := _price(provider, BLOCK))["note"] == "":
        return block | {"note": f"checkpoints at {provider} are taken at the price of its block storage"}
    dearest = max(facts, key=_usd)
    what = EGRESS if item == EGRESS else f"{item} storage"
    return _stated(dearest, f"{provider} publishes no price of {what}: that of {dearest['provider']} is taken")


def _stated(row: Row, note: str) -> Row:
    return {
        "usd": f"{_usd(row).normalize():f}",
        "sku": row["sku"],
        "as_of": row["as_of"],
        "source": row["source"],
        "note": note,
    }


def _usd(row: Row) -> Decimal:
    return (Decimal(row["usd_per_unit"]) * UNITS[row["unit"]]).quantize(SMALLEST_UNIT_PRICE)
