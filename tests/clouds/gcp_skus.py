"""SKUs in the shape of the Cloud Billing Catalog, spelt as Google spells them, and neighbours that must not match."""

from typing import Any
from zlib import crc32

Sku = dict[str, Any]

USAGE = {
    "on_demand": "OnDemand",
    "spot": "Preemptible",
    "committed_1y": "Commit1Yr",
    "committed_3y": "Commit3Yr",
    "flex_start": "OnDemand",
    "calendar": "OnDemand",
}
YEARS = {"committed_1y": "1 Year", "committed_3y": "3 Years"}


def sku(
    description: str,
    nanos: int,
    regions: list[str],
    *,
    usage: str = "OnDemand",
    group: str = "GPU",
    family: str = "Compute",
    unit: str = "h",
    effective: str | None = "2026-11-01T00:00:00Z",
    tiers: list[tuple[float, int]] | None = None,
    sku_id: str | None = None,
) -> Sku:
    """One SKU at `nanos` nano-dollars per `unit`; `tiers` are (start, nanos) where there are several."""
    identifier = sku_id or f"{crc32(repr((description, regions, usage, nanos)).encode()):08X}"
    rates = [
        {
            "startUsageAmount": start,
            "unitPrice": {"currencyCode": "USD", "units": str(rate // 10**9), "nanos": rate % 10**9},
        }
        for start, rate in tiers or [(0, nanos)]
    ]
    info: dict[str, Any] = {
        "summary": "",
        "pricingExpression": {
            "usageUnit": unit,
            "displayQuantity": 1,
            "tieredRates": rates,
            "usageUnitDescription": unit,
            "baseUnit": "s",
            "baseUnitDescription": "second",
            "baseUnitConversionFactor": 3600,
        },
        "currencyConversionRate": 1,
    }
    if effective is not None:
        info["effectiveTime"] = effective
    return {
        "name": f"services/6F81-5844-456A/skus/{identifier}",
        "skuId": identifier,
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": family,
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": regions,
        "pricingInfo": [info],
        "serviceProviderName": "Google",
        "geoTaxonomy": {"type": "REGIONAL" if len(regions) == 1 else "MULTI_REGIONAL", "regions": regions},
    }


def component_sku(name: str, kind: str, nanos: int, region: str) -> Sku:
    """A core, memory or GPU of a machine family: `A2 Core`, `G2 Ram`, `Nvidia L4 GPU`."""
    host, _, what = name.rpartition(" ")
    group = {"Core": "CPU", "Ram": "RAM"}.get(what, "GPU")
    unit = "GiBy.h" if group == "RAM" else "h"
    group = "N1Standard" if host == "N1" and group != "GPU" else group
    return sku(_spelt(name, kind, region), nanos, [region], usage=USAGE[kind], group=group, unit=unit)


def _spelt(name: str, kind: str, region: str) -> str:
    host, _, what = name.rpartition(" ")
    if what not in ("Core", "Ram"):
        attached = {"spot": " attached to Spot Preemptible VMs", "flex_start": " attached to DWS Defined Duration VMs"}
        if kind in YEARS:
            return f"Commitment v1: {name} running in {region.title()} for {YEARS[kind]}"
        return f"{name}{attached.get(kind, '')} running in {region.title()}"
    if kind in YEARS:
        return f"Commitment v1: {host} {'Cpu' if what == 'Core' else 'Ram'} in {region.title()} for {YEARS[kind]}"
    if kind == "flex_start":
        return f"DWS Defined Duration {host} {what} running in {region.title()}"
    middle = "Predefined Instance" if host == "N1" else "Instance"
    return f"{'Spot Preemptible ' if kind == 'spot' else ''}{host} {middle} {what} running in {region.title()}"


def ssd_sku(kind: str, nanos_per_month: int, regions: list[str]) -> Sku:
    """Local SSD, per GiB and month."""
    spelt = {
        "on_demand": "SSD backed Local Storage",
        "spot": "SSD backed Local Storage attached to Spot Preemptible VMs",
        "flex_start": "DWS Defined Duration SSD backed Local Storage running in Americas",
    }
    description = spelt.get(kind) or f"Commitment v1: Local SSD In Americas for {YEARS[kind]}"
    return sku(
        description,
        nanos_per_month,
        regions,
        usage=USAGE[kind],
        group="LocalSSD",
        family="Storage",
        unit="GiBy.mo",
    )


def neighbours(region: str) -> list[Sku]:
    """What stands beside the SKUs that price a machine; each would be noticed if it were taken for one of them."""
    absurd = 999_000_000_000
    descriptions = {
        "A2 Sole Tenancy Instance Core running in Americas": ("CPU", "OnDemand", "h"),
        "Sole Tenancy Premium for A2 Sole Tenancy Instance Core": ("CPU", "OnDemand", "h"),
        "N1 Custom Instance Core running in Americas": ("N1Standard", "OnDemand", "h"),
        "Custom Extended Instance Ram running in Americas": ("RAM", "OnDemand", "GiBy.h"),
        "Reserved G2 Instance Core in Americas": ("CPU", "OnDemand", "h"),
        "Nvidia L4 Virtual Workstation GPU running in Americas": ("GPU", "OnDemand", "h"),
        "Nvidia Tesla T4 GPU Virtual Workstation License": ("GPU", "OnDemand", "h"),
        "Commitment v1: A2 Cpu in Americas for 1 Month": ("CPU", "Commit1Mo", "h"),
        "Memory-optimized Instance Core Upgrade Premium running in Americas": ("CPU", "OnDemand", "h"),
        "A2 Instance Ram suspended in Americas": ("RAM", "OnDemand", "GiBy.h"),
        "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas": ("GPU", "OnDemand", "h"),
        "Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs running in Americas": ("GPU", "OnDemand", "h"),
        "Reserved TpuV5p in Delhi in Calendar Mode": ("TPU", "OnDemand", "h"),
        "N2 Instance Core running in Americas": ("CPU", "OnDemand", "h"),
    }
    return [
        sku(text, absurd, [region], usage=usage, group=group, unit=unit)
        for text, (group, usage, unit) in descriptions.items()
    ]


def padding(count: int) -> list[Sku]:
    """SKUs of other things, as most of the real catalogue is."""
    return [
        sku(
            f"Network Inter Region Egress {number} from Americas to Place {number % 97}",
            10_000_000 + number,
            ["us-central1"],
            family="Network" if number % 3 else "Compute",
            group="InterregionEgress" if number % 3 else "CPU",
            unit="GiBy" if number % 3 else "h",
            sku_id=f"PAD-{number:05}",
        )
        for number in range(count)
    ]
