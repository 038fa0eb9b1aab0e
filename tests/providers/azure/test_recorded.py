"""Replies that others recorded from the real Azure, read as a refresh would."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gpuplan.providers.azure.region_rows import rows_of
from gpuplan.providers.azure.retail import Prices, prices_of
from gpuplan.providers.azure.skus import skus_of
from gpuplan.providers.contract import Rows

pytestmark = pytest.mark.shared_data
NIGHT = datetime(2026, 11, 21, 3, tzinfo=UTC)


@pytest.fixture
def recorded(shared_data: Path) -> Path:
    return shared_data / "wire" / "azure"


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def prices(items: Iterable[Any], region: str) -> Prices:
    return prices_of(items, region=region, read_at=NIGHT)


def joined(items: Iterable[Any], region: str, skus: list[Any] | None = None) -> Rows:
    listed = skus_of(skus) if skus is not None else None
    return rows_of(prices(items, region), region=region, skus=listed, skus_failed=False, read_at=NIGHT)


def modelled_counts(rows: Rows) -> dict[tuple[str, str], int]:
    return {(offer.instance_type, offer.price_kind): offer.usd_micros_per_hour for offer in rows.offers}


def test_an_h100_machine_has_three_linux_prices_among_its_recorded_rows(recorded: Path) -> None:
    rows = joined(document(recorded / "retail_prices.ND96isr_H100_v5.eastus.2026-08.json")["Items"], "eastus")
    name = "Standard_ND96isr_H100_v5"
    assert modelled_counts(rows) == {
        (name, "on_demand"): 98_320_000,
        (name, "spot"): 18_169_536,
        (name, "reserved_1y"): 62_924_772,
    }
    assert not rows.quarantined


def test_recorded_rows_of_many_regions_with_seven_fields_are_read(recorded: Path) -> None:
    items = document(recorded / "retail_prices.N_series.many_regions.7fields.json")
    regions = {item["armRegionName"] for item in items}
    everything = {region: joined(items, region) for region in regions}
    assert not [item for rows in everything.values() for item in rows.quarantined]
    reported_answer_of = {
        (region, *key): micros for region, rows in everything.items() for key, micros in modelled_counts(rows).items()
    }
    assert reported_answer_of["eastus2", "Standard_NC48ads_A100_v4", "on_demand"] == 7_346_000
    assert reported_answer_of["uksouth", "Standard_ND96isr_H200_v5", "spot"] == 106_000_000
    assert reported_answer_of["usgovvirginia", "Standard_ND96isr_H200_v5", "on_demand"] == 106_000_000
    linux = [
        item
        for item in items
        if "Low Priority" not in item["meterName"] and not item["productName"].endswith(("Windows", " Win"))
    ]
    assert len(reported_answer_of) == len(
        {(i["armRegionName"], i["armSkuName"], "Spot" in i["meterName"]) for i in linux}
    )


def test_recorded_savings_plans_are_hourly_and_sizes_without_accelerators_give_nothing(recorded: Path) -> None:
    items = document(recorded / "retail_prices.savingsPlan.B16als_v2.json")["Items"]
    assert prices(items, "australiacentral") == Prices()
    renamed = [{**item, "armSkuName": "Standard_NC6s_v3"} for item in items]
    result = {price.kind: price.usd_micros_per_hour for price in prices(renamed, "australiacentral").prices}
    assert result == {
        "on_demand": 673_000,
        "savings_plan_3y": 343_230,
        "savings_plan_1y": 491_290,
        "reserved_1y": round(3478 / 8760 * 1e6),
    }


def test_rows_of_further_families_are_read(recorded: Path) -> None:
    items = document(recorded / "retail_prices.NC_ND_families.constructed.json")["Items"]
    regions = {item["armRegionName"] for item in items}
    everything = {region: joined(items, region) for region in regions}
    names = {offer.instance_type for rows in everything.values() for offer in rows.offers}
    assert {"Standard_NCC40ads_H100_v5", "Standard_NC40ads_H100_v5", "Standard_NC4as_T4_v3"} <= names
    assert modelled_counts(everything["eastus2"])["Standard_NCC40ads_H100_v5", "on_demand"] == 6_980_000


def test_the_recorded_sku_list_describes_all_that_the_own_table_knows(recorded: Path) -> None:
    result = skus_of(document(recorded / "resource_skus.eastus.N_series.2020-08.json")["value"])
    assert len(result.by_place) == 41
    small = result.at("eastus", "Standard_NV4as_v4")
    assert small is not None
    assert (small.gpus, small.vcpus, small.ram_gib, small.local_disk_gb) == (1, 4.0, 14.0, 94.5)
    zonal, closed = result.at("eastus", "Standard_NV6"), result.at("eastus", "Standard_NV6s_v2")
    assert zonal is not None
    assert closed is not None
    assert (zonal.closed, closed.closed) == ("", "NotAvailableForSubscription")
    promo = result.at("eastus", "Standard_NC6_Promo")
    assert promo is not None
    assert not promo.spot


def test_a_recorded_family_with_blanks_and_a_disk_in_mib_are_read(recorded: Path) -> None:
    result = skus_of(document(recorded / "resource_skus.southcentralus.NC.2026.json")["value"])
    a100 = result.at("southcentralus", "Standard_NC24ads_A100_v4")
    assert a100 is not None
    assert (a100.local_disk_gb, a100.ram_gib) == (960.0, 220.0)
    t4 = result.at("southcentralus", "Standard_NC16as_T4_v3")
    assert t4 is not None
    assert t4.family == "Standard NCASv3_T4 Family"


def test_a_share_of_an_a10_stays_a_share_although_the_list_counts_one(recorded: Path) -> None:
    skus = document(recorded / "resource_skus.newer_families.constructed.json")["value"]
    item = {
        "armSkuName": "Standard_NV6ads_A10_v5",
        "armRegionName": "eastus",
        "retailPrice": 0.454,
        "unitOfMeasure": "1 Hour",
        "meterName": "NV6ads A10 v5",
        "productName": "Virtual Machines NVadsA10v5 Series",
        "type": "Consumption",
    }
    rows = joined([item], "eastus", skus)
    assert [(m.accelerator, m.accelerator_count) for m in rows.instance_types] == [("A10", Fraction(1, 6))]


def test_a_sku_list_without_accelerators_gives_regions_alone(recorded: Path) -> None:
    result = skus_of(document(recorded / "resource_skus.ListAvailable.doc_example.json")["value"])
    assert (result.by_place, result.regions) == ({}, {"westus"})
