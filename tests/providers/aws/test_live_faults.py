"""What goes wrong between boto3 and AWS: each call that fails is one line, and everything else goes on."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.providers.aws import api_calls
from gpuplan.providers.contract import Rows
from tests.clouds.aws import AwsCloud, asks
from tests.clouds.aws_catalogue import aws_catalogue, smaller
from tests.clouds.aws_ec2 import XML
from tests.clouds.aws_xml import ec2_error
from tests.clouds.server import CloudServer, Reply, Request, answering, html, reset_after, truncated
from tests.providers.aws.conftest import KEY_ID, SECRET, AskAws

NAMES = ("g5.xlarge", "inf2.48xlarge", "p4d.24xlarge", "p5.48xlarge", "trn1.32xlarge", "g6.xlarge")
CATALOGUE = smaller(aws_catalogue(), "us-east-1", "us-west-2")
FEW = snapshot_of(
    [instance_type for instance_type in CATALOGUE.instance_types if instance_type.name in NAMES],
    [offer for offer in CATALOGUE.offers if offer.instance_type in NAMES],
)
EVERY_KIND = frozenset(offer.price_kind for offer in aws_catalogue().offers)
LISTED = frozenset(kind for kind in EVERY_KIND if kind.startswith(("on_demand", "reserved")))
EC2_ACTIONS = (
    "DescribeRegions",
    "DescribeAvailabilityZones",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeSpotPriceHistory",
    "DescribeCapacityBlockOfferings",
)
EVERY_CALL = (*EC2_ACTIONS, "GetProducts", "DescribeSavingsPlansOfferingRates")


@pytest.fixture(autouse=True)
def few_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if gpuplan knew of no more types than the server has."""
    for module in ("shared_account", "hardware"):
        monkeypatch.setattr(f"gpuplan.providers.aws.{module}.embedded_instance_types", lambda: FEW.instance_types)


def refused(code: str, status: int = 403) -> Callable[[Reply], Reply]:
    message = f"User {KEY_ID} is not authorized; secret {SECRET}"
    return answering(status, ec2_error(code, message), content_type=XML)


def json_error(code: str, status: int = 400) -> Callable[[Reply], Reply]:
    return answering(status, json.dumps({"__type": code, "message": "Rate exceeded"}).encode())


def of_its_kind(action: str, code: str, *, status: int, json_code: str) -> Callable[[Reply], Reply]:
    return refused(code, status) if action in EC2_ACTIONS else json_error(json_code)


def fetch(ask_aws: AskAws, cloud: CloudServer, region: str = "us-east-1") -> Rows:
    with cloud.running() as server:
        return ask_aws(server).fetch(region)


def notes_of(rows: Rows) -> tuple[str, ...]:
    return (*rows.provider_failures, *rows.failures)


def whole(rows: Rows) -> bool:
    wanted = {offer.key for offer in FEW.offers if offer.region == "us-east-1"}
    return {offer.key for offer in rows.offers} == wanted and rows.whole_kinds == EVERY_KIND and not notes_of(rows)


@pytest.mark.parametrize("action", EVERY_CALL)
def test_throttling_of_the_first_calls_is_waited_out(ask_aws: AskAws, action: str) -> None:
    cloud = AwsCloud(FEW)
    throttle = of_its_kind(action, "RequestLimitExceeded", status=503, json_code="ThrottlingException")
    cloud.break_with(throttle, when=asks(action), times=1)
    assert whole(fetch(ask_aws, cloud))


def test_a_429_of_savings_plans_without_a_type_is_retried(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(answering(429, b"{}"), when=asks("DescribeSavingsPlansOfferingRates"), times=1)
    assert whole(fetch(ask_aws, cloud))


@pytest.mark.parametrize("action", EVERY_CALL)
@pytest.mark.parametrize("change", [truncated, reset_after(0.5)], ids=["cut off", "reset"])
def test_an_answer_that_breaks_off_once_is_asked_again(
    ask_aws: AskAws, action: str, change: Callable[[Reply], Reply]
) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(change, when=asks(action), times=1)
    assert whole(fetch(ask_aws, cloud))


@pytest.mark.parametrize("action", EVERY_CALL)
def test_a_missing_permission_for_one_call_is_one_line_and_the_rest_goes_on(ask_aws: AskAws, action: str) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(
        of_its_kind(action, "UnauthorizedOperation", status=403, json_code="AccessDeniedException"), when=asks(action)
    )
    rows = fetch(ask_aws, cloud)
    (line,) = notes_of(rows)
    assert ("UnauthorizedOperation" if action in EC2_ACTIONS else "AccessDeniedException") in line
    assert SECRET not in line
    assert KEY_ID not in line
    assert rows.offers


@pytest.mark.parametrize(
    ("action", "lost"),
    [
        ("GetProducts", LISTED),
        ("DescribeSavingsPlansOfferingRates", frozenset({"savings_plan_1y", "savings_plan_3y"})),
        ("DescribeSpotPriceHistory", frozenset({"spot"})),
        ("DescribeCapacityBlockOfferings", frozenset({"capacity_block"})),
    ],
)
def test_a_kind_is_whole_only_if_every_call_that_feeds_it_answered(
    ask_aws: AskAws, action: str, lost: frozenset[str]
) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(
        of_its_kind(action, "UnauthorizedOperation", status=403, json_code="AccessDeniedException"), when=asks(action)
    )
    rows = fetch(ask_aws, cloud)
    assert rows.whole_kinds == EVERY_KIND - lost
    assert {offer.price_kind for offer in rows.offers} == EVERY_KIND - lost


def test_nothing_is_whole_while_ec2_does_not_say_which_types_there_are(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(refused("UnauthorizedOperation"), when=asks("DescribeInstanceTypes"))
    rows = fetch(ask_aws, cloud)
    assert rows.whole_kinds == frozenset()
    assert {offer.price_kind for offer in rows.offers} == EVERY_KIND - {"capacity_block"}


@pytest.mark.parametrize("action", EVERY_CALL)
@pytest.mark.usefixtures("impatient")
def test_an_html_page_from_one_call_is_one_line(ask_aws: AskAws, action: str) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(html, when=asks(action))
    rows = fetch(ask_aws, cloud)
    (line,) = notes_of(rows)
    assert "proxy" in line
    assert "<" not in line
    assert rows.offers


@pytest.mark.usefixtures("impatient")
def test_html_from_everything_is_a_failure_of_the_provider(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(html)
    with (
        cloud.running() as server,
        pytest.raises(ProviderFailure, match=r"AWS gave neither prices nor machines: .*proxy"),
    ):
        ask_aws(server).regions()


@pytest.mark.parametrize("code", ["AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "RequestExpired"])
def test_wrong_credentials_end_everything_after_one_call(ask_aws: AskAws, code: str) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(refused(code, 401))
    with cloud.running() as server, pytest.raises(ProviderFailure) as failure:
        ask_aws(server).regions()
    assert str(failure.value).startswith(f"AWS does not accept the credentials (ec2 describe_regions: {code}")
    assert SECRET not in str(failure.value)
    assert KEY_ID not in str(failure.value)
    assert len(cloud.requests) == 1


@pytest.mark.usefixtures("impatient")
def test_server_errors_for_ever_at_one_service_leave_the_others(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(answering(500, b"{}"), when=asks("GetProducts"))
    rows = fetch(ask_aws, cloud)
    assert "spot" in rows.whole_kinds
    assert "on_demand" not in rows.whole_kinds


@pytest.mark.usefixtures("impatient")
def test_a_dead_region_is_one_line_and_keeps_its_list_prices(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(
        reset_after(0),
        when=lambda request: (
            (b"Action=" in request.body and asks("", "us-west-2")(request)) or _in(request, "us-west-2")
        ),
    )
    with cloud.running() as server:
        aws = ask_aws(server)
        healthy, dead = aws.fetch("us-east-1"), aws.fetch("us-west-2")
    assert whole(healthy)
    (line,) = dead.failures
    assert ": no answer" in line
    assert {offer.price_kind for offer in dead.offers} >= LISTED
    assert not {"spot", "capacity_block"} & dead.whole_kinds


def _in(request: Request, region: str) -> bool:
    return f"/{region}/ec2/" in request.headers.get("authorization", "")


def test_a_region_that_answers_auth_failure_is_one_line(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(refused("AuthFailure", 401), when=lambda request: _in(request, "us-west-2"))
    with cloud.running() as server:
        rows = ask_aws(server).fetch("us-west-2")
    assert [line for line in rows.failures if "AuthFailure" in line]
    assert "on_demand" in rows.whole_kinds
    assert len([request for request in cloud.requests if _in(request, "us-west-2")]) == 1


@pytest.mark.parametrize("action", ["GetProducts", "DescribeInstanceTypes"])
def test_an_expired_page_starts_the_list_again(ask_aws: AskAws, action: str) -> None:
    cloud = AwsCloud(FEW, page_size=1 if action == "GetProducts" else 20)
    expired = of_its_kind(action, "InvalidNextToken", status=400, json_code="ExpiredNextTokenException")
    cloud.break_with(expired, when=lambda request: asks(action)(request) and b"NextToken" in request.body, times=1)
    assert whole(fetch(ask_aws, cloud))


@pytest.mark.usefixtures("impatient")
def test_pages_that_expire_for_ever_are_given_up(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW, page_size=1)
    cloud.break_with(
        json_error("ExpiredNextTokenException"),
        when=lambda request: asks("GetProducts")(request) and b"NextToken" in request.body,
    )
    rows = fetch(ask_aws, cloud)
    assert any("pages expired" in line for line in notes_of(rows))
    assert "on_demand" not in rows.whole_kinds


def test_pages_in_a_circle_come_to_an_end(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)

    def again(reply: Reply) -> Reply:
        return replace(reply, body=json.dumps({**json.loads(reply.body), "nextToken": "cGFnZSBmcm9tIDA="}).encode())

    cloud.break_with(
        again,
        when=lambda request: asks("DescribeSavingsPlansOfferingRates")(request) and b"nextToken" not in request.body,
    )
    cloud.break_with(
        answering(200, json.dumps({"searchResults": [], "nextToken": "cGFnZSBmcm9tIDA="}).encode()),
        when=asks("DescribeSavingsPlansOfferingRates"),
    )
    rows = fetch(ask_aws, cloud)
    assert any("circle" in line for line in notes_of(rows))


@pytest.mark.parametrize(
    ("action", "old", "new"),
    [
        ("DescribeSpotPriceHistory", b"<timestamp>", b"<timestamp>soon"),
        ("DescribeCapacityBlockOfferings", b"<instanceCount>", b"<instanceCount>many"),
        ("DescribeInstanceTypes", b"<defaultVCpus>", b"<defaultVCpus>several"),
        ("GetProducts", b'"PriceList": [', b'"PriceList": {"a": '),
        ("DescribeSavingsPlansOfferingRates", b'"searchResults": [', b'"searchResults": "none", "other": ['),
    ],
)
def test_a_field_of_another_type_costs_one_line_and_never_the_rest(
    ask_aws: AskAws, action: str, old: bytes, new: bytes
) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(lambda reply: replace(reply, body=reply.body.replace(old, new)), when=asks(action))
    if action == "GetProducts":
        cloud.faults.clear()
        cloud.break_with(answering(200, b'{"PriceList": {"a": 1}}'), when=asks(action))
    rows = fetch(ask_aws, cloud)
    (line,) = notes_of(rows)
    assert "not" in line
    assert rows.offers


def test_a_price_of_text_or_zero_is_quarantined(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    spot = [offer for offer in FEW.offers if offer.price_kind == "spot" and offer.region == "us-east-1"]

    def spoilt(reply: Reply) -> Reply:
        head, _, rest = reply.body.partition(b"<spotPrice>")
        return replace(
            reply, body=head + b"<spotPrice>0.000000</spotPrice><old>" + rest.replace(b"</spotPrice>", b"</old>", 1)
        )

    cloud.break_with(spoilt, when=asks("DescribeSpotPriceHistory"), times=1)
    rows = fetch(ask_aws, cloud)
    assert len([offer for offer in rows.offers if offer.price_kind == "spot"]) == len(spot) - 1
    assert "spot" not in rows.whole_kinds
    (doubt,) = rows.quarantined
    assert doubt.what.startswith("spot ")
    assert "zero means unknown" in doubt.reason


def test_a_broken_advisor_is_one_line_and_spot_rows_carry_the_modelled_rate(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(answering(404, b""), when=lambda request: request.path.endswith("advisor-data.json"))
    with cloud.running() as server:
        aws = ask_aws(server)
        both = [aws.fetch("us-east-1"), aws.fetch("us-west-2")]
    assert len([line for rows in both for line in rows.failures]) == 1
    spot = [offer for rows in both for offer in rows.offers if offer.price_kind == "spot"]
    assert {offer.modelled for offer in spot} == {("interruption_rate",)}
    assert all("spot" in rows.whole_kinds for rows in both)


def test_regions_stay_listed_when_the_price_list_fails(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(json_error("AccessDeniedException"), when=asks("GetProducts"))
    with cloud.running() as server:
        listed = ask_aws(server).regions()
    assert {"us-west-2-lax-1", "us-gov-west-1", "eu-west-1"} <= set(listed)


def test_a_type_that_is_not_sold_in_blocks_there_is_no_failure(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    cloud.break_with(refused("Unsupported", 400), when=asks("DescribeCapacityBlockOfferings"))
    rows = fetch(ask_aws, cloud)
    assert rows.failures == ()
    assert "capacity_block" in rows.whole_kinds


def test_calls_to_one_region_stay_under_the_published_rate(ask_aws: AskAws) -> None:
    """EC2 refills 20 calls a second per action and region, the price list 5 in all, with 10 at once."""
    assert api_calls.PACES["ec2"] <= (20, 100)
    assert api_calls.PACES["pricing"] <= (5, 10)


def test_many_threads_read_the_account_once(ask_aws: AskAws) -> None:
    cloud = AwsCloud(FEW)
    got: list[Any] = []
    with cloud.running() as server:
        aws = ask_aws(server)
        threads = [threading.Thread(target=lambda: got.append(aws.fetch("us-east-1"))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({frozenset(rows.offers) for rows in got}) == 1
    assert len([request for request in cloud.requests if asks("DescribeRegions")(request)]) == 1
