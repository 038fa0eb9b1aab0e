"""Storage prices while a job runs: block storage on the nodes, object storage for checkpoints.

Block storage is the usual SSD disk (gp3, balanced persistent disk, Standard SSD), object storage the standard class. Prices
are per GB (10^9 bytes) and month.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.provider_names import NEOCLOUD, is_own_rates, provider_names
from gpuplan.catalog.model.regions import nearest_with


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRate:
    """USD per GB-month of block and of object storage in one place; `assumptions` are sentences for the user."""

    block_usd_per_gb_month: float
    object_usd_per_gb_month: float
    source: str
    as_of: str
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Price:
    usd_per_gb_month: float
    sku: str
    source: str
    as_of: str
    note: str


OWN_DISKS = StorageRate(
    block_usd_per_gb_month=0.0,
    object_usd_per_gb_month=0.0,
    source="",
    as_of="",
    assumptions=("storage on your own disks is counted at no charge",),
)


def storage_usd_per_gb_month(provider: str, region: str) -> StorageRate:
    """The storage prices of a region.

    A region without a price takes that of the nearest region, or the provider's first, and `assumptions` say so. A provider
    without any storage price is assumed to be owned machines. A list of own rates states none: the dearest prices of
    neoclouds are taken.
    """
    if (provider, "block") not in _priced_regions():
        return _dearest_neocloud(provider) if is_own_rates(provider) else OWN_DISKS
    block, block_note = _price(provider, region, "block")
    object_price, object_note = _price(provider, region, "object")
    return StorageRate(
        block_usd_per_gb_month=block.usd_per_gb_month,
        object_usd_per_gb_month=object_price.usd_per_gb_month,
        source=f"{block.sku}: {block.source}; {object_price.sku}: {object_price.source}",
        as_of=min(block.as_of, object_price.as_of),
        assumptions=tuple(note for note in (block_note, object_note) if note),
    )


@cache
def _dearest_neocloud(provider: str) -> StorageRate:
    dearest = {
        kind: max(
            (price.usd_per_gb_month, owner, price)
            for (owner, _, what), price in _prices().items()
            if what == kind and provider_names()[owner].kind == NEOCLOUD and not price.note
        )
        for kind in ("block", "object")
    }
    (block, block_owner, block_price), (objects, object_owner, object_price) = dearest["block"], dearest["object"]
    owners = " and ".join(dict.fromkeys((block_owner, object_owner)))
    note = f"no price of storage at {provider} is known: those of {owners} are taken, the dearest of neoclouds"
    return StorageRate(
        block_usd_per_gb_month=block,
        object_usd_per_gb_month=objects,
        source=f"{block_price.sku}: {block_price.source}; {object_price.sku}: {object_price.source}",
        as_of=min(block_price.as_of, object_price.as_of),
        assumptions=(note,),
    )


def _price(provider: str, region: str, kind: str) -> tuple[_Price, str]:
    """The price, and an explanation if it is another region's."""
    available = _priced_regions()[provider, kind]
    nearest = nearest_with(provider, region, available) or min(available)
    note = _prices()[provider, nearest, kind].note
    if nearest != region:
        note = f"{kind} storage in {provider}:{region} is taken at the price of {nearest}"
    return _prices()[provider, nearest, kind], note


@cache
def _priced_regions() -> dict[tuple[str, str], frozenset[str]]:
    """The regions with a price, by provider and kind."""
    regions: dict[tuple[str, str], set[str]] = {}
    for owner, region, kind in _prices():
        regions.setdefault((owner, kind), set()).add(region)
    return {key: frozenset(names) for key, names in regions.items()}


@cache
def _prices() -> dict[tuple[str, str, str], _Price]:
    return {
        (row["provider"], row["region"], row["kind"]): _Price(
            usd_per_gb_month=float(row["usd_per_gb_month"]),
            sku=row["sku"],
            source=row["source"],
            as_of=row["as_of"],
            note=row["note"],
        )
        for row in data_table("storage.csv")
    }
