"""Who asks: no credentials, an API key alone, a wrong key, a project that may not list machines."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.gcp import provider
from gpuplan.providers.gcp.price_list import SKUS_PER_PAGE
from tests.clouds.gcp import GcpCatalogue
from tests.clouds.server import answering
from tests.providers.gcp.reads import (
    HURRIED,
    READ_AT,
    REGION,
    asks_machines,
    asks_skus,
    price,
    provider_of,
    serving,
    small_catalogue,
)

KEY = "AIzaSy-this-is-a-secret-0123456789abcdef"


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Application Default Credentials."""
    from google.auth import exceptions

    def without(**_: Any) -> None:
        raise exceptions.DefaultCredentialsError("File /nowhere.json was not found.")  # type: ignore[no-untyped-call]

    monkeypatch.setattr("google.auth.default", without)


def test_anonymous_calls_carry_no_authorization() -> None:
    with serving(small_catalogue()) as server:
        provider_of(server).fetch(REGION)
        assert server.requests
        assert not [r for r in server.requests if "authorization" in r.headers or "x-goog-api-key" in r.headers]


@pytest.mark.usefixtures("nobody")
def test_without_credentials_it_says_what_to_set_and_that_earlier_prices_stay() -> None:
    with pytest.raises(ProviderFailure) as caught:
        provider(Sources(gcp_project="project"), read_at=READ_AT).regions()
    for word in (
        "GPUPLAN_GCP_PROJECT",
        "Application Default Credentials",
        "GPUPLAN_ANONYMOUS",
        "earlier prices stay",
        "/nowhere.json",
    ):
        assert word in str(caught.value)


def test_a_credentials_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = tmp_path / "key.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(missing))
    with pytest.raises(ProviderFailure) as caught:
        provider(Sources(gcp_project="project"), read_at=READ_AT).regions()
    assert str(missing) in str(caught.value)


def test_without_a_project_it_says_what_to_set() -> None:
    with pytest.raises(ProviderFailure, match="no project is named: set GPUPLAN_GCP_PROJECT"):
        provider(Sources(anonymous=True), read_at=READ_AT).regions()


@pytest.mark.usefixtures("nobody")
def test_an_api_key_alone_prices_the_machines_that_gpuplan_knows() -> None:
    with serving(small_catalogue(), api_key=KEY) as server:
        plain = Sources(gcp_billing_endpoint=server.url, gcp_api_key=KEY, anonymous=True, paced=False)
        gcp = provider(plain, read_at=READ_AT, patience=HURRIED)
        assert {REGION, "us-central2"} < set(gcp.regions()), "a region without a price here has not gone"
        assert gcp.fetch("us-central2").whole_kinds == frozenset()
        rows = gcp.fetch(REGION)
        assert {request.headers.get("x-goog-api-key") for request in server.requests} == {KEY}
        assert not [request for request in server.requests if "key" in request.query]
    assert price(rows, "g2-standard-4") == 652_000
    assert price(rows, "g2-standard-96") == 96 * 30_000 + 384 * 2_000 + 8 * 500_000
    assert rows.whole_kinds == frozenset()
    assert "the machines of gpuplan's own table" in rows.notes[0]


def test_a_project_that_may_not_list_machines_still_gets_prices_and_a_failure() -> None:
    body = b'{"error": {"code": 403, "message": "Required compute.regions.list permission", "errors": [{"reason": "forbidden"}]}}'
    with serving(small_catalogue()) as server:
        server.break_with(answering(403, body), when=lambda r: r.path.startswith("/compute/"))
        rows = provider_of(server).fetch(REGION)
    assert price(rows, "g2-standard-4") == 652_000
    assert "compute.regions.list" in rows.failures[0]


def test_a_wrong_api_key_is_told_without_the_key() -> None:
    with serving(small_catalogue(), api_key="another") as server:
        gcp = provider_of(server, gcp_api_key=KEY)
        with pytest.raises(ProviderFailure, match="API key not valid") as caught:
            gcp.fetch(REGION)
        assert sum(map(asks_skus, server.requests)) == 1
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:8002", "localhost:1", "ftp://somewhere"])
def test_an_endpoint_without_a_scheme_is_refused_by_name(endpoint: str) -> None:
    with serving(small_catalogue()) as server, pytest.raises(ProviderFailure, match="must begin with https://"):
        provider_of(server, gcp_compute_endpoint=endpoint).regions()


def test_a_certificate_that_cannot_be_trusted_is_not_asked_for_again() -> None:
    with serving(small_catalogue()) as server:
        secure = provider_of(server, gcp_compute_endpoint=server.url.replace("http://", "https://"))
        with pytest.raises(ProviderFailure, match=r"Regions\.list.*SSL"):
            secure.regions()
        assert server.requests == []


def test_credentials_never_travel_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.oauth2.credentials import Credentials

    monkeypatch.setattr("google.auth.default", lambda **_: (Credentials(token="t"), "project"))  # type: ignore[no-untyped-call]
    with serving(small_catalogue()) as server:
        with pytest.raises(ProviderFailure, match="must begin with https://"):
            provider_of(server, anonymous=False).regions()
        assert server.requests == []


def test_a_region_that_does_not_exist_is_named_with_those_that_do() -> None:
    with (
        serving(small_catalogue()) as server,
        pytest.raises(UnusableInput, match=f"no region 'atlantis-1'; it has {REGION}"),
    ):
        provider_of(server).fetch("atlantis-1")


def test_requests_are_strict_in_what_they_ask_for() -> None:
    with serving(small_catalogue()) as server:
        provider_of(server).fetch(REGION)
        machines = next(request for request in server.requests if asks_machines(request))
        skus = next(request for request in server.requests if asks_skus(request))
    assert machines.query == {"maxResults": ["500"]}
    assert skus.query == {"currencyCode": ["USD"], "pageSize": [str(SKUS_PER_PAGE)]}


def test_nothing_is_asked_before_regions_are() -> None:
    with serving(GcpCatalogue()) as server:
        gcp = provider_of(server)
        assert (gcp.name, server.requests) == ("gcp", [])
        assert 1 <= gcp.parallel <= 8
