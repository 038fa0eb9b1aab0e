"""Regions: geography, country, partition, and the default price of electricity.

A Local or Wavelength Zone that AWS prices as a region has a row, because it may be in another country than its parent
region (Santiago under us-east-1, Casablanca under eu-west-3). The electricity price is the average that businesses of the
continent pay, because no operator publishes its own; settings override it.

Zones that an account must opt in to: zones priced as regions, and those of `data/opt_in_zones.csv`.
"""

from dataclasses import dataclass
from functools import cache

from gpuplan.catalog.model.data_tables import data_table

#: Accepted values of a job's `geography`. The European Union is separate from the rest of Europe, and mainland China from
#: Asia, because data residency rules often separate them.
GEOGRAPHIES = {
    "us": "United States",
    "canada": "Canada",
    "mexico": "Mexico",
    "south-america": "South America",
    "eu": "European Union",
    "uk": "United Kingdom",
    "europe-other": "Europe outside the European Union and the United Kingdom",
    "middle-east": "Middle East",
    "africa": "Africa",
    "asia": "Asia without the Middle East and mainland China",
    "china": "mainland China",
    "australia": "Australia and New Zealand",
}


CHINA = "china"

#: The region of offers whose provider does not say where they are sold. No constraint on places allows it.
UNKNOWN_REGION = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One region of one provider; `country` is ISO 3166 alpha-2, `partition` commercial, gov or china.

    `parent_region` is set for a zone that is priced as a region. `usd_per_kwh` is None if unknown.
    """

    provider: str
    name: str
    location: str
    country: str
    geography: str
    partition: str
    parent_region: str
    usd_per_kwh: float | None
    usd_per_kwh_source: str
    usd_per_kwh_as_of: str


@cache
def regions() -> dict[tuple[str, str], Region]:
    """Every known region by (provider, region)."""
    return {(row["provider"], row["region"]): _region(row) for row in data_table("regions.csv")}


def is_unheard_of(provider: str, region: str) -> bool:
    """Whether this is a cloud region that the table lacks, such as one that opened after this release."""
    return (provider, region) not in regions() and any(provider == owner for owner, _ in regions())


def _region(row: dict[str, str]) -> Region:
    return Region(
        provider=row["provider"],
        name=row["region"],
        location=row["location"],
        country=row["country"],
        geography=row["geography"],
        partition=row["partition"],
        parent_region=row["parent_region"],
        usd_per_kwh=float(row["usd_per_kwh"]) if row["usd_per_kwh"] else None,
        usd_per_kwh_source=row["usd_per_kwh_source"],
        usd_per_kwh_as_of=row["usd_per_kwh_as_of"],
    )


def is_place_unknown(region: str) -> bool:
    """Whether the provider does not say where offers of this region are sold: anywhere that it has machines."""
    return region == UNKNOWN_REGION


def place_in_words(provider: str, region: str) -> str:
    """`aws us-east-1`; `verda (place not stated)` where the provider does not say where."""
    return f"{provider} (place not stated)" if is_place_unknown(region) else f"{provider} {region}"


def nearest_with(provider: str, region: str, available: frozenset[str]) -> str | None:
    """The provider's region in `available` that substitutes for `region`, or None if none is near.

    The region itself, else its parent, else the first in its country, else the first in its geography.
    """
    if region in available:
        return region
    origin = regions().get((provider, region))
    if origin is None:
        return None
    if origin.parent_region in available:
        return origin.parent_region
    others = [regions()[provider, name] for name in sorted(available) if (provider, name) in regions()]
    for same in ("country", "geography"):
        for other in others:
            if getattr(other, same) == getattr(origin, same) and other.partition == origin.partition:
                return other.name
    return None


def location_to_opt_into(provider: str, region: str, zone: str) -> str | None:
    """The location of an opt-in zone; None for a zone that every account of the region may use."""
    place = regions().get((provider, region))
    if place is not None and place.parent_region:
        return place.location
    return _zones().get((provider, zone))


@cache
def _zones() -> dict[tuple[str, str], str]:
    return {(row["provider"], row["zone"]): row["location"] for row in data_table("opt_in_zones.csv")}
