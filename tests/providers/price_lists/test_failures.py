"""Every provider with one list over a real socket: keys, throttling, broken and empty answers, and a failed refresh."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_registry import cloud_names, made
from gpuplan.providers.price_lists.field_reading import accelerator_names
from gpuplan.providers.refresh.refresh_run import CurrentRows, Refreshed, refresh
from tests.clouds import hyperstack, verda
from tests.clouds.oci import Oracle
from tests.clouds.scaleway import Scaleway, entry
from tests.clouds.server import CloudServer, Reply, Request, answering, html, truncated
from tests.clouds.vast import Vast
from tests.providers.price_lists.reading import LISTED, READ_AT, Cloud, read, reasons, sources

WITH_KEYS = sorted(name for name, listed in LISTED.items() if listed.key)


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERDA_CLIENT_ID", verda.CLIENT_ID)


@pytest.fixture(params=sorted(LISTED))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(name: str) -> Iterator[CloudServer]:
    with LISTED[name].cloud().server().running() as running:
        yield running


def about_prices(request: Request) -> bool:
    return request.path not in {"/oauth2/token", "/ecb.xml"} and "public-catalog" not in request.path


def test_every_provider_with_one_list_over_http_is_tested_here() -> None:
    assert set(LISTED) == set(cloud_names()) - {"aws", "azure", "gcp", "nebius"}


@pytest.mark.parametrize("name", WITH_KEYS)
def test_a_wrong_key_names_its_variable_and_never_the_key(name: str, server: CloudServer) -> None:
    with pytest.raises(ProviderFailure, match=LISTED[name].variable) as caught:
        read(name, server, "a-key-of-another-provider")
    assert "another-provider" not in str(caught.value)


def test_only_a_provider_that_needs_a_key_fails_without_it(name: str, server: CloudServer) -> None:
    if LISTED[name].needs_key:
        with pytest.raises(ProviderFailure, match=f"set {LISTED[name].variable}"):
            read(name, server, None)
    else:
        assert any(rows.offers for rows in read(name, server, None).values())


@pytest.mark.parametrize("reply", [answering(429, b"API requests too frequent", content_type="text/plain"), truncated])
def test_throttling_and_broken_answers_are_asked_for_again(name: str, server: CloudServer, reply: Any) -> None:
    server.break_with(reply, times=2)
    assert any(rows.offers for rows in read(name, server).values())


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answering(403, b"{}"), "HTTP 403"),
        (answering(429, b"slow", Retry_After="3600"), "asks to wait 3600 s"),
        (html, "an HTML page, not JSON"),
        (answering(200, b"7"), "JSON that is no"),
    ],
)
def test_a_failure_that_persists_is_one_line(name: str, server: CloudServer, reply: Any, message: str) -> None:
    server.break_with(reply, when=about_prices)
    with pytest.raises(ProviderFailure, match=message) as caught:
        read(name, server)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "cloud", "message"),
    [
        ("verda", verda.Verda(types=[]), "no machine with accelerators"),
        ("verda", verda.Verda(locations=[{"name": "x"}]), "code is missing"),
        ("hyperstack", hyperstack.Hyperstack(flavors={}), "no machine with accelerators"),
        ("hyperstack", hyperstack.Hyperstack(prices=[{"id": 3}]), "name is missing"),
        ("oci", Oracle(shapes=[]), "no machine with accelerators"),
        ("oci", Oracle(parts={"B98415": 10.0}), r"items is \{.*, not a list"),
        ("scaleway", Scaleway(types={"fr-par-1": {}, "fr-par-2": {}, "pl-waw-2": {}}), "no machine with accelerators"),
        ("scaleway", Scaleway(types={"fr-par-1": {"L4-1-24G": entry()}}), "fr-par-2.*not found"),
        ("vast", Vast(offers=[]), "no machine with accelerators"),
        ("vast", Vast(offers="none"), "offers is missing or no list"),
    ],
)
def test_an_empty_list_fails_and_an_unknown_shape_is_named(name: str, cloud: Cloud, message: str) -> None:
    with cloud.server().running() as running, pytest.raises(ProviderFailure, match=message):
        read(name, running)


@pytest.mark.parametrize(
    ("name", "cloud", "machine"),
    [
        ("verda", verda.Verda(types=[verda.entry("x", "2", "1"), verda.entry("x", "3", "2"), verda.entry("y")]), "x"),
        (
            "hyperstack",
            hyperstack.Hyperstack(
                flavors={"CANADA-1": [hyperstack.flavor("x", 4, "L40"), hyperstack.flavor("y")]},
                prices=[hyperstack.price("L40", "1"), hyperstack.price("L40", "2"), hyperstack.price("H100-80G-PCIe")],
            ),
            "x",
        ),
    ],
)
def test_what_is_listed_twice_with_different_contents_is_quarantined(name: str, cloud: Cloud, machine: str) -> None:
    with cloud.server().running() as running:
        rows = read(name, running)
    assert {offer.instance_type for region in rows.values() for offer in region.offers} == {"y"}
    assert any(why.startswith(machine) and re.search("list(ed|s) twice", why) for why in reasons(rows))


def test_a_failed_refresh_keeps_the_last_prices(name: str, server: CloudServer) -> None:
    server.break_with(lambda _: Reply(status=500, body=b""))
    current = CurrentRows(snapshot=embedded_snapshot(), embedded=embedded_snapshot(), read_at=frozenset())
    after: Refreshed = refresh({name: lambda: made(name, sources(name, server.url), READ_AT)}, current, at=READ_AT)
    assert after.outcome == "failed"
    before = [offer for offer in embedded_snapshot().offers if offer.provider == name]
    remaining = [offer for offer in after.snapshot.offers if offer.provider == name]
    assert len(remaining) == len(before)
    assert all(offer.stale_since == READ_AT for offer in remaining)


def test_every_card_of_the_embedded_machines_is_in_the_table(name: str) -> None:
    known = {
        machine.accelerator
        for machine in embedded_snapshot().instance_types
        if machine.provider == name and "rate card" not in machine.name
    }
    package = "lambda_" if name == "lambda" else name
    assert known <= set(accelerator_names(f"gpuplan.providers.{package}").values())
