"""What the live adapter makes of answers that are whole and cannot be true, or say nothing at all."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import ConnectTimeoutError  # type: ignore[import-untyped]

from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.providers.aws import api_calls as aws_calls
from gpuplan.providers.aws.api_calls import CallFailed, Calls
from gpuplan.providers.aws.hardware import Machines, confirm_on_demand, read_machines, take_record
from gpuplan.providers.aws.price_list import PriceListReader
from gpuplan.providers.aws.regions_and_zones import Place, listed_regions
from gpuplan.providers.aws.savings_plans import read_plan_rates
from gpuplan.providers.contract import Rows
from gpuplan.providers.refresh.parallel_fetch import gather
from gpuplan.providers.refresh.row_merge import Before, merged
from gpuplan.providers.refresh.row_validation import validate_rows
from tests.clouds.aws import AwsCloud, asks
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.aws_ec2 import XML
from tests.clouds.aws_machines import record_of
from tests.clouds.aws_xml import ec2_answer, ec2_error
from tests.clouds.server import CloudServer, Reply, Request, answering
from tests.providers.aws.conftest import READ_AT, AskAws
from tests.providers.aws.price_documents import product

P5 = frozenset({"p5.48xlarge"})
OWN_PRICES = {
    instance_type.name: instance_type for instance_type in embedded_instance_types() if instance_type.provider == "aws"
}
DENIED = ec2_error("UnauthorizedOperation", "You are not authorized to perform this operation.")
FEW = smaller(aws_catalogue(), "us-east-1", "us-west-2")
type AnyCalls = Callable[[CloudServer], Calls]


@pytest.fixture
def calls_to(monkeypatch: pytest.MonkeyPatch) -> AnyCalls:
    def made(server: CloudServer) -> Calls:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        return Calls(boto3.Session(aws_access_key_id="made-up", aws_secret_access_key="made-up"), paced=False)

    return made


def serving_json(document: Any) -> CloudServer:
    return CloudServer(lambda _: Reply(body=json.dumps(document).encode()))


def of_ec2(action: str, values: dict[str, Any]) -> Callable[[Reply], Reply]:
    body = ec2_answer(action, values)
    return lambda reply: replace(reply, body=body)


def fetch(ask_aws: AskAws, cloud: CloudServer, *regions: str) -> list[Rows]:
    with cloud.running() as server:
        aws = ask_aws(server)
        return [aws.fetch(region) for region in regions or ("us-east-1",)]


def priced_in_yen_in_the_west(reply: Reply) -> Reply:
    answer = json.loads(reply.body)
    for at, text in enumerate(answer["PriceList"]):
        document = json.loads(text)
        if document["product"]["attributes"].get("regionCode") == "us-west-2":
            answer["PriceList"][at] = text.replace('"USD"', '"JPY"')
    return replace(reply, body=json.dumps(answer).encode())


@pytest.mark.slow(reason="one long case")
def test_a_doubt_about_a_list_price_stands_with_its_region(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(priced_in_yen_in_the_west, when=asks("GetProducts"))
    east, west = fetch(ask_aws, cloud, "us-east-1", "us-west-2")
    assert east.quarantined == ()
    assert any("p4d.24xlarge" in doubt.what and "JPY" in doubt.reason for doubt in west.quarantined)


@pytest.mark.slow(reason="one long case")
def test_an_earlier_list_price_stays_stale_while_what_comes_for_it_cannot_be_read(ask_aws: AskAws) -> None:
    old = {offer.key: offer for offer in FEW.offers if offer.price_kind == "on_demand" and offer.region == "us-west-2"}
    cloud = AwsCloud(FEW)
    cloud.break_with(priced_in_yen_in_the_west, when=asks("GetProducts"))
    with cloud.running() as server:
        gathered = gather({"aws": partial(ask_aws, server)}, limit_seconds=120)["aws"]
    before = Before(types=OWN_PRICES, offers=old)
    rows = {
        offer.key: offer for offer in merged(gathered, validate_rows(gathered, OWN_PRICES), before, at=READ_AT).offers
    }
    assert old
    assert {key: rows[key].stale_since for key in old} == dict.fromkeys(old, READ_AT)


def record(name: str, *uses: str) -> dict[str, Any]:
    return {**(record_of(OWN_PRICES[name], in_blocks=True) or {}), "SupportedUsageClasses": list(uses)}


@pytest.mark.parametrize(
    ("uses", "priced", "sold"),
    [(("on-demand", "spot"), True, True), (("on-demand",), False, False), (("capacity-block",), True, False)],
)
def test_a_type_is_sold_on_demand_where_ec2_says_so_and_the_price_list_has_a_price_whatever_our_table_says(
    uses: tuple[str, ...], priced: bool, sold: bool
) -> None:
    assert not OWN_PRICES["p5e.48xlarge"].sold_on_demand
    machines = Machines(types=dict(OWN_PRICES))
    take_record(machines, record("p5e.48xlarge", *uses), as_of="2026-11-21")
    confirm_on_demand(machines, {"p5e.48xlarge"} if priced else (), as_of="2026-11-21")
    assert machines.types["p5e.48xlarge"].sold_on_demand is sold


def test_a_record_that_does_not_say_how_a_type_is_sold_may_be_one_of_a_capacity_block() -> None:
    machines = Machines(types=dict(OWN_PRICES))
    silent = record("p5.48xlarge")
    del silent["SupportedUsageClasses"]
    take_record(machines, silent, as_of="2026-11-21")
    take_record(machines, record("p4d.24xlarge", "on-demand"), as_of="2026-11-21")
    assert machines.in_blocks == P5


def test_no_machine_at_all_where_some_are_on_sale_is_no_answer(calls_to: AnyCalls) -> None:
    empty = ec2_answer("DescribeInstanceTypes", {"InstanceTypes": []})
    with CloudServer(lambda _: Reply(body=empty, content_type=XML)).running() as server:
        machines = read_machines(calls_to(server), [Place(region="us-east-1", offered=P5)], as_of="2026-11-21")
    (line,) = machines.failures
    assert line.startswith("ec2 describe_instance_types: no machine, although EC2 has some on sale")


def test_a_price_list_without_any_price_is_no_answer(calls_to: AnyCalls) -> None:
    with serving_json({"PriceList": []}).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read(P5)
    assert reader.prices().failures == [
        "pricing get_products: no price of any of 1 types; on-demand and reserved prices stay as they were"
    ]


def test_savings_plans_without_any_rate_are_no_answer(calls_to: AnyCalls) -> None:
    with serving_json({"searchResults": [], "nextToken": ""}).running() as server:
        result = read_plan_rates(calls_to(server), P5)
    (line,) = result.failures
    assert "no rate of any of 1 types; savings plan prices stay as they were" in line


def test_a_region_without_any_spot_price_keeps_its_earlier_ones(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    nothing = of_ec2("DescribeSpotPriceHistory", {"SpotPriceHistory": []})
    cloud.break_with(nothing, when=asks("DescribeSpotPriceHistory", "us-west-2"))
    east, west = fetch(ask_aws, cloud, "us-east-1", "us-west-2")
    assert "spot" in east.whole_kinds
    assert "spot" not in west.whole_kinds
    assert [line for line in west.failures if "no price" in line and "spot prices stay as they were" in line]


def test_a_product_that_is_no_object_leaves_the_earlier_prices_of_its_type(calls_to: AnyCalls) -> None:
    odd = json.dumps(product() | {"product": ["p4d.24xlarge"]})
    with serving_json({"PriceList": [odd, json.dumps(product())]}).running() as server:
        reader = PriceListReader(calls_to(server))
        reader.read({"p4d.24xlarge"})
    (line,) = reader.prices().failures
    assert "a product is list, an object is expected" in line


@pytest.mark.parametrize(
    ("attempts", "error", "given_up"),
    [
        (1, ConnectTimeoutError(endpoint_url="https://ec2.me-south-1.amazonaws.com"), False),
        (2, ConnectTimeoutError(endpoint_url="https://ec2.me-south-1.amazonaws.com"), True),
        (2, None, False),
        (2, ConnectionResetError(), False),
    ],
)
def test_a_region_that_cannot_be_reached_is_tried_twice_and_one_that_answers_badly_more_often(
    attempts: int, error: Exception | None, given_up: bool
) -> None:
    ask = partial(aws_calls._give_up_on_silence, attempts=attempts, caught_exception=error, operation=None)
    if not given_up:
        ask()
        return
    with pytest.raises(ConnectTimeoutError):
        ask()


def test_a_region_that_says_nothing_is_asked_twice(calls_to: AnyCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_calls, "READ_TIMEOUT_SECONDS", 0.2)
    asked: list[Request] = []

    def late(request: Request) -> Reply:
        asked.append(request)
        return Reply(body=b"")

    cloud = CloudServer(late, latency_seconds=1.0)
    with cloud.running() as server, pytest.raises(CallFailed, match="no answer") as failure:
        listed_regions(calls_to(server), "us-east-1")
    assert failure.value.unreachable
    assert len(cloud.requests) == aws_calls.SILENT_ATTEMPTS


@pytest.mark.parametrize(("spot_says", "zone"), [({"AvailabilityZoneId": "use1-az6"}, "use1-az6"), ({}, "us-east-1a")])
def test_where_ec2_does_not_list_its_zones_they_are_known_by_what_spot_prices_say(
    ask_aws: AskAws, spot_says: dict[str, str], zone: str
) -> None:
    price = {
        "InstanceType": "p5.48xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": "30.1234",
        "Timestamp": READ_AT,
        "AvailabilityZone": "us-east-1a",
    }
    block = {
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1a",
        "InstanceCount": 1,
        "CapacityBlockDurationHours": 24,
        "UpfrontFee": "960.00",
        "CurrencyCode": "USD",
    }
    cloud = AwsCloud(FEW)
    cloud.break_with(answering(403, DENIED, content_type=XML), when=asks("DescribeAvailabilityZones"))
    spot = {"SpotPriceHistory": [price | spot_says]}
    cloud.break_with(of_ec2("DescribeSpotPriceHistory", spot), when=asks("DescribeSpotPriceHistory"))
    blocks = {"CapacityBlockOfferings": [block]}
    cloud.break_with(of_ec2("DescribeCapacityBlockOfferings", blocks), when=asks("DescribeCapacityBlockOfferings"))
    (rows,) = fetch(ask_aws, cloud)
    zones = {(offer.price_kind, offer.zone) for offer in rows.offers if offer.price_kind in ("spot", "capacity_block")}
    assert zones == {("spot", zone), ("capacity_block", zone)}
    assert [line for line in rows.failures if "DescribeAvailabilityZones" in line or "availability_zones" in line]
