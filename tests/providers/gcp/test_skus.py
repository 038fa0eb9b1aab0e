"""SKUs to unit prices, from the JSON that the Cloud Billing Catalog sends."""

import json
from fractions import Fraction
from typing import Any

import pytest

from gpuplan.providers.gcp.sku_descriptions import SkuPage, component
from gpuplan.providers.gcp.skus import PricedSku, Prices, read_skus
from tests.clouds.gcp_skus import sku
from tests.providers.gcp.reads import READ_AT

L4 = "Nvidia L4 GPU running in Americas"


def read(*skus: dict[str, Any]) -> list[PricedSku]:
    return read_skus(SkuPage.model_validate_json(json.dumps({"skus": skus})), READ_AT)


def prices_of(*skus: dict[str, Any]) -> Prices:
    made = Prices()
    made.add(read(*skus))
    return made


def nanos(made: Prices, name: str, region: str = "us-central1", kind: str = "on_demand") -> Fraction | None:
    return made.find([name], region, kind)


def test_whole_dollars_come_as_a_string_and_are_added_to_the_nanos() -> None:
    made = sku("Nvidia H100 80GB GPU running in Americas", 9_796_600_000, ["us-central1"])
    assert made["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["units"] == "9"
    assert nanos(prices_of(made), "80gb h100") == 9_796_600_000


def test_a_free_first_tier_is_an_allowance_and_the_paid_one_is_the_price() -> None:
    made = sku(L4, 0, ["us-central1"], tiers=[(0, 0), (730, 560_000_000)])
    assert nanos(prices_of(made), "l4") == 560_000_000


def test_the_first_paid_tier_is_the_price_and_volume_tiers_are_not() -> None:
    made = sku(L4, 0, ["us-central1"], tiers=[(1000, 400_000_000), (0, 560_000_000)])
    assert nanos(prices_of(made), "l4") == 560_000_000


def test_memory_by_decimal_gigabytes_is_dearer_per_gib() -> None:
    made = prices_of(sku("G2 Instance Ram running in Iowa", 1_000_000, ["us-central1"], group="RAM", unit="GBy.h"))
    assert nanos(made, "g2 ram") == Fraction(1_000_000 * 2**30, 10**9)


def test_local_ssd_by_the_month_is_divided_by_730_hours() -> None:
    made = sku("SSD backed Local Storage", 80_000_000, ["us-central1"], family="Storage", unit="GiBy.mo")
    assert nanos(prices_of(made), "local ssd") == Fraction(80_000_000, 730)


def test_a_sku_holds_in_its_service_regions_and_not_where_its_description_says() -> None:
    made = prices_of(
        sku("Commitment v1: A2 Cpu in APAC for 1 Year", 23_059_300, ["asia-east1"], usage="Commit1Yr", group="CPU")
    )
    assert nanos(made, "a2 core", "asia-east1", "committed_1y") == 23_059_300
    assert nanos(made, "a2 core", "asia-northeast1", "committed_1y") is None


def test_a_multi_region_is_spelt_out_by_the_taxonomy() -> None:
    made = sku(L4, 500_000_000, ["us"])
    made["geoTaxonomy"] = {"type": "MULTI_REGIONAL", "regions": ["us-central1", "us-east1"]}
    result = prices_of(made)
    assert [nanos(result, "l4", region) for region in ("us-central1", "us-east1")] == [500_000_000] * 2
    assert nanos(result, "l4", "us-west1") is None


def test_a_sku_without_regions_holds_everywhere() -> None:
    made = sku("SSD backed Local Storage", 80_000_000, ["global"], family="Storage", unit="GiBy.mo")
    made["geoTaxonomy"] = {"type": "GLOBAL"}
    assert nanos(prices_of(made), "local ssd", "europe-west4") == Fraction(80_000_000, 730)


def test_a_price_of_the_future_is_not_in_force() -> None:
    made = sku(L4, 500_000_000, ["us-central1"], effective="2027-01-01T00:00:00Z")
    result = prices_of(made)
    assert nanos(result, "l4") is None
    assert "holds from 2027-01-01" in result.quarantined[0].row.reason


def test_a_clock_that_is_a_day_late_loses_no_price() -> None:
    made = sku(L4, 500_000_000, ["us-central1"], effective="2026-11-22T02:00:00Z")
    assert nanos(prices_of(made), "l4") == 500_000_000
    made["pricingInfo"] += sku(L4, 600_000_000, ["us-central1"], effective="2026-10-01T00:00:00Z")["pricingInfo"]
    assert nanos(prices_of(made), "l4") == 600_000_000


def test_of_several_times_the_last_one_in_force_counts() -> None:
    made = sku(L4, 600_000_000, ["us-central1"], effective="2026-01-01T00:00:00Z")
    newer = sku(L4, 500_000_000, ["us-central1"], effective="2026-10-01T00:00:00Z")
    future = sku(L4, 400_000_000, ["us-central1"], effective="2026-12-01T00:00:00Z")
    made["pricingInfo"] += [*future["pricingInfo"], *newer["pricingInfo"]]
    assert nanos(prices_of(made), "l4") == 500_000_000


def test_of_two_skus_for_one_component_the_newer_one_counts() -> None:
    old = sku(L4, 600_000_000, ["us-central1"], effective="2026-01-01T00:00:00Z")
    new = sku(L4, 500_000_000, ["us-central1"], effective="2026-10-01T00:00:00Z")
    for pair in ((old, new), (new, old)):
        result = prices_of(*pair)
        assert nanos(result, "l4") == 500_000_000
        assert not result.quarantined


def test_of_two_skus_of_the_same_day_the_dearer_one_counts_and_the_other_is_set_aside() -> None:
    cheap, dear = sku(L4, 500_000_000, ["us-central1"]), sku(L4, 600_000_000, ["us-central1"])
    for pair in ((cheap, dear), (dear, cheap)):
        result = prices_of(*pair)
        assert nanos(result, "l4") == 600_000_000
        assert [cheap["skuId"] in item.row.what for item in result.quarantined] == [True]


def test_a_price_of_zero_is_unknown_and_never_free() -> None:
    result = prices_of(sku(L4, 0, ["us-central1"]))
    assert nanos(result, "l4") is None
    assert "zero means unknown" in result.quarantined[0].row.reason


@pytest.mark.parametrize(
    ("unit", "currency", "reason"),
    [("mo", "USD", "is priced per 'mo'"), ("h", "EUR", "is priced in EUR"), ("GiBy.h", "USD", "is no unit of l4")],
)
def test_another_unit_or_currency_is_set_aside_with_the_reason(unit: str, currency: str, reason: str) -> None:
    made = sku(L4, 500_000_000, ["us-central1"], unit=unit)
    made["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = currency
    result = prices_of(made)
    assert nanos(result, "l4") is None
    assert reason in result.quarantined[0].row.reason


def test_optional_fields_may_be_missing() -> None:
    made = sku(L4, 500_000_000, ["us-central1"], effective=None)
    del made["geoTaxonomy"], made["serviceProviderName"], made["category"]["serviceDisplayName"], made["name"]
    assert nanos(prices_of(made), "l4") == 500_000_000


@pytest.mark.parametrize("name", ["Nvidia L4 GPU", "Nvidia Tesla T4 GPU"])
def test_a_known_component_needs_no_resource_group(name: str) -> None:
    made = sku(f"{name} running in Iowa", 500_000_000, ["us-central1"])
    del made["category"]["resourceGroup"]
    assert nanos(prices_of(made), component(name)) == 500_000_000


def test_the_gpu_of_an_n1_machine_without_a_usable_price_is_set_aside() -> None:
    result = prices_of(sku("Nvidia Tesla T4 GPU running in Iowa", 0, ["us-central1"]))
    assert result.why_unusable(["t4"], "us-central1", "on_demand") == "a price of zero means unknown"


def test_skus_of_other_things_are_passed_over() -> None:
    egress = sku(
        "Network Inter Region Egress from Americas", 10_000_000, ["us-central1"], family="Network", unit="GiBy"
    )
    nothing = sku("Nvidia L4 Virtual Workstation GPU running in Iowa", 1, ["us-central1"])
    assert read(egress, nothing) == []
