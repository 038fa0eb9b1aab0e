"""Zones that an account must opt in to: those priced as regions of their own, and those of `data/opt_in_zones.csv`."""

from functools import cache

from catalog.data_tables import data_table
from catalog.regions import regions


def location_to_opt_into(provider: str, region: str, zone: str) -> str | None:
    """Where such a zone lies; None for a zone that every account of the region may use."""
    place = regions().get((provider, region))
    if place is not None and place.parent_region:
        return place.location
    return _zones().get((provider, zone))


@cache
def _zones() -> dict[tuple[str, str], str]:
    return {(row["provider"], row["zone"]): row["location"] for row in data_table("opt_in_zones.csv")}
