"""One product of the AWS price list as prices per node-hour."""

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.providers.aws.price_rows import (
    OFFER_TERM_CODES,
    RESERVED_KINDS,
    PriceRow,
    is_accelerated,
    plain_attributes,
    rows_of_product,
)
from tests.providers.aws.price_documents import dimension, on_demand, product, reserved


def prices(document: dict[str, Any]) -> dict[str, int]:
    rows, doubts = rows_of_product(document)
    assert doubts == []
    return {row.price_kind: row.usd_micros_per_hour for row in rows}


def doubts_of(document: dict[str, Any]) -> list[str]:
    return [doubt.reason for doubt in rows_of_product(document)[1]]


def test_a_plain_linux_machine_has_its_on_demand_price() -> None:
    rows, doubts = rows_of_product(product())
    assert doubts == []
    assert rows == [
        PriceRow(
            region="us-east-1",
            zone="",
            instance_type="p4d.24xlarge",
            price_kind="on_demand",
            usd_micros_per_hour=21_957_642,
        )
    ]


def test_prices_are_strings_of_ten_decimals_and_rounded_once_without_floats() -> None:
    assert prices(product(usd="0.0000015000")) == {"on_demand": 2}
    assert prices(product(usd="21.9576425000")) == {"on_demand": 21_957_642}


def test_a_price_is_what_the_region_says_and_no_multiple_of_another() -> None:
    assert prices(product(regionCode="us-west-2", usd="21.9576400000")) == {"on_demand": 21_957_640}


@pytest.mark.parametrize(
    "attributes",
    [
        {"operatingSystem": "Windows"},
        {"operatingSystem": "RHEL"},
        {"tenancy": "Dedicated"},
        {"tenancy": "Host"},
        {"preInstalledSw": "SQL Std"},
        {"licenseModel": "Bring your own license"},
        {"operation": "RunInstances:0002"},
        {"locationType": "AWS Wavelength Zone", "regionCode": "us-east-1-wl1-bos-wlz-1"},
        {"locationType": "AWS Outposts"},
    ],
    ids=lambda attributes: ",".join(attributes.values()),
)
def test_what_is_no_plain_machine_gives_no_price_and_no_doubt(attributes: dict[str, Any]) -> None:
    assert rows_of_product(product(**attributes)) == ([], [])


def test_a_windows_license_row_is_never_taken_although_seven_other_attributes_agree() -> None:
    assert rows_of_product(product(licenseModel="Bring your own license", usd="0.1920000000")) == ([], [])


def test_a_capacity_block_product_with_the_same_usage_type_is_never_a_free_p5() -> None:
    block = product(
        instanceType="p5.48xlarge",
        marketoption="CapacityBlock",
        operation="RunInstances:CB",
        usagetype="BoxUsage:p5.48xlarge",
        usd="0.0000000000",
    )
    assert rows_of_product(block) == ([], [])


def test_a_capacity_block_operation_is_known_even_without_a_market_option() -> None:
    assert rows_of_product(product(operation="RunInstances:CB", without=["marketoption"])) == ([], [])


@pytest.mark.parametrize(
    ("status", "usage"),
    [
        ("UnusedCapacityReservation", "UnusedBox:p4d.24xlarge"),
        ("AllocatedCapacityReservation", "Reservation:p4d.24xlarge"),
    ],
)
def test_capacity_reservations_of_the_same_machine_are_not_its_price(status: str, usage: str) -> None:
    assert rows_of_product(product(capacitystatus=status, usagetype=usage, usd="0.0000000000")) == ([], [])
    assert rows_of_product(product(usagetype=usage, without=["capacitystatus"])) == ([], [])
    assert rows_of_product(product(capacitystatus=status)) == ([], [])


@pytest.mark.parametrize("usage", ["HostBoxUsage:p4d.24xlarge", "DedicatedUsage:p4d.24xlarge", "EBSOptimized:p4d"])
def test_only_a_box_usage_type_is_the_price_of_a_machine(usage: str) -> None:
    assert rows_of_product(product(usagetype=usage, without=["tenancy"])) == ([], [])


@pytest.mark.parametrize("prefix", ["", "USW2-", "EU-", "USW2-LAX1-", "APS3-"])
def test_the_prefix_of_a_usage_type_is_not_read_as_a_region(prefix: str) -> None:
    rows, _ = rows_of_product(product(usagetype=f"{prefix}BoxUsage:p4d.24xlarge"))
    assert [row.region for row in rows] == ["us-east-1"]


def test_bare_metal_is_a_compute_instance_too() -> None:
    metal = product(instanceType="g4dn.metal", family="Compute Instance (bare metal)", usd="7.8240000000")
    assert prices(metal) == {"on_demand": 7_824_000}


def test_storage_is_no_machine() -> None:
    assert rows_of_product(product(family="Storage")) == ([], [])


def test_the_free_tier_product_without_an_instance_type_gives_nothing() -> None:
    free = product(
        on_demand_terms=[
            {
                "offerTermCode": "A429C66SYZ",
                "termAttributes": {"LimitedTo": "750"},
                "priceDimensions": {"RATE": dimension("0.0000000000") | {"endRange": "750"}},
            }
        ],
        regionCode="",
        location="Any",
        without=["instanceType"],
    )
    assert rows_of_product(free) == ([], [])


def test_attributes_are_found_whatever_their_casing() -> None:
    mixed = product()
    attributes = mixed["product"]["attributes"]
    mixed["product"]["attributes"] = {
        "Instance Type" if name == "instanceType" else name.upper(): value for name, value in attributes.items()
    }
    assert prices(mixed) == {"on_demand": 21_957_642}


def test_a_wrong_market_is_found_whatever_the_casing_of_its_attribute() -> None:
    assert rows_of_product(product(MarketOption="CapacityBlock", without=["marketoption"])) == ([], [])


def test_a_local_zone_is_a_region_of_its_own_whose_rows_name_it_as_zone_too() -> None:
    rows, _ = rows_of_product(product(locationType="AWS Local Zone", regionCode="us-west-2-lax-1"))
    assert [(row.region, row.zone) for row in rows] == [("us-west-2-lax-1", "us-west-2-lax-1")]


def test_a_local_zone_under_the_code_of_its_region_is_never_a_price_of_the_region() -> None:
    zone = partial(product, regionCode="us-west-2", locationType="AWS Local Zone")
    rows, doubts = rows_of_product(zone(location="US West (Los Angeles)"))
    assert ([(row.region, row.zone) for row in rows], doubts) == ([("us-west-2-lax-1", "us-west-2-lax-1")], [])
    rows, (doubt,) = rows_of_product(zone(location="US West (Oregon)"))
    assert (rows, "US West (Oregon)" in doubt.reason) == ([], True)


def test_a_region_that_no_table_knows_is_taken_as_it_says() -> None:
    rows, _ = rows_of_product(product(regionCode="mx-north-7", location="Mexico (Somewhere)"))
    assert [row.region for row in rows] == ["mx-north-7"]


def test_a_missing_region_code_comes_from_the_location_if_one_region_is_called_so() -> None:
    rows, _ = rows_of_product(product(location="EU (Ireland)", without=["regionCode"]))
    assert [row.region for row in rows] == ["eu-west-1"]


def test_a_place_that_cannot_be_told_is_set_aside() -> None:
    assert doubts_of(product(location="Moon (Crater)", without=["regionCode"])) == [
        "no regionCode, and no known region is called Moon (Crater)"
    ]


def test_a_sparse_product_is_read_by_what_it_has() -> None:
    sparse = {"instanceType": "p4d.24xlarge", "regionCode": "us-east-1", "operatingSystem": "Linux"}
    document = product()
    document["product"]["attributes"] = sparse
    assert prices(document) == {"on_demand": 21_957_642}


def test_a_product_that_does_not_say_its_operating_system_is_set_aside() -> None:
    assert doubts_of(product(without=["operatingSystem", "operation"])) == [
        "neither operatingSystem nor operation says that this is Linux"
    ]


def test_a_price_of_zero_is_unknown_and_never_free() -> None:
    rows, doubts = rows_of_product(product(usd="0.0000000000"))
    assert rows == []
    assert [(doubt.what, doubt.reason) for doubt in doubts] == [
        (
            "p4d.24xlarge (SKU H7NGEAC6UEHNTKSJ) in us-east-1, on_demand",
            "a price of zero means unknown, never free",
        )
    ]


def test_a_missing_on_demand_price_is_data_and_leaves_the_reserved_prices() -> None:
    document = product(
        on_demand_terms=[], reserved_terms=[reserved("4NA7Y494T4", "1yr", "standard", "No Upfront", hourly="10.5")]
    )
    rows, doubts = rows_of_product(document)
    assert [row.price_kind for row in rows] == ["reserved_1y"]
    assert [doubt.reason for doubt in doubts] == ["no hourly on-demand prices where one is expected"]


def test_two_hourly_on_demand_prices_are_one_too_many() -> None:
    two = on_demand()
    two["priceDimensions"]["OTHER"] = dimension("1.0000000000")
    assert doubts_of(product(on_demand_terms=[two])) == ["2 hourly on-demand prices where one is expected"]


@pytest.mark.parametrize(
    ("usd", "reason"),
    [
        ("abc", "'abc' is no price"),
        ("NaN", "'NaN' is no price"),
        ("-1", "'-1' is no price"),
        ("1e999999", "'1e999999' is no price"),
        ("1,234", "'1,234' is no price"),
        (["1"], "['1'] is no price"),
    ],
)
def test_a_price_that_is_no_number_is_set_aside(usd: Any, reason: str) -> None:
    assert doubts_of(product(usd=usd)) == [reason]


def test_a_price_in_another_currency_is_no_price_in_dollars() -> None:
    assert doubts_of(product(on_demand_terms=[on_demand("150.1", currency="CNY")])) == [
        "no price in USD (given in CNY)"
    ]


def test_a_partial_upfront_term_is_fee_and_hours_together() -> None:
    term = reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="1.0000000000", fee="8760")
    assert prices(product(reserved_terms=[term]))["reserved_1y_partial_upfront"] == 2_000_000


def test_an_all_upfront_term_has_an_hourly_price_of_zero_and_still_costs_its_fee() -> None:
    term = reserved("NQ3QZPMQV9", "3yr", "standard", "All Upfront", hourly="0.0000000000", fee="26280")
    assert prices(product(reserved_terms=[term]))["reserved_3y_all_upfront"] == 1_000_000


def test_the_effective_price_of_a_term_is_rounded_once() -> None:
    term = reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="0.0000004000", fee="0.001")
    exact = (Decimal("0.001") + Decimal("0.0000004") * 8760) / 8760 * 1_000_000
    assert round(exact) == 1
    assert prices(product(reserved_terms=[term]))["reserved_1y_partial_upfront"] == 1


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (
            reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", fee="8760"),
            "no price per hour in a term that is not paid wholly upfront",
        ),
        (
            reserved("HU7G6KETJZ", "1yr", "standard", "Partial Upfront", hourly="1"),
            "no upfront fee in a term that is paid upfront",
        ),
        (
            reserved("6QCMYABX3D", "1yr", "standard", "All Upfront", hourly="0.0000000000"),
            "no upfront fee in a term that is paid upfront",
        ),
        (
            reserved("4NA7Y494T4", "1yr", "standard", "No Upfront", hourly="1", fee="5"),
            "an upfront fee of 5 USD in a term without one",
        ),
        (
            reserved("ZZZ", "5yr", "standard", "No Upfront", hourly="1"),
            "unknown reservation: length '5yr', class 'standard', purchase 'No Upfront'",
        ),
        (
            reserved("ZZZ", "1yr", "standard", "Heavy Utilization", hourly="1"),
            "unknown reservation: length '1yr', class 'standard', purchase 'Heavy Utilization'",
        ),
        (
            reserved("BPH4J8HBKS", "1yr", "standard", "No Upfront", hourly="1"),
            "its attributes say reserved_1y, its code BPH4J8HBKS says reserved_3y",
        ),
    ],
)
def test_a_reserved_term_that_does_not_add_up_is_set_aside_alone(term: dict[str, Any], reason: str) -> None:
    rows, doubts = rows_of_product(product(reserved_terms=[term]))
    assert [row.price_kind for row in rows] == ["on_demand"]
    assert [doubt.reason for doubt in doubts] == [reason]


def test_a_term_with_a_code_of_its_own_is_known_by_its_attributes() -> None:
    term = reserved("NEWCODE", "1 yr", "Convertible", "NoUpfront", hourly="9.0000000000")
    assert prices(product(reserved_terms=[term]))["reserved_1y_convertible"] == 9_000_000


def test_every_reservation_is_a_price_kind_with_its_term_and_a_code() -> None:
    for (years, offering, purchase), kind in RESERVED_KINDS.items():
        row = price_kinds()[kind]
        assert row.term_hours == years * 8760
        assert row.convertible == (offering == "convertible")
        assert row.upfront_share == {"no upfront": 0, "partial upfront": 0.5, "all upfront": 1}[purchase]
    assert sorted(OFFER_TERM_CODES.values()) == sorted(RESERVED_KINDS.values())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("terms", []),
        ("terms", "none"),
        ("terms", {"OnDemand": ["x"]}),
        ("product", "x"),
        ("product", {"attributes": 3}),
    ],
)
def test_a_field_that_changes_its_type_is_set_aside_and_not_a_crash(field: str, value: Any) -> None:
    rows, doubts = rows_of_product(product() | {field: value})
    assert rows == []
    assert len(doubts) == 1


def test_reserved_terms_of_another_type_leave_the_on_demand_price() -> None:
    document = product()
    document["terms"]["Reserved"] = ["x"]
    rows, doubts = rows_of_product(document)
    assert [row.price_kind for row in rows] == ["on_demand"]
    assert [doubt.reason for doubt in doubts] == ["list where an object is expected"]


def test_a_price_follows_its_product_and_never_its_sku() -> None:
    assert prices(product(usd="32.7726000000")) == {"on_demand": 32_772_600}
    assert prices(product(usd="21.9576420000")) == {"on_demand": 21_957_642}


@pytest.mark.parametrize(
    ("attributes", "accelerated"),
    [
        ({"instanceType": "trn1.32xlarge", "gpu": "16"}, True),
        ({"instanceType": "zz9.xlarge", "gpu": "4", "gpuMemory": "NA"}, True),
        ({"instanceType": "g4dn.xlarge"}, True),
        ({"instanceType": "p6e-gb200.36xlarge", "gpu": "NA"}, True),
        ({"instanceType": "m5.large", "gpu": "NA"}, False),
        ({"instanceType": "c5.xlarge", "gpu": "0"}, False),
        ({"instanceType": "hpc7g.16xlarge"}, False),
    ],
)
def test_neuron_devices_count_as_gpus_and_families_tell_where_nothing_is_counted(
    attributes: dict[str, str], accelerated: bool
) -> None:
    assert is_accelerated(plain_attributes(attributes)) is accelerated


@pytest.mark.shared_data
def test_recorded_products_give_the_prices_that_were_recorded(shared_data: Path) -> None:
    path = shared_data / "wire" / "aws" / "pricing_GetProducts.AmazonEC2.accelerators.2026-09.decoded.json"
    result: dict[tuple[str, str], int] = {}
    for document in json.loads(path.read_text(encoding="utf-8")):
        rows, doubts = rows_of_product(document)
        assert doubts == []
        result |= {(row.instance_type, row.region): row.usd_micros_per_hour for row in rows}
    assert len(result) == 18
    assert result["p5.48xlarge", "us-east-1"] == 55_040_000
    assert result["p4d.24xlarge", "us-west-2"] == 21_957_640
    assert result["inf2.xlarge", "eu-west-1"] == 947_750


@pytest.mark.shared_data
def test_each_element_of_a_price_list_is_a_document_in_a_string(shared_data: Path) -> None:
    path = shared_data / "wire" / "aws" / "pricing_GetProducts.AmazonEC2.accelerators.2026-09.json"
    elements = json.loads(path.read_text(encoding="utf-8"))["PriceList"]
    assert all(isinstance(element, str) for element in elements)
    assert sum(len(rows_of_product(json.loads(element))[0]) for element in elements) == 18


@pytest.mark.shared_data
def test_recorded_upfront_fees_without_ranges_are_part_of_the_price(shared_data: Path) -> None:
    path = shared_data / "wire" / "aws" / "pricing_terms_Reserved.c5.xlarge.2020.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    document = product(instanceType="c5.xlarge")
    document["terms"]["Reserved"] = recorded["Reserved"]
    result = prices(document)
    assert len(result) == 13
    assert result["reserved_3y_partial_upfront"] == round((Decimal(867) / 26280 + Decimal("0.033")) * 1_000_000)
    assert result["reserved_1y_all_upfront"] == 100_000
    assert result["reserved_3y"] == 71_000


@pytest.mark.shared_data
def test_recorded_reserved_rates_of_a_p4d_are_read(shared_data: Path) -> None:
    path = shared_data / "wire" / "aws" / "pricing_GetProducts.with_Reserved.2025-04.constructed.json"
    p4d, *_ = (json.loads(element) for element in json.loads(path.read_text(encoding="utf-8"))["PriceList"])
    assert prices(p4d) == {
        "on_demand": 32_772_600,
        "reserved_1y": 20_175_498,
        "reserved_3y": 12_498_961,
        "reserved_1y_convertible": 24_210_598,
        "reserved_3y_convertible": 14_998_754,
    }
