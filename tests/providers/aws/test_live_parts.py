"""The parts of the live adapter on replies of their own: quirks of single calls, recorded samples, moto."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from gpuplan.catalog.model.price_plausibility import why_implausible
from gpuplan.catalog.model.unavailable_machines import left_out
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws.api_calls import PACES, PRICING_REGION, SDK_ATTEMPTS, CallFailed, Calls
from gpuplan.providers.aws.capacity_blocks import read_capacity_blocks
from gpuplan.providers.aws.hardware import Machines, read_machines, take_record
from gpuplan.providers.aws.price_list import PLAIN, PriceListReader
from gpuplan.providers.aws.regions_and_zones import Place, Zone, listed_regions, read_place
from gpuplan.providers.aws.savings_plans import read_plan_rates
from gpuplan.providers.aws.spot_prices import read_spot
from tests.clouds.aws import AMZ_JSON, asks, region_of
from tests.clouds.aws_ec2 import XML
from tests.clouds.aws_machines import odd_records, ordinary_record, record_of
from tests.clouds.aws_xml import ec2_answer, ec2_error
from tests.clouds.server import CloudServer, Reply, Request, answering
from tests.providers.aws.conftest import READ_AT
from tests.providers.aws.price_documents import product

A = Zone(name="us-east-1a", id="use1-az6", kind="availability-zone", group="us-east-1")
PLACE = Place(region="us-east-1", zones={A.id: A})
P5 = frozenset({"p5.48xlarge"})
OWN_PRICES = {
    instance_type.name: instance_type for instance_type in embedded_instance_types() if instance_type.provider == "aws"
}
type AnyCalls = Callable[[CloudServer], Calls]


@pytest.fixture
def calls_to(monkeypatch: pytest.MonkeyPatch) -> AnyCalls:
    def made(server: CloudServer) -> Calls:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        return Calls(boto3.Session(aws_access_key_id="made-up", aws_secret_access_key="made-up"), paced=False)

    return made


def serving(**answers: dict[str, Any]) -> CloudServer:
    """A server with one answer per EC2 action, in the values that boto3 would give back."""

    def answer(request: Request) -> Reply:
        action = next(name for name in answers if asks(name)(request))
        return Reply(body=ec2_answer(action, answers[action]), content_type=XML)

    return CloudServer(answer)


def serving_json(document: Any) -> CloudServer:
    return CloudServer(lambda _: Reply(body=json.dumps(document).encode(), content_type=AMZ_JSON))


def spot_row(price: str, *, hours_ago: float = 1, system: str = "Linux/UNIX", **extra: Any) -> dict[str, Any]:
    return {
        "InstanceType": "p5.48xlarge",
        "ProductDescription": system,
        "SpotPrice": price,
        "Timestamp": READ_AT - timedelta(hours=hours_ago),
        "AvailabilityZone": "us-east-1a",
    } | extra


def spot_prices(calls_to: AnyCalls, *rows: dict[str, Any], place: Place = PLACE) -> dict[str, int]:
    with serving(DescribeSpotPriceHistory={"SpotPriceHistory": rows, "NextToken": ""}).running() as server:
        result = read_spot(calls_to(server), place, P5, read_at=READ_AT)
    return {offer.zone: offer.usd_micros_per_hour for offer in result.offers}


def test_the_newest_spot_price_of_a_zone_is_in_force(calls_to: AnyCalls) -> None:
    rows = spot_row("30.1", hours_ago=9), spot_row("31.123456", hours_ago=2), spot_row("29.9", hours_ago=5)
    assert spot_prices(calls_to, *rows) == {"use1-az6": 31_123_456}


def test_linux_has_two_names_in_the_spot_history_and_other_systems_are_left_out(calls_to: AnyCalls) -> None:
    vpc = spot_row("30.5", system="Linux/UNIX (Amazon VPC)", hours_ago=3)
    windows = spot_row("60.5", system="Windows (Amazon VPC)", hours_ago=0)
    assert spot_prices(calls_to, vpc, windows) == {"use1-az6": 30_500_000}


def test_an_empty_next_token_ends_the_spot_history(calls_to: AnyCalls) -> None:
    cloud = serving(DescribeSpotPriceHistory={"SpotPriceHistory": [spot_row("30.5")], "NextToken": ""})
    with cloud.running() as server:
        read_spot(calls_to(server), PLACE, P5, read_at=READ_AT)
    assert b"<nextToken/>" in cloud.answer(cloud.requests[0]).body
    assert len(cloud.requests) == 1


def test_linux_is_asked_for_in_both_spellings_of_the_spot_history(calls_to: AnyCalls) -> None:
    cloud = serving(DescribeSpotPriceHistory={"SpotPriceHistory": []})
    with cloud.running() as server:
        read_spot(calls_to(server), PLACE, P5, read_at=READ_AT)
    asked = parse_qs(cloud.requests[0].body.decode())
    assert [asked["ProductDescription.1"], asked["ProductDescription.2"]] == [
        ["Linux/UNIX"],
        ["Linux/UNIX (Amazon VPC)"],
    ]


def test_the_zone_id_of_a_spot_row_is_taken_over_the_accounts_own_zone_name(calls_to: AnyCalls) -> None:
    assert spot_prices(calls_to, spot_row("30.5", AvailabilityZoneId="use1-az2")) == {"use1-az2": 30_500_000}


def test_a_spot_row_whose_zone_has_no_id_is_quarantined(calls_to: AnyCalls) -> None:
    cloud = serving(DescribeSpotPriceHistory={"SpotPriceHistory": [spot_row("30.5", AvailabilityZone="us-east-1z")]})
    with cloud.running() as server:
        result = read_spot(calls_to(server), PLACE, P5, read_at=READ_AT)
    assert result.offers == []
    assert [item.what for item in result.quarantined] == ["spot p5.48xlarge in us-east-1z"]


def test_a_spot_price_of_a_zone_where_the_type_is_not_on_offer_is_not_available(calls_to: AnyCalls) -> None:
    place = Place(region="us-east-1", zones={A.id: A}, offered=P5, offered_in={"use1-az4": P5})
    with serving(DescribeSpotPriceHistory={"SpotPriceHistory": [spot_row("30.5")]}).running() as server:
        (offer,) = read_spot(calls_to(server), place, P5, read_at=READ_AT).offers
    assert not offer.available


@pytest.mark.parametrize("location", ["use1-az6", "us-east-1a", "us-east-1"])
def test_offerings_are_known_by_zone_id_and_a_zone_name_is_the_accounts_own(calls_to: AnyCalls, location: str) -> None:
    zone = {"ZoneName": "us-east-1a", "ZoneId": "use1-az6"}
    cloud = serving(
        DescribeAvailabilityZones={"AvailabilityZones": [zone]},
        DescribeInstanceTypeOfferings={
            "InstanceTypeOfferings": [{"InstanceType": "p5.48xlarge", "Location": location}]
        },
    )
    with cloud.running() as server:
        place = read_place(calls_to(server), "us-east-1")
    assert place.offered == P5
    assert place.offered_in == ({} if location == "us-east-1" else {"use1-az6": P5})
    assert {b"LocationType=region" in request.body for request in cloud.requests} == {True, False}
    assert any(b"LocationType=availability-zone-id" in request.body for request in cloud.requests)


def block(fee: str, **extra: Any) -> dict[str, Any]:
    return {
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1a",
        "InstanceCount": 1,
        "CapacityBlockDurationHours": 24,
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
    } | extra


@pytest.mark.parametrize(
    ("offering", "micros"),
    [
        (block("960.00"), 40_000_000),
        (block("45000.00", InstanceCount=2, CapacityBlockDurationHours=168), 133_928_571),
        (block("960.00", CapacityBlockDurationHours=None, CapacityBlockDurationMinutes=1440), 40_000_000),
        (block("960.00", CapacityBlockDurationHours=23, CapacityBlockDurationMinutes=30), 40_851_064),
        (block("960.00", CapacityBlockDurationMinutes=1440), 40_000_000),
        (
            block(
                "960.00",
                CapacityBlockDurationHours=None,
                StartDate=datetime(2026, 11, 22, 11, 30, tzinfo=UTC),
                EndDate=datetime(2026, 11, 24, 11, 30, tzinfo=UTC),
            ),
            20_000_000,
        ),
    ],
)
def test_the_upfront_fee_of_a_capacity_block_is_for_all_its_machines_and_hours(
    calls_to: AnyCalls, offering: dict[str, Any], micros: int
) -> None:
    with serving(DescribeCapacityBlockOfferings={"CapacityBlockOfferings": [offering]}).running() as server:
        (offer,) = read_capacity_blocks(calls_to(server), PLACE, P5, read_at=READ_AT).offers
    assert (offer.zone, offer.price_kind, offer.usd_micros_per_hour) == ("use1-az6", "capacity_block", micros)


def test_the_cheapest_capacity_block_of_a_zone_counts_and_other_currencies_do_not(calls_to: AnyCalls) -> None:
    rows = [block("1200.00"), block("960.00"), block("100.00", CurrencyCode="CNY"), block("0.00")]
    with serving(DescribeCapacityBlockOfferings={"CapacityBlockOfferings": rows}).running() as server:
        result = read_capacity_blocks(calls_to(server), PLACE, P5, read_at=READ_AT)
    assert [offer.usd_micros_per_hour for offer in result.offers] == [40_000_000]
    assert ["zero" in item.reason for item in result.quarantined] == [True]


def test_a_capacity_block_is_asked_for_one_machine_and_one_day(calls_to: AnyCalls) -> None:
    cloud = serving(DescribeCapacityBlockOfferings={"CapacityBlockOfferings": []})
    with cloud.running() as server:
        read_capacity_blocks(calls_to(server), PLACE, P5, read_at=READ_AT)
    body = cloud.requests[0].body
    assert b"InstanceCount=1&" in body
    assert b"CapacityDurationHours=24" in body


def test_a_capacity_block_of_segments_counts_as_a_whole_and_is_quarantined_without_one_zone(
    calls_to: AnyCalls,
) -> None:
    segments = [
        {"InstanceType": "p5.48xlarge", "AvailabilityZone": zone, "CapacityBlockDurationHours": 12, "UpfrontFee": "480"}
        for zone in ("us-east-1a", "us-east-1b")
    ]
    rows = [block("960.00", CapacityBlockOfferingSegments=segments), block("1.00", AvailabilityZone=None)]
    rows[1]["CapacityBlockOfferingSegments"] = segments
    with serving(DescribeCapacityBlockOfferings={"CapacityBlockOfferings": rows}).running() as server:
        result = read_capacity_blocks(calls_to(server), PLACE, P5, read_at=READ_AT)
    assert [(offer.zone, offer.usd_micros_per_hour) for offer in result.offers] == [("use1-az6", 40_000_000)]
    assert ["zone has no id" in item.reason for item in result.quarantined] == [True]


def plan_rate(plan: str, rate: str, **extra: Any) -> dict[str, Any]:
    about = {
        "region": "us-east-1",
        "instanceType": "p5.48xlarge",
        "productDescription": "Linux/UNIX",
        "tenancy": "shared",
    }
    properties = about | extra.pop("properties", {})
    offering = {"planType": plan, "paymentOption": "No Upfront", "durationSeconds": 31536000, "currency": "USD"}
    return {
        "savingsPlanOffering": offering | extra.pop("offering", {}),
        "rate": rate,
        "unit": "Hrs",
        "productType": "EC2",
        "usageType": "BoxUsage:p5.48xlarge",
        "operation": "RunInstances",
        "properties": [{"name": name, "value": value} for name, value in properties.items()],
    } | extra


def test_of_two_savings_plans_for_the_same_machine_the_cheaper_is_taken_and_named(calls_to: AnyCalls) -> None:
    rows = [plan_rate("Compute", "30.5"), plan_rate("EC2Instance", "28.123456"), plan_rate("Compute", "31")]
    with serving_json({"searchResults": rows, "nextToken": ""}).running() as server:
        result = read_plan_rates(calls_to(server), P5)
    assert result.rates == {
        ("us-east-1", "", "p5.48xlarge", "savings_plan_1y"): (28_123_456, "AWS Savings Plans API (EC2 Instance plan)")
    }


@pytest.mark.parametrize(
    "neighbour",
    [
        plan_rate("Compute", "1", operation="RunInstances:0002"),
        plan_rate("Compute", "1", properties={"productDescription": "Windows"}),
        plan_rate("Compute", "1", properties={"tenancy": "dedicated"}),
        plan_rate("Compute", "1", offering={"paymentOption": "All Upfront"}),
        plan_rate("Compute", "1", offering={"durationSeconds": 1}),
        plan_rate("Compute", "1", usageType="DedicatedUsage:p5.48xlarge"),
        plan_rate("SageMaker", "1", productType="SageMaker"),
        plan_rate("Compute", "1", properties={"instanceType": "m7i.large"}),
    ],
)
def test_savings_plan_rates_of_other_things_are_left_out(calls_to: AnyCalls, neighbour: dict[str, Any]) -> None:
    with serving_json({"searchResults": [neighbour], "nextToken": ""}).running() as server:
        result = read_plan_rates(calls_to(server), P5)
    assert (result.rates, dict(result.doubts)) == ({}, {})


def test_an_empty_next_token_ends_the_savings_plan_rates(calls_to: AnyCalls) -> None:
    cloud = serving_json({"searchResults": [], "nextToken": ""})
    with cloud.running() as server:
        read_plan_rates(calls_to(server), P5)
    assert len(cloud.requests) == 1


def test_savings_plan_rates_are_asked_for_by_filters_of_names_that_the_service_has(calls_to: AnyCalls) -> None:
    cloud = serving_json({"searchResults": [], "nextToken": ""})
    with cloud.running() as server:
        read_plan_rates(calls_to(server), P5)
    (request,) = cloud.requests
    asked = json.loads(request.body)
    assert (request.method, request.path) == ("POST", "/DescribeSavingsPlansOfferingRates")
    assert {item["name"]: item["values"] for item in asked["filters"]} == {
        "tenancy": ["shared"],
        "productDescription": ["Linux/UNIX"],
        "instanceType": ["p5.48xlarge"],
    }
    assert asked["savingsPlanTypes"] == ["Compute", "EC2Instance"]


def test_pages_of_savings_plan_rates_are_followed_although_the_sdk_has_no_paginator(calls_to: AnyCalls) -> None:
    pages = {
        "": {"searchResults": [plan_rate("Compute", "31")], "nextToken": "second"},
        "second": {"searchResults": [plan_rate("Compute", "30")], "nextToken": ""},
    }
    cloud = CloudServer(
        lambda request: Reply(body=json.dumps(pages[json.loads(request.body).get("nextToken", "")]).encode())
    )
    with cloud.running() as server:
        result = read_plan_rates(calls_to(server), P5)
    assert [micros for micros, _ in result.rates.values()] == [30_000_000]
    assert len(cloud.requests) == 2


@pytest.mark.parametrize(
    ("service", "endpoint"),
    [
        ("pricing", "https://api.pricing.us-east-1.amazonaws.com"),
        ("savingsplans", "https://savingsplans.amazonaws.com"),
    ],
)
def test_services_without_regions_are_asked_where_they_are(
    monkeypatch: pytest.MonkeyPatch, service: str, endpoint: str
) -> None:
    for name in [item for item in os.environ if item.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    client = boto3.client(service, region_name=PRICING_REGION)
    assert client.meta.endpoint_url == endpoint
    client.close()


def test_the_price_list_is_asked_in_us_east_1_with_every_filter(calls_to: AnyCalls) -> None:
    cloud = serving_json({"PriceList": []})
    with cloud.running() as server:
        PriceListReader(calls_to(server)).read(P5)
    (request,) = cloud.requests
    asked = json.loads(request.body)
    assert region_of(request) == "us-east-1"
    assert {item["Field"]: item["Value"] for item in asked["Filters"]} == {"instanceType": "p5.48xlarge", **PLAIN}
    assert {item["Type"] for item in asked["Filters"]} == {"TERM_MATCH"}
    assert asked["MaxResults"] == 100


def test_a_product_of_the_price_list_is_json_within_json(calls_to: AnyCalls) -> None:
    with serving_json({"PriceList": [json.dumps(product())]}).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read({"p4d.24xlarge"})
    assert [row.usd_micros_per_hour for row in reader.prices().rows] == [21_957_642]
    with serving_json({"PriceList": ["{not json"]}).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read(P5)
    assert not reader.prices().whole


def test_a_type_without_a_price_is_data_and_no_error(calls_to: AnyCalls) -> None:
    cloud = serving_json({"PriceList": []})
    cloud.break_with(
        answering(200, json.dumps({"PriceList": [json.dumps(product())]}).encode()),
        when=lambda request: b"p4d.24xlarge" in request.body,
    )
    with cloud.running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read({"trn2.48xlarge", "p4d.24xlarge"})
    assert reader.prices().whole
    assert {row.instance_type for row in reader.prices().rows} == {"p4d.24xlarge"}


def test_max_results_and_names_are_never_combined(calls_to: AnyCalls) -> None:
    cloud = serving(DescribeInstanceTypes={"InstanceTypes": []})
    with cloud.running() as server:
        read_machines(calls_to(server), [Place(region="us-east-1", offered=P5)], as_of="2026-11-21")
    body = cloud.requests[0].body
    assert b"MaxResults=100" in body
    assert b"Filter.1.Name=instance-type&Filter.1.Value.1=p5.48xlarge" in body
    assert b"&InstanceType." not in body


def test_each_region_describes_its_own_types_and_all_of_them_count(calls_to: AnyCalls) -> None:
    sold = {"us-east-1": "p5.48xlarge", "us-west-2": "p4d.24xlarge"}

    def answer(request: Request) -> Reply:
        record = record_of(replace(OWN_PRICES[sold[region_of(request)]], vcpus=7.0), in_blocks=False)
        return Reply(
            body=ec2_answer("DescribeInstanceTypes", {"InstanceTypes": [record]}),
            content_type=XML,
        )

    with CloudServer(answer).running() as server:
        places = [Place(region=region, offered=frozenset({name})) for region, name in sold.items()]
        machines = read_machines(calls_to(server), places, as_of="2026-11-21")
    assert {name for name, machine in machines.types.items() if machine.vcpus == 7} == set(sold.values())


def test_machines_without_accelerators_are_told_apart_here_since_no_filter_of_ec2_does(calls_to: AnyCalls) -> None:
    new = record_of(replace(OWN_PRICES["p5.48xlarge"], name="p9.48xlarge"), in_blocks=True)
    cloud = serving(DescribeInstanceTypes={"InstanceTypes": [ordinary_record("m7i.large"), new, *odd_records()]})
    with cloud.running() as server:
        machines = read_machines(calls_to(server), [Place(region="us-east-1")], as_of="2026-11-21")
    assert machines.types.keys() - OWN_PRICES.keys() == {"p9.48xlarge"}
    assert machines.in_blocks == {"p9.48xlarge"}
    assert (machines.quarantined, machines.failures) == ([], [])
    assert b"Filter" not in cloud.requests[0].body


def test_every_call_waits_for_its_turn_by_service_region_and_call(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[tuple[int | None, int | None]] = []

    class Recorded:
        def __init__(self, per_second: int | None, *, burst: int | None = None) -> None:
            self.rate = (per_second, burst)

        def wait(self) -> None:
            waited.append(self.rate)

    monkeypatch.setattr("gpuplan.providers.aws.api_calls.RateLimit", Recorded)
    with serving_json({"PriceList": []}).running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        calls = Calls(boto3.Session(aws_access_key_id="made-up", aws_secret_access_key="made-up"), paced=True)
        PriceListReader(calls).read({"p5.48xlarge", "p4d.24xlarge"})
    per_second, burst = PACES["pricing"]
    assert waited == [(per_second, burst)] * 2
    assert (per_second <= 5, burst <= 10) == (True, True)


@pytest.mark.usefixtures("impatient")
def test_a_service_that_a_simulator_lacks_answers_500_in_html_and_is_one_line(calls_to: AnyCalls) -> None:
    page = b"<!doctype html><html lang=en><title>500 Internal Server Error</title><h1>Internal Server Error</h1>"
    with CloudServer(lambda _: Reply(status=500, body=page, content_type="text/html")).running() as server:
        calls = calls_to(server)
        blocks = read_capacity_blocks(calls, PLACE, P5, read_at=READ_AT)
        plans = read_plan_rates(calls, P5)
        reader = PriceListReader(calls)
        reader.read(P5)
    for failures in (blocks.failures, plans.failures, reader.prices().failures):
        (line,) = failures
        assert "<" not in line
        assert "stay as they were" in line


def test_the_attempts_of_the_sdk_are_counted_in_all(calls_to: AnyCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.providers.aws.api_calls.SDK_ATTEMPTS", 2)
    throttled = ec2_error("RequestLimitExceeded", "Request limit exceeded.")
    cloud = CloudServer(lambda _: Reply(status=503, body=throttled, content_type=XML))
    with cloud.running() as server, pytest.raises(CallFailed, match="RequestLimitExceeded"):
        listed_regions(calls_to(server), "us-east-1")
    assert len(cloud.requests) == 2
    assert SDK_ATTEMPTS == 5


def test_regions_are_asked_for_with_those_that_are_not_enabled(calls_to: AnyCalls) -> None:
    rows = [
        {"RegionName": "us-east-1", "OptInStatus": "opt-in-not-required"},
        {"RegionName": "af-south-1", "OptInStatus": "not-opted-in"},
        {"RegionName": "ap-east-1", "OptInStatus": "opted-in"},
        {"RegionName": "us-west-9"},
    ]
    cloud = serving(DescribeRegions={"Regions": rows})
    with cloud.running() as server:
        result = listed_regions(calls_to(server), "us-east-1")
    assert result == {"us-east-1": True, "af-south-1": False, "ap-east-1": True, "us-west-9": True}
    assert b"AllRegions=true" in cloud.requests[0].body


@pytest.fixture
def moto_calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    return Calls(boto3.Session(aws_access_key_id="made-up", aws_secret_access_key="made-up"), paced=False)


@pytest.mark.slow(reason="one long case")
@mock_aws
def test_moto_types_and_offerings_give_the_embedded_hardware(moto_calls: Calls) -> None:
    """Moto knows neither paging nor regions: every type is described in each of them."""
    place = read_place(moto_calls, "us-east-1")
    assert place.failures == ()
    assert place.offered is not None
    assert place.offered_in
    assert all(zone.startswith("use1-") for zone in place.offered_in)
    machines = read_machines(moto_calls, [place], as_of="2026-11-21")
    assert machines.failures == []
    assert machines.quarantined == []
    assert machines.types == OWN_PRICES
    assert "p5.48xlarge" in machines.in_blocks


@mock_aws
def test_the_nonsense_spot_prices_of_moto_are_outside_of_what_a_spot_price_may_be(moto_calls: Calls) -> None:
    place = read_place(moto_calls, "us-east-1")
    offers = read_spot(moto_calls, place, P5, read_at=READ_AT).offers
    assert {offer.usd_micros_per_hour for offer in offers} == {10}
    for offer in offers:
        assert why_implausible(offer, OWN_PRICES["p5.48xlarge"], {}) is not None


@mock_aws
def test_moto_knows_the_regions(moto_calls: Calls) -> None:
    assert "eu-central-1" in listed_regions(moto_calls, "us-east-1")


@pytest.mark.shared_data
def test_recorded_types_are_all_known_or_left_out(shared_data: Path) -> None:
    text = (shared_data / "wire/aws/ec2_DescribeInstanceTypes.accelerators.boto3.json").read_text()
    document = json.loads(text)
    records = document["InstanceTypes"] if isinstance(document, dict) else document
    machines = Machines()
    for record in records:
        take_record(machines, record, as_of="2026-11-21")
    assert len(records) == 85
    assert {record["InstanceType"] for record in records} == machines.types.keys() | (
        {record["InstanceType"] for record in records} & left_out().keys()
    )
    for name, machine in machines.types.items():
        owned = OWN_PRICES[name]
        assert (machine.accelerator, machine.accelerator_count) == (owned.accelerator, owned.accelerator_count)
        assert (machine.vcpus, machine.ram_gib, machine.network_gbps) == (
            owned.vcpus,
            owned.ram_gib,
            owned.network_gbps,
        )


@pytest.mark.shared_data
def test_the_sample_replies_of_ec2_are_read_as_they_are(shared_data: Path, calls_to: AnyCalls) -> None:
    folder = shared_data / "wire/aws"
    bodies = {
        "DescribeSpotPriceHistory": (folder / "wire.ec2_DescribeSpotPriceHistory.constructed.xml").read_bytes(),
        "DescribeCapacityBlockOfferings": (
            folder / "wire.ec2_DescribeCapacityBlockOfferings.constructed.xml"
        ).read_bytes(),
    }
    seoul = Zone(name="ap-northeast-2a", id="apne2-az1", kind="availability-zone", group="ap-northeast-2")
    place = Place(region="ap-northeast-2", zones={seoul.id: seoul})
    cloud = CloudServer(
        lambda request: Reply(body=next(body for name, body in bodies.items() if asks(name)(request)), content_type=XML)
    )
    with cloud.running() as server:
        calls = calls_to(server)
        (spot,) = read_spot(calls, place, P5, read_at=READ_AT).offers
        (booked,) = read_capacity_blocks(calls, place, frozenset({"p5en.48xlarge"}), read_at=READ_AT).offers
    assert (spot.zone, spot.usd_micros_per_hour) == ("use1-az6", 30_123_400)
    assert (booked.zone, booked.usd_micros_per_hour) == ("apne2-az1", 133_928_571)


@pytest.mark.shared_data
def test_the_sample_reply_of_savings_plans_is_read_as_it_is(shared_data: Path, calls_to: AnyCalls) -> None:
    name = "wire/aws/savingsplans_DescribeSavingsPlansOfferingRates.constructed.json"
    with serving_json(json.loads((shared_data / name).read_text())).running() as server:
        result = read_plan_rates(calls_to(server), ["p4d.24xlarge"])
    (((region, _, instance_type, kind), (micros, _)),) = result.rates.items()
    assert (region, instance_type, kind, micros) == ("us-east-1", "p4d.24xlarge", "savings_plan_1y", 14_770_000)


@pytest.mark.shared_data
def test_the_recorded_price_list_gives_its_on_demand_prices_and_no_free_p5(
    shared_data: Path, calls_to: AnyCalls
) -> None:
    name = "wire/aws/pricing_GetProducts.AmazonEC2.accelerators.2026-09.json"
    with serving_json(json.loads((shared_data / name).read_text())).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read(OWN_PRICES)
    prices = {(row.region, row.instance_type): row.usd_micros_per_hour for row in reader.prices().rows}
    assert prices["us-east-1", "p5.48xlarge"] == 55_040_000
    assert prices["us-east-1", "p4d.24xlarge"] == 21_957_642
    assert prices["us-west-2", "p4d.24xlarge"] == 21_957_640
    assert len(prices) == 18
    assert not any(reader.prices().doubts.values())


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("sample", "status", "code"),
    [
        ("error.ec2_AuthFailure.401.xml", 401, "AuthFailure"),
        ("error.ec2_RequestLimitExceeded.503.xml", 503, "RequestLimitExceeded"),
    ],
)
def test_sample_refusals_carry_their_code(
    shared_data: Path, calls_to: AnyCalls, monkeypatch: pytest.MonkeyPatch, sample: str, status: int, code: str
) -> None:
    monkeypatch.setattr("gpuplan.providers.aws.api_calls.SDK_ATTEMPTS", 1)
    body = (shared_data / "wire/aws" / sample).read_bytes()
    with (
        CloudServer(lambda _: Reply(status=status, body=body, content_type=XML)).running() as server,
        pytest.raises(CallFailed) as failure,
    ):
        listed_regions(calls_to(server), "us-east-1")
    assert failure.value.code == code


@pytest.mark.shared_data
@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "ExpiredNextTokenException"])
def test_sample_refusals_of_the_price_list_are_one_line(
    shared_data: Path, calls_to: AnyCalls, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr("gpuplan.providers.aws.api_calls.SDK_ATTEMPTS", 1)
    monkeypatch.setattr("gpuplan.providers.aws.api_calls.WHOLE_ATTEMPTS", 1)
    body = (shared_data / f"wire/aws/error.pricing_{code}.400.json").read_bytes()
    with CloudServer(lambda _: Reply(status=400, body=body, content_type=AMZ_JSON)).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read(P5)
    (line,) = reader.prices().failures
    assert code in line
    assert "1 of 1 types" in line
