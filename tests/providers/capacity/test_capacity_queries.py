"""All clouds together answer within one limit, or not at all; none can delay or fail the others."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswer, NotLearned
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.capacity.capacity_queries import MOST_CALLS, CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CAPACITY_CLOUDS, CapacitySources
from gpuplan.providers.capacity.contract import CapacityCall, CapacityResult
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.rate_limit import RateLimit
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import AzureCapacityCloud
from tests.clouds.gcp_advice import GcpAdvice

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
PLENTY = 60.0
#: For answers that never come.
SHORT = 0.2


def query(
    provider: str = "aws", *, machines: tuple[str, ...] = ("m1",), places: tuple[str, ...] = ("r1",)
) -> CapacityQuery:
    return CapacityQuery(provider=provider, machines=machines, nodes=2, kind="spot", places=places)


def answer(machine: str, region: str, provider: str = "aws") -> CapacityAnswer:
    return CapacityAnswer(
        provider=provider,
        region=region,
        zone="",
        instance_type=machine,
        nodes=2,
        price_kind="spot",
        probability=0.5,
        published="5",
        asked_at=ASKED_AT,
        source="test",
    )


@dataclass(slots=True, kw_only=True)
class FakeSource:
    """One call per place; a place in `silent` waits until the end of the test, one in `broken` raises that."""

    name: str = "aws"
    parallel: int = 4
    silent: frozenset[str] = frozenset()
    broken: dict[str, Exception] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def capacity(
        self, machines: Sequence[str], nodes: int, kind: str, places: Sequence[str]
    ) -> list[CapacityCall | NotLearned]:
        def call(place: str) -> CapacityCall:
            def ask(_: datetime, __: float) -> list[CapacityResult]:
                self.asked.append(place)
                if place in self.silent:
                    self.over.wait(PLENTY)
                if place in self.broken:
                    raise self.broken[place]
                return [answer(machine, place, self.name) for machine in machines]

            return CapacityCall(machines=tuple(machines), regions=(place,), ask=ask)

        return [call(place) for place in places]


@contextmanager
def ending(source: FakeSource) -> Iterator[FakeSource]:
    try:
        yield source
    finally:
        source.over.set()


def test_a_cloud_that_never_answers_costs_what_it_was_asked_and_nothing_else() -> None:
    quick = FakeSource(name="gcp")
    with ending(FakeSource(silent=frozenset({"r2"}))) as slow:
        learned = ask_capacity(
            {"aws": lambda: slow, "gcp": lambda: quick},
            [query(places=("r1", "r2")), query("gcp")],
            asked_at=ASKED_AT,
            limit_seconds=SHORT,
        )
    assert {(row.provider, row.region) for row in learned.answers} == {("aws", "r1"), ("gcp", "r1")}
    assert learned.not_learned == (
        NotLearned(provider="aws", region="r2", instance_type="m1", reason="no answer within 0.2 s"),
    )


def test_credentials_that_are_never_found_do_not_delay_either() -> None:
    over = threading.Event()

    def finding() -> FakeSource:
        over.wait(PLENTY)
        return FakeSource()

    try:
        learned = ask_capacity({"aws": finding}, [query()], asked_at=ASKED_AT, limit_seconds=SHORT)
    finally:
        over.set()
    assert [row.reason for row in learned.not_learned] == ["no answer within 0.2 s"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderFailure("HTTP 403"), "HTTP 403"),
        (ZeroDivisionError("oh"), "failed unexpectedly (ZeroDivisionError: oh)"),
        (ModuleNotFoundError("No module named 'boto3'", name="boto3"), "boto3"),
    ],
)
def test_what_goes_wrong_in_one_place_is_said_of_that_place(error: Exception, reason: str) -> None:
    source = FakeSource(broken={"r1": error})
    learned = ask_capacity(
        {"aws": lambda: source}, [query(places=("r1", "r2"))], asked_at=ASKED_AT, limit_seconds=PLENTY
    )
    assert [row.region for row in learned.answers] == ["r2"]
    [missing] = learned.not_learned
    assert missing.region == "r1"
    assert reason in missing.reason


def test_a_cloud_that_cannot_be_asked_at_all_says_so_once() -> None:
    def refused() -> FakeSource:
        raise ProviderFailure("no credentials")

    learned = ask_capacity({"aws": refused}, [query(places=("r1", "r2"))], asked_at=ASKED_AT, limit_seconds=PLENTY)
    assert learned.not_learned == (NotLearned(provider="aws", reason="no credentials"),)


def test_a_provider_without_such_figures_is_named() -> None:
    [row] = ask_capacity({}, [query("lambda")], asked_at=ASKED_AT, limit_seconds=PLENTY).not_learned
    assert (row.provider, "publishes no such figure" in row.reason) == ("lambda", True)


def test_no_more_calls_are_made_than_a_plan_has_candidates() -> None:
    source = FakeSource()
    places = tuple(f"r{number}" for number in range(MOST_CALLS + 3))
    learned = ask_capacity({"aws": lambda: source}, [query(places=places)], asked_at=ASKED_AT, limit_seconds=PLENTY)
    assert len(learned.answers) == len(source.asked) == MOST_CALLS
    assert len(learned.not_learned) == 3


def test_a_source_is_made_once_so_that_its_rate_holds_over_all_questions() -> None:
    sources = CapacitySources(Sources(azure_subscription_id=SUBSCRIPTION, anonymous=True))
    assert tuple(sources) == CAPACITY_CLOUDS
    assert sources["azure"]() is sources["azure"]()


def test_what_the_rate_does_not_allow_in_time_is_not_asked() -> None:
    cloud = AzureCapacityCloud()
    with cloud.running() as server:
        sources = CapacitySources(
            Sources(azure_arm_endpoint=server.url, azure_subscription_id=SUBSCRIPTION, anonymous=True)
        )
        azure = sources["azure"]()
        azure._scores_rate = RateLimit(1, burst=1)  # type: ignore[attr-defined]
        azure._scores_rate.wait()  # type: ignore[attr-defined]
        asked = query("azure", machines=("Standard_NC4as_T4_v3",), places=("eastus",))
        learned = ask_capacity({"azure": lambda: azure}, [asked], asked_at=ASKED_AT, limit_seconds=SHORT)
    assert not learned.answers
    assert not cloud.requests


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with GcpAdvice(latency_seconds=PLENTY).running() as server:
        sources = CapacitySources(Sources(gcp_compute_endpoint=server.url, gcp_project="project", anonymous=True))
        sources["gcp"]()
        asked = query("gcp", machines=("a3-highgpu-8g",), places=("us-central1",))
        learned = ask_capacity(sources, [asked], asked_at=ASKED_AT, limit_seconds=SHORT)
    [missing] = learned.not_learned
    assert (missing.region, missing.instance_type) == ("us-central1", "a3-highgpu-8g")
    assert "no answer within 0." in missing.reason
