"""Zones that an account must opt in to: zones priced as regions, and those of `data/opt_in_zones.csv`."""

from functools import cache

from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.model.regions import regions


def location_to_opt_into(provider: str, region: str, zone: str) -> str | None:
    """The location of an opt-in zone; None for a zone that every account of the region may use."""
    place = regions().get((provider, region))
    if place is not None and place.parent_region:
        return place.location
    return _zones().get((provider, zone))


@cache
def _zones() -> dict[tuple[str, str], str]:
    return {(row["provider"], row["zone"]): row["location"] for row in data_table("opt_in_zones.csv")}
