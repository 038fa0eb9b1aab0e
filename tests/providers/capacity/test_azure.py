"""Azure's placement scores and eviction bands, over azure-core and a real socket."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.cloud_endpoints import Sources
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import DENIED, GRAPH, AzureCapacityCloud
from tests.clouds.server import CloudServer, Request, answering, html, reset_after, truncated

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
PLENTY = 60.0
SIZE = "Standard_ND96isr_H100_v5"
SIZES = tuple(f"Standard_NC{number}ads_A100_v4" for number in (24, 48, 96)) + tuple(
    f"Standard_NC{number}as_T4_v3" for number in (4, 8, 16, 64)
)
REGIONS = tuple(f"{place}{number}" for place in ("eastus", "westus", "northeurope") for number in (1, 2, 3))
THROTTLED = (
    b'{"code": "OperationNotAllowed", "message": "The server rejected the request because of too many requests."}'
)


def asked(
    server: CloudServer, *sizes: str, places: tuple[str, ...] = ("eastus",), kind: str = "spot", nodes: int = 2
) -> CapacityAnswers:
    sources = Sources(azure_arm_endpoint=server.url, azure_subscription_id=SUBSCRIPTION, anonymous=True, paced=False)
    query = CapacityQuery(provider="azure", machines=sizes or (SIZE,), nodes=nodes, kind=kind, places=places)
    return ask_capacity(CapacitySources(sources), [query], asked_at=ASKED_AT, limit_seconds=PLENTY)


@pytest.fixture
def cloud() -> Iterator[AzureCapacityCloud]:
    cloud = AzureCapacityCloud()
    with cloud.running():
        yield cloud


def graph(request: Request) -> bool:
    return request.path == GRAPH


def placement(request: Request) -> bool:
    return "placementScores" in request.path


def test_words_become_probabilities_in_their_order(cloud: AzureCapacityCloud) -> None:
    cloud.scores = {(SIZES[0], "eastus"): "Low", (SIZES[1], "eastus"): "Medium"}
    learned = asked(cloud, *SIZES[:3])
    assert not learned.not_learned
    by_size = {answer.instance_type: answer for answer in learned.answers}
    assert [by_size[size].published for size in SIZES[:3]] == ["Low", "Medium", "High"]
    assert by_size[SIZES[0]].probability < by_size[SIZES[1]].probability < by_size[SIZES[2]].probability
    assert by_size[SIZES[0]].modelled == ("probability", "interruptions_per_hour")


def test_an_hourly_eviction_band_becomes_the_hazard_of_its_middle(cloud: AzureCapacityCloud) -> None:
    [answer] = asked(cloud).answers
    assert answer.interruptions_per_hour == pytest.approx(-math.log(1 - 0.075))
    assert answer.interruptions_published == "5-10 % per hour"


@pytest.mark.parametrize("quota", [True, False])
def test_the_quota_flag_stands_beside_the_score(cloud: AzureCapacityCloud, *, quota: bool) -> None:
    cloud.quota = quota
    [answer] = asked(cloud).answers
    assert (answer.published, answer.quota_available) == ("High", quota)


def test_many_sizes_and_regions_are_asked_in_queries_as_large_as_azure_takes(cloud: AzureCapacityCloud) -> None:
    learned = asked(cloud, *SIZES, places=REGIONS)
    assert len(learned.answers) == len(SIZES) * len(REGIONS)
    bodies = [json.loads(request.body) for request in cloud.requests if placement(request)]
    assert sorted((len(body["desiredSizes"]), len(body["desiredLocations"])) for body in bodies) == [
        (2, 1),
        (2, 8),
        (5, 1),
        (5, 8),
    ]
    assert all(body["desiredCount"] == 2 for body in bodies)


def test_every_page_of_resource_graph_is_read(cloud: AzureCapacityCloud) -> None:
    cloud.page_size = 2
    learned = asked(cloud, *SIZES[:3], places=("eastus", "westus3"))
    assert all(answer.interruptions_published for answer in learned.answers)
    assert sum(map(graph, cloud.requests)) == 3


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        ("11", "score '11' is none of High, Medium, Low"),
        ("", "score '' is none of High, Medium, Low"),
        ("DataNotFoundOrStale", "no recent data"),
        ("RestrictedSkuNotAvailable", "may not rent"),
    ],
)
def test_what_is_no_score_is_not_learned_with_the_reason(cloud: AzureCapacityCloud, score: str, reason: str) -> None:
    cloud.score = score
    learned = asked(cloud)
    assert not learned.answers
    assert reason in learned.not_learned[0].reason


def test_an_unknown_band_leaves_the_score(cloud: AzureCapacityCloud) -> None:
    cloud.band = "very often"
    [answer] = asked(cloud).answers
    assert (answer.interruptions_per_hour, answer.modelled) == (None, ("probability",))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (403, DENIED, "AuthorizationFailed"),
        (429, THROTTLED, "too many requests"),
        (404, b'{"error": {"code": "InvalidResourceType", "message": "not in this version"}}', "InvalidResourceType"),
    ],
)
def test_a_refusal_is_asked_once_and_is_the_reason(
    cloud: AzureCapacityCloud, status: int, body: bytes, reason: str
) -> None:
    cloud.break_with(answering(status, body, Retry_After="1200"))
    [row] = asked(cloud).not_learned
    assert reason in row.reason
    assert (row.region, row.instance_type) == ("eastus", SIZE)
    assert len(cloud.requests) == 1


def test_a_refused_resource_graph_leaves_the_scores(cloud: AzureCapacityCloud) -> None:
    cloud.break_with(answering(403, DENIED), when=graph)
    learned = asked(cloud)
    [answer], [missing] = learned.answers, learned.not_learned
    assert (answer.published, answer.interruptions_per_hour, missing.what) == ("High", None, "interruptions")


@pytest.mark.parametrize("change", [html, truncated, reset_after(0.5)])
def test_a_broken_answer_is_no_answer(cloud: AzureCapacityCloud, change: object) -> None:
    cloud.break_with(change)  # type: ignore[arg-type]
    learned = asked(cloud)
    assert not learned.answers
    assert learned.not_learned[0].instance_type == SIZE
    assert "unexpectedly" not in learned.not_learned[0].reason


@pytest.mark.parametrize(
    ("place", "reason"), [("usgovvirginia", "separate cloud"), ("east us'); drop", "no region of Azure")]
)
def test_a_place_that_cannot_be_asked_about_is_not_sent(cloud: AzureCapacityCloud, place: str, reason: str) -> None:
    [row] = asked(cloud, places=(place,)).not_learned
    assert reason in row.reason
    assert not cloud.requests


def test_a_name_that_is_no_size_is_not_sent(cloud: AzureCapacityCloud) -> None:
    [row] = asked(cloud, "x') or (1 == 1").not_learned
    assert "no size of Azure" in row.reason
    assert not cloud.requests


def test_without_a_subscription_nothing_is_asked() -> None:
    query = CapacityQuery(provider="azure", machines=(SIZE,), nodes=1, kind="spot", places=("eastus",))
    sources = CapacitySources(Sources(anonymous=True))
    [row] = ask_capacity(sources, [query], asked_at=ASKED_AT, limit_seconds=PLENTY).not_learned
    assert "AZURE_SUBSCRIPTION_ID" in row.reason
