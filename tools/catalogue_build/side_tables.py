"""Regions, egress, storage and carbon: the collected tables in the catalogue's format."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from gpuplan.catalog.model.interruption_rates import DEFAULT_INTERRUPTIONS_PER_HOUR, interruptions_per_hour
from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.price_kinds import price_kinds
from tools.catalogue_build.fact_tables import Row, fact_table, mapping_table
from tools.catalogue_build.neocloud_place_prices import neocloud_egress, neocloud_storage


def with_interruptions(offers: Iterable[Offer], bands: Iterable[Row]) -> list[Offer]:
    """The offers with a rate on every interruptible one: from its AWS band, else from the traces and marked as modelled."""
    rates = {(row["region"], row["instance_type"]): interruptions_per_hour(row["interruption_band"]) for row in bands}
    kinds = price_kinds()
    return [_with_rate(offer, rates) if kinds[offer.price_kind].interruptible else offer for offer in offers]


def _with_rate(offer: Offer, rates: dict[tuple[str, str], float]) -> Offer:
    """Only AWS uses the region and type names of the band table, so the pair is a sufficient key."""
    rate = rates.get((offer.region, offer.instance_type))
    if rate is not None:
        return replace(offer, interruptions_per_hour=rate)
    return replace(
        offer,
        interruptions_per_hour=DEFAULT_INTERRUPTIONS_PER_HOUR,
        modelled=(*offer.modelled, "interruption_rate"),
    )


#: A GiB in GB: sizes in the catalogue are GB, so a price per GiB is divided and a bound in TiB multiplied.
GB_PER_GIB = Decimal(2**30) / Decimal(10**9)
GIB_PER_TIB = 1024
#: Tiers that the egress table states in TiB, by their upper bound: those of Google's Cloud Billing Catalog, whose network
#: SKUs are priced per GiB (pricing unit "gibibyte", https://cloud.google.com/vpc/network-pricing).
BINARY_TIERS = {"0-1 TiB": 1, "1-10 TiB": 10, "10n TiB": None}
#: Other names of tier bounds, in GB.
TIER_ENDS_GB = {
    "0-100 GB free": Decimal(100),
    "up to 1000 GB": Decimal(1_000),
    "up to 10000 GB": Decimal(10_000),
    "up to 50000 GB": Decimal(50_000),
    "up to 150000 GB": Decimal(150_000),
    "above": None,
    "all": None,
}
WORLDWIDE = "internet:worldwide"
#: Names of worldwide internet in tables without destinations.
SAME_DESTINATION = {"internet": WORLDWIDE}
PER_GIB = "USD per GiB-month"
#: Prices per GB are rounded to this many dollars.
SMALLEST_UNIT_PRICE = Decimal("0.00000001")
#: The country and the electricity of a place that its provider does not state.
_NOWHERE = {"geography": "", "continent": "", "usd_per_kwh": "", "as_of": "", "source": ""}


def side_tables(facts: Path) -> dict[str, list[Row]]:
    """The rows of regions.csv, egress.csv, storage.csv and carbon.csv, sorted."""
    places = mapping_table("places")
    priced_by_region = {row["provider"] for row in mapping_table("storage_skus")}
    neoclouds = [place for place in places if place["provider"] not in priced_by_region]
    return {
        "regions": _regions(places),
        "egress": _by_place(_egress(fact_table("egress_prices", facts)) + neocloud_egress(neoclouds)),
        "storage": _by_place(_storage(fact_table("storage_prices", facts), places) + neocloud_storage(neoclouds)),
        "carbon": _carbon(fact_table("carbon_and_pue", facts), places),
    }


def _regions(places: Sequence[Row]) -> list[Row]:
    """The regions. A zone that the price list treats as a region gets the region whose name it extends as parent."""
    countries = {row["country"]: row for row in mapping_table("countries")}
    power = {row["continent"]: row for row in mapping_table("electricity")}
    names = {(row["provider"], row["region"]) for row in places}
    rows = []
    for place in places:
        country = countries[place["country"]] if place["country"] else _NOWHERE
        price = power[country["continent"]] if place["country"] else _NOWHERE
        parents = [
            region
            for provider, region in names
            if provider == place["provider"] and place["region"].startswith(f"{region}-")
        ]
        rows.append(
            {
                "provider": place["provider"],
                "region": place["region"],
                "location": place["location"],
                "country": place["country"],
                "geography": country["geography"],
                "partition": place["partition"],
                "parent_region": min(parents, key=len, default=""),
                "usd_per_kwh": price["usd_per_kwh"],
                "usd_per_kwh_source": f"{price['source']}, {country['continent']}" if price["source"] else "",
                "usd_per_kwh_as_of": price["as_of"],
            }
        )
    return sorted(rows, key=_place)


def _egress(rows: Sequence[Row]) -> list[Row]:
    """Tiers by (provider, region, destination); the more exact table takes precedence."""
    exact = {(row["provider"], row["region"]) for row in rows if row["destination"] == WORLDWIDE}
    made = []
    for row in rows:
        destination = SAME_DESTINATION.get(row["destination"], row["destination"])
        if destination != row["destination"] and (row["provider"], row["region"]) in exact:
            continue
        end, usd_per_gb = _tier(row)
        made.append(
            {
                "provider": row["provider"],
                "region": row["region"],
                "destination": destination,
                "up_to_gb": "" if end is None else _plain(end),
                "usd_per_gb": _plain(usd_per_gb),
                "as_of": row["as_of"],
                "source": row["source"],
                "note": "",
            }
        )
    return sorted(made, key=lambda row: (*_place(row), row["destination"], float(row["up_to_gb"] or "inf")))


def _by_place(rows: Sequence[Row]) -> list[Row]:
    """Rows of several sources by place, each place's in its own order."""
    return sorted(rows, key=_place)


def _tier(row: Row) -> tuple[Decimal | None, Decimal]:
    """The upper bound of an egress tier in GB, None for the last, and its USD per GB."""
    usd = Decimal(row["usd_per_gb"])
    if row["volume_tier"] not in BINARY_TIERS:
        return TIER_ENDS_GB[row["volume_tier"]], usd
    tib = BINARY_TIERS[row["volume_tier"]]
    end = None if tib is None else tib * GIB_PER_TIB * GB_PER_GIB
    return end, (usd / GB_PER_GIB).quantize(SMALLEST_UNIT_PRICE)


def _storage(rows: Iterable[Row], places: Sequence[Row]) -> list[Row]:
    """One row per (provider, region, block or object): the SKU of best rank, then the newest."""
    ranks = {(row["provider"], row["kind"], row["sku"]): int(row["rank"]) for row in mapping_table("storage_skus")}
    known = {_place(row) for row in places}
    best: dict[tuple[str, str, str], Row] = {}
    for row in sorted(rows, key=lambda item: item["as_of"]):
        rank = ranks.get((row["provider"], row["storage_kind"], row["sku"]))
        if rank is None or row["price_kind"] != "on_demand" or _place(row) not in known:
            continue
        key = (*_place(row), row["storage_kind"])
        if key not in best or rank <= ranks[row["provider"], row["storage_kind"], best[key]["sku"]]:
            best[key] = row
    return sorted((_storage_row(row) for row in best.values()), key=lambda row: (*_place(row), row["kind"]))


def _storage_row(row: Row) -> Row:
    usd = Decimal(row["usd_per_unit"]) / (GB_PER_GIB if row["unit"] == PER_GIB else 1)
    return {
        "provider": row["provider"],
        "region": row["region"],
        "kind": row["storage_kind"],
        "sku": row["sku"],
        "usd_per_gb_month": _plain(usd.quantize(SMALLEST_UNIT_PRICE)),
        "as_of": row["as_of"],
        "source": row["source"],
        "note": "",
    }


def _carbon(rows: Sequence[Row], places: Sequence[Row]) -> list[Row]:
    """Grid intensity and PUE of every place that has either: best source first, then its newest year."""
    factor_names = {row["region"]: row["factor_region"] for row in mapping_table("azure_carbon_names")}
    made = []
    for place in places:
        names = {place["region"], factor_names.get(place["region"], place["region"])}
        region_rows = [row for row in rows if row["region"] in names and row["provider"] in {place["provider"], ""}]
        fleet = [row for row in rows if row["provider"] == place["provider"] and row["metric"] == "pue_fleet"]
        grid = _preferred([row for row in region_rows if row["metric"].startswith("grid_")])
        pue = _preferred([row for row in region_rows if row["metric"] == "pue_region"]) or _preferred(fleet)
        if grid or pue:
            made.append(_carbon_row(place, grid, pue))
    return sorted(made, key=_place)


def _preferred(rows: Sequence[Row]) -> Row | None:
    """One of several values for a key: from the best-ranked source, the newest, and of equals the larger."""
    ranks = [(row["source_prefix"], int(row["rank"])) for row in mapping_table("carbon_sources")]

    def goodness(row: Row) -> tuple[int, str, float]:
        rank = next(rank for prefix, rank in ranks if row["source"].startswith(prefix))
        return -rank, row["as_of"], float(row["value"])

    return max(rows, key=goodness, default=None)


def _carbon_row(place: Row, grid: Row | None, pue: Row | None) -> Row:
    return {
        "provider": place["provider"],
        "region": place["region"],
        "grid_g_per_kwh": grid["value"] if grid else "",
        "grid_as_of": grid["as_of"] if grid else "",
        "grid_source": grid["source"] if grid else "",
        "pue": pue["value"] if pue else "",
        "pue_as_of": pue["as_of"] if pue else "",
        "pue_source": pue["source"] if pue else "",
    }


def _place(row: Row) -> tuple[str, str]:
    return row["provider"], row["region"]


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"
