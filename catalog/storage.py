"""What storing data costs while a job runs: block storage on the nodes, object storage for checkpoints.

Block storage is the usual SSD disk (gp3, balanced persistent disk, Standard SSD), object storage
the standard class. Prices are per GB (10^9 bytes) and month.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

from catalog.data_tables import data_table
from catalog.regions import nearest_with


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


OWN_DISKS = StorageRate(
    block_usd_per_gb_month=0.0,
    object_usd_per_gb_month=0.0,
    source="",
    as_of="",
    assumptions=("storage on your own disks is counted at no charge",),
)


@lru_cache(maxsize=4096)
def storage_usd_per_gb_month(provider: str, region: str) -> StorageRate:
    """The storage prices of a region; of the nearest region, or the provider's first, where it has none, and said.

    A provider without any storage price is taken to be the user's own machines.
    """
    if provider not in {name for name, _, _ in _prices()}:
        return OWN_DISKS
    block, block_note = _price(provider, region, "block")
    kept, object_note = _price(provider, region, "object")
    return StorageRate(
        block_usd_per_gb_month=block.usd_per_gb_month,
        object_usd_per_gb_month=kept.usd_per_gb_month,
        source=f"{block.sku}: {block.source}; {kept.sku}: {kept.source}",
        as_of=min(block.as_of, kept.as_of),
        assumptions=tuple(note for note in (block_note, object_note) if note),
    )


def _price(provider: str, region: str, kind: str) -> tuple[_Price, str]:
    """The price and, if it is another region's, the sentence that says so."""
    available = frozenset(name for owner, name, what in _prices() if (owner, what) == (provider, kind))
    nearest = nearest_with(provider, region, available) or min(available)
    note = "" if nearest == region else f"{kind} storage in {provider}:{region} is taken at the price of {nearest}"
    return _prices()[provider, nearest, kind], note


@cache
def _prices() -> dict[tuple[str, str, str], _Price]:
    return {
        (row["provider"], row["region"], row["kind"]): _Price(
            usd_per_gb_month=float(row["usd_per_gb_month"]),
            sku=row["sku"],
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in data_table("storage.csv")
    }
