"""What EC2 says about getting machines, over boto3 and a real socket."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, CapacityAnswers
from gpuplan.providers.aws.capacity import similar_types
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.cloud_endpoints import Sources
from tests.clouds.aws import AwsCloud, asks
from tests.clouds.aws_catalogue import aws_catalogue
from tests.clouds.aws_ec2 import BLOCK_NOTICE
from tests.clouds.aws_xml import ec2_answer, ec2_error
from tests.clouds.server import answering, truncated
from tests.providers.aws.conftest import made_up_keys

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
PLENTY = 60.0
REGIONS = ("us-east-1", "us-east-2")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsCloud]:
    made_up_keys(monkeypatch)
    cloud = AwsCloud(aws_catalogue(), page_size=3)
    with cloud.running() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", server.url)
        yield cloud


def asked(
    machine: str = "p5.48xlarge", nodes: int = 2, kind: str = "spot", places: tuple[str, ...] = REGIONS
) -> CapacityAnswers:
    query = CapacityQuery(provider="aws", machines=(machine,), nodes=nodes, kind=kind, places=places)
    return ask_capacity(CapacitySources(Sources(paced=False)), [query], asked_at=ASKED_AT, limit_seconds=PLENTY)


def by_zone(answers: CapacityAnswers) -> dict[str, CapacityAnswer]:
    return {answer.zone: answer for answer in answers.answers}


def test_every_zone_has_a_score_by_its_id_from_all_pages(cloud: AwsCloud) -> None:
    cloud.ec2.scores = {"use1-az1": 10, "use1-az2": 1}
    learned = asked()
    assert not learned.not_learned
    zones = by_zone(learned)
    assert len(zones) > cloud.page_size
    assert {zone: zones[zone].published for zone in ("use1-az1", "use1-az2", "use2-az1")} == {
        "use1-az1": "10",
        "use1-az2": "1",
        "use2-az1": "7",
    }
    assert zones["use1-az2"].probability < zones["use2-az1"].probability < zones["use1-az1"].probability
    assert all(answer.modelled == ("probability",) and answer.asked_at == ASKED_AT for answer in learned.answers)


def test_a_machine_is_scored_among_three_types_that_are_always_the_same(cloud: AwsCloud) -> None:
    first, again = asked(), asked()
    scored = {answer.scored_types for answer in (*first.answers, *again.answers)}
    assert scored == {("p5.48xlarge", *similar_types("p5.48xlarge"))}
    bodies = {request.body for request in cloud.requests if asks("GetSpotPlacementScores")(request)}
    assert all(b"InstanceType.3=" in body and b"TargetCapacity=2&" in body for body in bodies)


def test_ten_regions_at_most_go_into_one_query(cloud: AwsCloud) -> None:
    places = tuple(cloud.ec2.regions[:12])
    assert {answer.region for answer in asked(places=places).answers} == set(places)
    queries = [request for request in cloud.requests if asks("GetSpotPlacementScores")(request)]
    assert all(request.body.count(b"RegionName.") <= 10 for request in queries)


def test_places_that_ec2_does_not_score_are_named_with_the_reason_and_not_asked_about(cloud: AwsCloud) -> None:
    learned = asked(places=("us-east-1", "us-gov-west-1", "us-west-2-lax-1"))
    assert {row.region: row.reason[:12] for row in learned.not_learned} == {
        "us-gov-west-1": "another part",
        "us-west-2-lax-1": "a Local Zone",
    }
    assert {answer.region for answer in learned.answers} == {"us-east-1"}
    assert not any(b"lax" in request.body for request in cloud.requests)


def test_a_score_of_eleven_is_not_believed(cloud: AwsCloud) -> None:
    cloud.ec2.scores = {"use1-az1": 11}
    learned = asked(places=("us-east-1",))
    assert "use1-az1" not in by_zone(learned)
    assert [row.reason for row in learned.not_learned] == ["score '11' is none of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"]


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (503, "RequestLimitExceeded", "RequestLimitExceeded"),
        (403, "UnauthorizedOperation", "UnauthorizedOperation"),
        (400, "InvalidAction", "InvalidAction"),
        (400, "MaxConfigLimitExceeded", "MaxConfigLimitExceeded"),
    ],
)
def test_a_refusal_is_asked_once_and_is_the_reason(cloud: AwsCloud, status: int, code: str, reason: str) -> None:
    cloud.break_with(answering(status, ec2_error(code, "no"), content_type="text/xml"))
    learned = asked()
    assert not learned.answers
    assert {row.region for row in learned.not_learned} == set(REGIONS)
    assert all(reason in row.reason and "get_spot_placement_scores" in row.reason for row in learned.not_learned)
    assert len(cloud.requests) == 1


def test_half_an_answer_is_no_answer(cloud: AwsCloud) -> None:
    cloud.break_with(truncated, when=asks("GetSpotPlacementScores"))
    learned = asked()
    assert not learned.answers
    assert {row.region for row in learned.not_learned} == set(REGIONS)


def test_a_region_that_is_not_among_the_best_ten_is_said_to_be_missing(cloud: AwsCloud) -> None:
    row = {"Region": "us-east-1", "AvailabilityZoneId": "use1-az1", "Score": 3}
    best = ec2_answer("GetSpotPlacementScores", {"SpotPlacementScores": [row], "NextToken": ""})
    cloud.break_with(answering(200, best, content_type="text/xml"))
    learned = asked()
    assert [(row.region, "ten best" in row.reason) for row in learned.not_learned] == [("us-east-2", True)]


def test_without_credentials_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, cloud: AwsCloud) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    [row] = asked().not_learned
    assert "AWS_ACCESS_KEY_ID" in row.reason
    assert not cloud.requests


def test_a_price_kind_that_has_no_published_figure_is_refused_by_name(cloud: AwsCloud) -> None:
    [row] = asked(kind="on_demand").not_learned
    assert row.reason == "AWS publishes nothing about getting on_demand machines; accepted: spot, capacity_block"
    assert not cloud.requests


def block_machine(cloud: AwsCloud) -> tuple[str, str]:
    """A machine and a region with capacity blocks."""
    offers = (offer for offer in aws_catalogue().offers if offer.price_kind == "capacity_block")
    return next((o.instance_type, o.region) for o in offers if o.region in cloud.ec2.regions)


def test_a_capacity_block_tells_when_so_many_machines_start(cloud: AwsCloud) -> None:
    machine, region = block_machine(cloud)
    learned = asked(machine, nodes=2, kind="capacity_block", places=(region,))
    assert not learned.not_learned
    answer = learned.answers[0]
    assert answer.published == "offered, 24 h"
    assert answer.starts_at == ASKED_AT + 2 * BLOCK_NOTICE
    assert answer.wait_hours == 2 * BLOCK_NOTICE.total_seconds() / 3600
    assert answer.zone.rpartition("-")[2].startswith("az")


def test_offers_of_other_machines_are_no_answer(cloud: AwsCloud) -> None:
    machine, region = block_machine(cloud)
    [row] = asked(machine, nodes=5, kind="capacity_block", places=(region,)).not_learned
    assert row.reason == f"EC2 answered for other machines than 5 x {machine}"


def test_no_block_on_offer_is_learned(cloud: AwsCloud) -> None:
    [answer] = asked("g4dn.xlarge", kind="capacity_block", places=("us-east-1",)).answers
    assert (answer.probability, answer.published, answer.wait_hours) == (0.0, "none offered", None)


@pytest.mark.shared_data
def test_the_documented_form_of_the_answers_is_read(cloud: AwsCloud, shared_data: Path) -> None:
    wire = shared_data / "wire" / "aws"
    for action in ("GetSpotPlacementScores", "DescribeCapacityBlockOfferings"):
        body = (wire / f"wire.ec2_{action}.constructed.xml").read_bytes()
        cloud.break_with(answering(200, body, content_type="text/xml"), when=asks(action))
    [score] = asked(places=("us-east-1",)).answers
    assert (score.zone, score.published) == ("use1-az4", "9")
    [block] = asked("p5en.48xlarge", kind="capacity_block", places=("ap-northeast-2",)).answers
    assert block.starts_at == datetime(2026, 8, 11, 11, 30, tzinfo=UTC)
    assert block.zone.startswith("apne2-az")
