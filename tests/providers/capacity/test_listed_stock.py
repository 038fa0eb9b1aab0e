"""Stock of price lists as capacity answers, over the local servers of the providers."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gpuplan.catalog.model.capacity_answers import CapacityAnswers
from gpuplan.providers.capacity.capacity_queries import CapacityQuery, ask_capacity
from gpuplan.providers.capacity.capacity_sources import CapacitySources
from gpuplan.providers.capacity.listed_stock import LISTED_STOCK
from tests.clouds import verda
from tests.clouds.hyperstack import Hyperstack
from tests.clouds.lambda_cloud import Lambda, entry
from tests.clouds.runpod import RunPod, gpu
from tests.clouds.scaleway import Scaleway
from tests.clouds.server import CloudServer, answering
from tests.clouds.verda import Verda
from tests.providers.price_lists.reading import LISTED, sources

ASKED_AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
PLENTY = 60.0
Stock = dict[tuple[str, str], tuple[str, float]]


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERDA_CLIENT_ID", verda.CLIENT_ID)


def ask(
    server: CloudServer, provider: str, machine: str, places: Sequence[str], *, nodes: int = 1, kind: str = "on_demand"
) -> CapacityAnswers:
    return ask_of(CapacitySources(sources(provider, server.url)), provider, machine, places, nodes=nodes, kind=kind)


def ask_of(
    clouds: CapacitySources,
    provider: str,
    machine: str,
    places: Sequence[str],
    *,
    nodes: int = 1,
    kind: str = "on_demand",
) -> CapacityAnswers:
    query = CapacityQuery(provider=provider, machines=(machine,), nodes=nodes, kind=kind, places=tuple(places))
    return ask_capacity(clouds, [query], asked_at=ASKED_AT, limit_seconds=PLENTY)


def stock(learned: CapacityAnswers) -> Stock:
    return {(row.region, row.zone): (row.published, row.probability) for row in learned.answers}


def reasons(learned: CapacityAnswers) -> list[str]:
    return [row.reason for row in learned.not_learned]


def test_lambda_says_where_one_machine_is_in_stock() -> None:
    with Lambda().server().running() as server:
        one = ask(server, "lambda", "gpu_1x_a10", ("us-west-1", "us-east-1"))
        assert stock(one) == {("us-west-1", ""): ("in stock", 0.95), ("us-east-1", ""): ("sold out", 0.0)}
        assert {row.source for row in one.answers} == {f"{server.url}/instance-types"}
        two = ask(server, "lambda", "gpu_1x_a10", ("us-west-1", "us-east-1"), nodes=2)
    assert stock(two) == {("us-east-1", ""): ("sold out", 0.0)}
    assert reasons(two) == ["in stock: the list says whether one machine can be had, not 2 at once"]


def test_runpod_grades_its_stock_by_data_center() -> None:
    card = gpu(centers={"EU-RO-1": "HIGH", "US-KS-2": "LOW", "CA-MTL-1": "NONE"})
    with RunPod(gpus=[card]).server().running() as server:
        places = ("EU-RO-1", "US-KS-2", "CA-MTL-1", "XX-1")
        learned = ask(server, "runpod", "NVIDIA GeForce RTX 4090 x1", places)
    assert {place: word for (place, _), (word, _) in stock(learned).items()} == {
        "EU-RO-1": "HIGH",
        "US-KS-2": "LOW",
        "CA-MTL-1": "NONE",
    }
    assert reasons(learned) == ["is in stock, but the list does not say where"]


def test_hyperstack_counts_the_machines_that_can_be_started() -> None:
    with Hyperstack().server().running() as server:
        five = ask(server, "hyperstack", "n3-H100x8", ("CANADA-1", "NORWAY-1"), nodes=5)
        six = ask(server, "hyperstack", "n3-H100x8", ("CANADA-1",), nodes=6)
    assert stock(five) == {("CANADA-1", ""): ("in stock, 5 machines", 0.95), ("NORWAY-1", ""): ("sold out", 0.0)}
    assert stock(six) == {("CANADA-1", ""): ("in stock, 5 machines", 0.0)}


def test_scaleway_has_a_word_per_zone() -> None:
    with Scaleway(words={"H100-SXM-8-80G": "shortage", "L4-1-24G": "scarce"}).server().running() as server:
        scarce = ask(server, "scaleway", "L4-1-24G", ("fr-par",))
        short = ask(server, "scaleway", "H100-SXM-8-80G", ("fr-par",))
    assert stock(scarce) == {("fr-par", "fr-par-1"): ("scarce", 0.5), ("fr-par", "fr-par-2"): ("scarce", 0.5)}
    assert stock(short) == {("fr-par", "fr-par-2"): ("shortage", 0.0)}


def test_verda_has_stock_of_each_kind() -> None:
    with Verda().server().running() as server:
        spot = ask(server, "verda", "1H100.80S.30V", ("ICE-01", "FIN-01"), kind="spot")
        plain = ask(server, "verda", "1H100.80S.30V", ("ICE-01", "FIN-01"))
    assert stock(spot) == {("ICE-01", ""): ("in stock", 0.95), ("FIN-01", ""): ("sold out", 0.0)}
    assert stock(plain) == {("ICE-01", ""): ("sold out", 0.0), ("FIN-01", ""): ("in stock", 0.95)}


def test_a_list_is_read_at_most_every_minute() -> None:
    cloud = Lambda()
    with cloud.server().running() as server:
        clouds = CapacitySources(sources("lambda", server.url))
        ask_of(clouds, "lambda", "gpu_1x_a10", ("us-west-1", "us-east-1", "europe-central-1"))
        cloud.types = {"gpu_1x_a10": entry("gpu_1x_a10", regions=())}
        again = ask_of(clouds, "lambda", "gpu_1x_a10", ("us-west-1",))
        assert len(server.requests) == 2
    assert stock(again) == {("us-west-1", ""): ("in stock", 0.95)}


@pytest.mark.parametrize("provider", LISTED_STOCK)
def test_a_list_that_cannot_be_read_is_said(provider: str) -> None:
    with LISTED[provider].cloud().server().running() as server:
        server.break_with(answering(404, b"{}"))
        learned = ask(server, provider, "m", ("fr-par",))
    assert not learned.answers
    assert "HTTP 404" in reasons(learned)[0]


def test_without_a_key_the_reason_names_its_variable_and_an_unknown_machine_is_said() -> None:
    with Lambda().server().running() as server:
        clouds = CapacitySources(sources("lambda", server.url, None))
        assert "LAMBDA_API_KEY" in reasons(ask_of(clouds, "lambda", "gpu_1x_a10", ("us-west-1",)))[0]
        learned = ask(server, "lambda", "gpu_9x", ("us-west-1",))
    assert reasons(learned) == ["the list has no on_demand price of it there"]
