"""The pages of Azure's price list over a socket: links, filters that do not filter, throttling, broken answers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.azure.retail_pages import CALLS_LEFT, Allowance, RetailPages
from gpuplan.providers.feed_client import web_client
from tests.clouds.azure import RETAIL_PATH, azure_cloud, price_row
from tests.clouds.server import CloudServer, Reply, Request, answering, html, reset_after, truncated

T4 = "Standard_NC4as_T4_v3"
H100 = "Standard_ND96isr_H100_v5"


@contextmanager
def pages_of(server: CloudServer, *, base: str = "", allowance: Allowance | None = None) -> Iterator[RetailPages]:
    with server.running(), web_client() as client:
        yield RetailPages(client, server.url + base, paced=False, allowance=allowance)


def cloud(*rows: dict[str, Any], **settings: Any) -> CloudServer:
    return azure_cloud(offers=(), neighbours=False, more_prices=rows, **settings)


def serving(answer: Callable[[Request], Any]) -> CloudServer:
    return CloudServer(lambda request: Reply(body=json.dumps(answer(request)).encode()))


def five() -> list[dict[str, Any]]:
    return [price_row(T4, "eastus", 0.5 + n / 10, meterId=str(n)) for n in range(5)]


def test_links_to_the_public_host_with_its_port_are_followed_at_the_endpoint() -> None:
    with pages_of(cloud(*five(), page_size=2)) as pages:
        assert pages.rows("eastus") == five()


def test_a_page_may_have_any_length() -> None:
    for page_size in (1, 3, 100, 1000):
        with pages_of(cloud(*five(), page_size=page_size)) as pages:
            assert len(pages.rows("eastus")) == 5


@pytest.mark.parametrize("last", [None, ""])
def test_a_link_that_is_null_or_empty_ends_the_walk(last: str | None) -> None:
    server = cloud(*five(), page_size=2, last_link=last)
    with pages_of(server) as pages:
        assert len(pages.rows("eastus")) == 5
    assert len(server.requests) == 3


def test_a_missing_link_ends_the_walk() -> None:
    with pages_of(serving(lambda _: {"Items": five()})) as pages:
        assert len(pages.rows("eastus")) == 5


def test_an_empty_page_ends_the_walk_although_it_has_a_link() -> None:
    link = f"https://prices.azure.com:443{RETAIL_PATH}?$skip="

    def answer(request: Request) -> Any:
        skip = int(request.parameter("$skip", "0"))
        return {"Items": five() if skip == 0 else [], "NextPageLink": f"{link}{skip + 1000}"}

    server = serving(answer)
    with pages_of(server) as pages:
        assert len(pages.rows("eastus")) == 5
    assert len(server.requests) == 2


def test_pages_that_lead_back_to_one_another_are_a_failure_and_no_endless_walk() -> None:
    link = f"https://prices.azure.com:443{RETAIL_PATH}?$skip=1000"
    with (
        pages_of(serving(lambda _: {"Items": five(), "NextPageLink": link})) as pages,
        pytest.raises(ProviderFailure, match="lead back to one another"),
    ):
        pages.rows("eastus")


def test_a_relative_link_and_an_endpoint_below_a_path_are_followed() -> None:
    def answer(request: Request) -> Any:
        assert request.path == f"/azure{RETAIL_PATH}"
        first = "$skip" not in request.query
        return {"Items": five()[:1] if first else five()[1:], "NextPageLink": "?$skip=1" if first else None}

    with pages_of(serving(answer), base="/azure/") as pages:
        assert pages.rows("eastus") == five()


def test_the_endpoint_may_be_given_with_the_path_of_the_call() -> None:
    with pages_of(cloud(*five()), base=RETAIL_PATH) as pages:
        assert len(pages.rows("eastus")) == 5


def test_the_filter_asks_by_price_type_with_values_in_the_case_of_the_list() -> None:
    server = cloud(*five())
    with pages_of(server) as pages:
        pages.regions()
        pages.rows("eastus")
    first, second = (request.parameter("$filter") for request in server.requests)
    assert "serviceName eq 'Virtual Machines'" in first
    assert "priceType eq 'Consumption'" in first
    assert "armRegionName eq 'eastus'" in second
    assert {request.parameter("api-version") for request in server.requests} == {"2023-01-01-preview"}
    assert {request.parameter("currencyCode") for request in server.requests} == {"'USD'"}


def test_each_region_is_walked_by_itself_and_only_for_sizes_that_may_be_accelerated() -> None:
    others = [price_row("Standard_D2as_v5", "eastus", 0.1) for _ in range(50)]
    server = cloud(*five(), *others, price_row(T4, "westus", 0.7))
    with pages_of(server) as pages:
        assert pages.regions() == {"eastus", "westus"}
        assert len(pages.rows("eastus")) == 5
        assert len(pages.rows("westus")) == 1
    assert len(server.requests) == 3


def test_a_server_that_ignores_filters_is_walked_once_for_all_regions() -> None:
    yearly = price_row(T4, "westus", 900.0, type="Reservation", reservationTerm="1 Year")
    server = cloud(*five(), price_row(T4, "westus", 0.7), yearly, filters="ignored")
    with pages_of(server) as pages:
        pages.regions()
        assert len(pages.rows("eastus")) == 5
        assert pages.rows("westus") == [price_row(T4, "westus", 0.7), yearly]
    assert len(server.requests) == 1


def test_a_server_whose_rows_cannot_tell_that_it_ignores_filters_is_found_out_at_the_first_region() -> None:
    server = cloud(*five(), price_row(T4, "westus", 0.7), filters="ignored")
    with pages_of(server) as pages:
        pages.regions()
        assert len(pages.rows("eastus")) == 5
        assert pages.rows("westus") == [price_row(T4, "westus", 0.7)]
        assert pages.rows("norwayeast") == []
    assert len(server.requests) == 2


def test_a_server_that_refuses_contains_is_asked_more_plainly() -> None:
    yearly = price_row(T4, "westus", 900.0, type="Reservation", reservationTerm="1 Year")
    with pages_of(cloud(*five(), yearly, filters="refused")) as pages:
        assert pages.regions() == {"eastus", "westus"}
        assert pages.rows("westus") == [yearly]


def test_a_region_is_asked_for_in_every_spelling_of_the_list() -> None:
    with pages_of(cloud(price_row(T4, "WestUS3", 0.7), price_row(H100, "westus3", 98.0))) as pages:
        assert pages.regions() == {"westus3"}
        assert len(pages.rows("westus3")) == 2


def test_a_list_without_any_accelerated_machine_is_a_failure() -> None:
    with (
        pages_of(cloud(price_row("Standard_D2as_v5", "eastus", 0.1))) as pages,
        pytest.raises(ProviderFailure, match="the price list came back empty; earlier prices stay"),
    ):
        pages.regions()


def test_a_region_that_is_in_the_list_and_comes_back_empty_is_a_failure() -> None:
    server = cloud(*five())
    empty = answering(200, b'{"Items": [], "NextPageLink": null}')
    server.break_with(empty, when=lambda request: "armRegionName" in request.parameter("$filter"))
    with pages_of(server) as pages:
        pages.regions()
        with pytest.raises(ProviderFailure, match="eastus: has prices in the list of all regions"):
            pages.rows("eastus")


def test_a_429_is_tried_again_after_the_seconds_that_it_asks_for() -> None:
    body = b'{"error": {"code": "429", "message": "Too many requests. Please retry."}}'
    server = cloud(*five())
    server.break_with(answering(429, body, Retry_After="0"), times=2)
    with pages_of(server) as pages:
        assert len(pages.rows("eastus")) == 5
    assert len(server.requests) == 3


def test_no_calls_left_holds_the_next_call_back_for_a_bounded_time() -> None:
    slept: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    server = cloud(*five(), page_size=1)

    def none_left(reply: Reply) -> Reply:
        return Reply(body=reply.body, headers={CALLS_LEFT: "0"})

    server.break_with(none_left)
    allowance = Allowance(sleep=sleep, now=lambda: clock[0])
    with pages_of(server, allowance=allowance) as pages:
        assert len(pages.rows("eastus")) == 5
        for _ in range(5):
            pages.rows("eastus")
    assert slept[:4] == [Allowance.seconds_without_calls] * 4
    assert sum(slept) == Allowance.most_seconds


def test_calls_left_hold_nothing_back_and_retry_after_says_how_long_to_wait() -> None:
    slept: list[float] = []
    allowance = Allowance(sleep=slept.append, now=lambda: 0.0)
    allowance.heed(httpx.Headers({CALLS_LEFT: "12"}))
    allowance.wait()
    assert slept == []
    allowance.heed(httpx.Headers({CALLS_LEFT: "0", "Retry-After": "3"}))
    allowance.wait()
    assert slept == [3.0]


@pytest.mark.parametrize("broken", [truncated, reset_after(0.5), answering(503, b"")])
def test_an_answer_that_breaks_off_is_asked_for_again(broken: Callable[[Reply], Reply]) -> None:
    server = cloud(*five())
    server.break_with(broken, times=1)
    with pages_of(server) as pages:
        assert len(pages.rows("eastus")) == 5


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (html, "answered with an HTML page"),
        (answering(403, b""), "HTTP 403"),
        (answering(200, b'{"Items": {}}'), "answered without Items"),
        (answering(200, b"[]"), "answered without Items"),
        (answering(404, b""), "not found"),
        (answering(429, b"", Retry_After="1200"), "asks to wait 1200 s"),
    ],
)
def test_an_answer_that_is_no_price_list_is_one_clear_line(broken: Callable[[Reply], Reply], expected: str) -> None:
    server = cloud(*five())
    server.break_with(broken)
    with pages_of(server) as pages, pytest.raises(ProviderFailure, match=expected):
        pages.rows("eastus")


def test_items_that_are_no_rows_are_passed_over() -> None:
    with pages_of(serving(lambda _: {"Items": [None, 5, "x", *five()], "Count": 9})) as pages:
        assert len(pages.rows("eastus")) == 5


def test_the_password_of_an_endpoint_is_in_no_message() -> None:
    server = cloud(*five())
    server.break_with(answering(403, b""))
    with server.running(), web_client() as client:
        pages = RetailPages(client, server.url.replace("//", "//me:secret-word@"), paced=False)
        with pytest.raises(ProviderFailure) as failure:
            pages.regions()
    assert "secret-word" not in str(failure.value)
