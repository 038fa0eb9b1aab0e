"""Azure down for good, or in the middle of its pages: bounded, one line, and the other list goes on."""

from collections.abc import Callable

import pytest
from tenacity import wait_none

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure import provider
from tests.clouds.azure import RETAIL_PATH, azure_cloud
from tests.clouds.server import CloudServer, Reply, Request, answering
from tests.providers.azure.test_provider import NIGHT, failures, is_arm, refreshed, some_offers, sources

T4 = "Standard_NC4as_T4_v3"
EXPIRED = b'{"error": {"code": "InvalidSkipToken", "message": "The skip token has expired."}}'


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("gpuplan.providers.feed_client._backing_off", wait_none())


def is_retail(request: Request) -> bool:
    return request.path == RETAIL_PATH


def small() -> CloudServer:
    return azure_cloud(offers=some_offers(T4), sku_page_size=2)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_price_list_that_is_down_for_ever_is_one_line_after_a_few_calls(status: int) -> None:
    server = small()
    server.break_with(answering(status, b""), when=is_retail)
    with server.running():
        azure = provider(sources(server), read_at=NIGHT)
        with pytest.raises(ProviderFailure, match=rf"/api/retail/prices: HTTP {status} after 5 attempts") as failure:
            azure.regions()
    assert "\n" not in str(failure.value)
    assert len([request for request in server.requests if is_retail(request)]) == 5


def test_a_region_that_is_down_for_ever_leaves_the_others_whole() -> None:
    server = small()
    server.break_with(answering(503, b""), when=lambda request: "'westeurope'" in request.parameter("$filter"))
    with server.running():
        azure = provider(sources(server), read_at=NIGHT)
        with pytest.raises(ProviderFailure, match="HTTP 503"):
            azure.fetch("westeurope")
        rows = azure.fetch("eastus")
    assert rows.offers
    assert rows.failures == ()


def test_a_page_of_the_sku_list_that_has_expired_is_one_line_and_prices_go_on() -> None:
    server = small()
    server.break_with(answering(400, EXPIRED), when=lambda request: is_arm(request) and "$skiptoken" in request.query)
    rows = refreshed(server)
    (line,) = failures(rows)
    assert "InvalidSkipToken: The skip token has expired." in line
    assert {offer.region for row in rows.values() for offer in row.offers} == {"eastus", "westeurope"}


@pytest.mark.parametrize("broken", [answering(400, b""), answering(503, b"")])
def test_a_list_of_all_regions_that_breaks_off_leaves_each_region_to_be_read_by_itself(
    broken: Callable[[Reply], Reply],
) -> None:
    server = azure_cloud(offers=some_offers(T4), page_size=2)

    def is_second_page_of_all(request: Request) -> bool:
        return "$skip" in request.query and "armRegionName" not in request.parameter("$filter")

    server.break_with(broken, when=is_second_page_of_all)
    rows = refreshed(server)
    (line,) = failures(rows)
    assert "/api/retail/prices: HTTP" in line
    assert line.endswith("; regions that are new to Azure may be missing")
    assert len([offer for row in rows.values() for offer in row.offers]) == len(some_offers(T4))


def test_a_list_that_ignores_filters_and_breaks_off_is_not_taken_for_whole() -> None:
    server = azure_cloud(offers=some_offers(T4), page_size=20, filters="ignored")
    server.break_with(answering(503, b""), when=lambda request: "$skip" in request.query)
    with server.running(), pytest.raises(ProviderFailure, match="HTTP 503"):
        provider(sources(server), read_at=NIGHT).regions()
