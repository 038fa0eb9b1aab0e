"""What Compute Engine's advice says about getting machines, over a real socket in the library's own wire format."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.cloud_endpoints import Sources
from tests.clouds.gcp_advice import DENIED, DISABLED, GcpAdvice
from tests.clouds.server import CloudServer, Request, answering, html, reset_after, truncated

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
PLENTY = 60.0
MACHINE, REGION = "a3-highgpu-8g", "us-central1"
RATE_LIMITED = (
    b'{"error": {"code": 403, "message": "Rate Limit Exceeded", "errors": [{"reason": "rateLimitExceeded"}]}}'
)


def asked(
    server: CloudServer, *machines: str, kind: str = "spot", places: tuple[str, ...] = (REGION,), nodes: int = 2
) -> CapacityAnswers:
    sources = Sources(gcp_compute_endpoint=server.url, gcp_project="project", anonymous=True, paced=False)
    query = CapacityQuery(provider="gcp", machines=machines or (MACHINE,), nodes=nodes, kind=kind, places=places)
    return ask_capacity(CapacitySources(sources), [query], asked_at=ASKED_AT, limit_seconds=PLENTY)


@pytest.fixture
def advice() -> Iterator[GcpAdvice]:
    cloud = GcpAdvice()
    with cloud.running():
        yield cloud


def history(request: Request) -> bool:
    return request.path.endswith("capacityHistory")


def test_obtainability_is_the_probability_and_the_rest_stands_beside_it(advice: GcpAdvice) -> None:
    [answer] = asked(advice).answers
    assert (answer.probability, answer.published, answer.zone) == (0.8, "0.8", "us-central1-b")
    assert (answer.nodes, answer.uptime_hours, answer.asked_at) == (2, 1.0, ASKED_AT)
    assert answer.modelled == ("interruptions_per_hour",)


def test_a_daily_share_of_preempted_stops_becomes_an_hourly_hazard(advice: GcpAdvice) -> None:
    [answer] = asked(advice).answers
    assert answer.interruptions_per_hour == pytest.approx(-math.log(1 - 0.3) / 24)
    assert answer.interruptions_published == "0.300 of stops per day, mean of 2 days"


def test_each_machine_is_asked_about_in_each_region(advice: GcpAdvice) -> None:
    learned = asked(advice, MACHINE, "g2-standard-8", places=(REGION, "europe-west4"))
    assert {(row.instance_type, row.region) for row in learned.answers} == {
        (machine, region) for machine in (MACHINE, "g2-standard-8") for region in (REGION, "europe-west4")
    }


def test_an_n1_machine_is_asked_about_with_its_gpus_and_without_history(advice: GcpAdvice) -> None:
    learned = asked(advice, "n1-standard-32+4xV100")
    [answer], [missing] = learned.answers, learned.not_learned
    assert (answer.probability, answer.interruptions_per_hour) == (0.8, None)
    assert (missing.what, "N1" in missing.reason) == ("interruptions", True)
    assert not any(map(history, advice.requests))


@pytest.mark.parametrize(
    ("machine", "kind", "reason"),
    [("tpu-v5litepod-4", "spot", "does not cover TPUs"), (MACHINE, "flex_start", "accepted: spot")],
)
def test_what_google_has_no_advice_on_is_not_asked(advice: GcpAdvice, machine: str, kind: str, reason: str) -> None:
    [row] = asked(advice, machine, kind=kind).not_learned
    assert reason in row.reason
    assert not advice.requests


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"obtainability": 2.0}, "an obtainability of 2.0 is outside 0..1"),
        ({"obtainability": -0.1}, "an obtainability of -0.1 is outside 0..1"),
        ({"uptime": "soon"}, "'soon' is no duration"),
        ({"machine_type": "e2-micro"}, "the advice is for e2-micro, which was not asked"),
    ],
)
def test_nonsense_is_not_believed(wrong: dict[str, object], reason: str) -> None:
    with GcpAdvice(**wrong).running() as server:  # type: ignore[arg-type]
        learned = asked(server)
    assert not learned.answers
    assert reason in learned.not_learned[0].reason


@pytest.mark.parametrize("rates", [(), (1.0, 1.0), (0.2, 1.2), (0.1,) * 40])
def test_a_history_that_gives_no_rate_leaves_the_rest_of_the_answer(rates: tuple[float, ...]) -> None:
    with GcpAdvice(rates=rates).running() as server:
        learned = asked(server)
    [answer], [missing] = learned.answers, learned.not_learned
    assert (answer.probability, answer.interruptions_per_hour) == (0.8, None)
    assert missing.what == "interruptions"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [(403, DENIED, "compute.advice.capacity"), (403, RATE_LIMITED, "Rate Limit"), (404, DISABLED, "Method not found")],
)
def test_a_refusal_is_asked_once_and_is_the_reason(advice: GcpAdvice, status: int, body: bytes, reason: str) -> None:
    advice.break_with(answering(status, body))
    [row] = asked(advice).not_learned
    assert reason in row.reason
    assert (row.region, row.instance_type, row.what) == (REGION, MACHINE, "capacity")
    assert len(advice.requests) == 1


def test_a_refused_history_leaves_the_rest_of_the_answer(advice: GcpAdvice) -> None:
    advice.break_with(answering(403, DENIED), when=history)
    learned = asked(advice)
    [answer], [missing] = learned.answers, learned.not_learned
    assert (answer.probability, answer.interruptions_per_hour, missing.what) == (0.8, None, "interruptions")


@pytest.mark.parametrize("change", [html, truncated, reset_after(0.5)])
def test_a_broken_answer_is_no_answer(advice: GcpAdvice, change: object) -> None:
    advice.break_with(change)  # type: ignore[arg-type]
    learned = asked(advice)
    assert not learned.answers
    assert learned.not_learned[0].instance_type == MACHINE
    assert "unexpectedly" not in learned.not_learned[0].reason


def test_an_api_key_alone_is_not_enough(monkeypatch: pytest.MonkeyPatch, advice: GcpAdvice) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none.json")
    sources = Sources(gcp_compute_endpoint=advice.url.replace("http:", "https:"), gcp_api_key="k", anonymous=False)
    query = CapacityQuery(provider="gcp", machines=(MACHINE,), nodes=1, kind="spot", places=(REGION,))
    [row] = ask_capacity(CapacitySources(sources), [query], asked_at=ASKED_AT, limit_seconds=PLENTY).not_learned
    assert "API key is not enough" in row.reason
