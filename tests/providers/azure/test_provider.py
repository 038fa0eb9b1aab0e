"""Azure as a whole, over sockets and through the real SDK: what is served comes back, and what breaks is told."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.regions import regions as known_regions
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.azure import NO_SUBSCRIPTION, provider
from gpuplan.providers.azure.retail import KINDS
from gpuplan.providers.cloud_endpoints import Sources
from gpuplan.providers.contract import Rows
from tests.clouds.azure import (
    SUBSCRIPTION,
    azure_cloud,
    azure_machines,
    azure_offers,
    price_row,
    restriction,
    sku,
)
from tests.clouds.server import CloudServer, Reply, Request, answering, html, reset_after, truncated

NIGHT = datetime(2026, 11, 21, 3, tzinfo=UTC)
T4 = "Standard_NC4as_T4_v3"
NEW = "Standard_ND96isrx_H200_v5"
ARM_429 = json.dumps(
    {"error": {"code": "SubscriptionRequestsThrottled", "message": "Number of 'read' requests exceeded."}}
).encode()
COMPUTE_429 = json.dumps(
    {
        "code": "OperationNotAllowed",
        "message": "The server rejected the request because too many requests have been received.",
        "details": [
            {"code": "TooManyRequests", "target": "HighCostGet30Min", "message": '{"allowedRequestCount":800}'}
        ],
    }
).encode()


def sources(server: CloudServer, *, subscription: str | None = SUBSCRIPTION) -> Sources:
    return Sources(
        azure_retail_endpoint=server.url,
        azure_arm_endpoint=server.url,
        azure_subscription_id=subscription,
        anonymous=True,
        paced=False,
    )


def refreshed(server: CloudServer, *regions: str, subscription: str | None = SUBSCRIPTION) -> dict[str, Rows]:
    """The rows of some regions, by default of the two that `small` serves."""
    with server.running():
        azure = provider(sources(server, subscription=subscription), read_at=NIGHT)
        wanted = regions or ("eastus", "westeurope")
        with ThreadPoolExecutor(azure.parallel) as threads:
            return dict(zip(wanted, threads.map(azure.fetch, wanted), strict=True))


def refreshed_whole(server: CloudServer, *, subscription: str | None = SUBSCRIPTION) -> dict[str, Rows]:
    with server.running():
        azure = provider(sources(server, subscription=subscription), read_at=NIGHT)
        regions = azure.regions()
        with ThreadPoolExecutor(azure.parallel) as threads:
            return dict(zip(regions, threads.map(azure.fetch, regions), strict=True))


def some_offers(*names: str, regions: tuple[str, ...] = ("eastus", "westeurope")) -> list[Offer]:
    return [o for o in azure_offers() if o.instance_type in names and o.region in regions]


def small(**settings: Any) -> CloudServer:
    return azure_cloud(offers=some_offers(T4, "Standard_ND96isr_H100_v5"), **settings)


def failures(rows: dict[str, Rows]) -> list[str]:
    return list(dict.fromkeys(line for row in rows.values() for line in (*row.failures, *row.provider_failures)))


def notes(rows: dict[str, Rows]) -> list[str]:
    return list(dict.fromkeys(line for row in rows.values() for line in (*row.notes, *row.provider_notes)))


def is_arm(request: Request) -> bool:
    return request.path.startswith("/subscriptions/")


def as_read(offers: list[Offer]) -> set[tuple[Any, ...]]:
    return {(*o.key, o.usd_micros_per_hour, o.interruptions_per_hour, o.modelled, o.available) for o in offers}


#: What filters and pages do, a few regions show as well as seventy.
FEW_REGIONS = ("eastus", "southcentralus", "uksouth", "westeurope")
IN_FEW_REGIONS = tuple(offer for offer in azure_offers() if offer.region in FEW_REGIONS)


@pytest.mark.parametrize("subscription", [SUBSCRIPTION, None])
@pytest.mark.parametrize(
    ("served", "settings"),
    [
        (azure_offers(), {}),
        (IN_FEW_REGIONS, {"filters": "ignored", "page_size": 137}),
        (IN_FEW_REGIONS, {"filters": "refused"}),
    ],
    ids=["whole", "ignored", "refused"],
)
def test_a_refresh_gives_the_catalogue_back_row_for_row(
    served: tuple[Offer, ...], settings: dict[str, Any], subscription: str | None
) -> None:
    rows = refreshed_whole(azure_cloud(offers=served, **settings), subscription=subscription)
    offers = [offer for row in rows.values() for offer in row.offers]
    assert len(offers) == len(served)
    assert as_read(offers) == as_read(list(served))
    priced = {offer.instance_type for offer in served}
    machines = {machine for row in rows.values() for machine in row.instance_types}
    assert machines == {machine for machine in azure_machines() if machine.name in priced}
    assert {offer.observed_at for offer in offers} == {NIGHT}
    assert not failures(rows)
    assert not [item for region in rows.values() for item in region.quarantined]
    assert {region.whole_kinds for region in rows.values()} == {KINDS}
    assert notes(rows) == ([] if subscription else [NO_SUBSCRIPTION])


def test_the_embedded_prices_alone_come_back_too() -> None:
    offers = [o for o in embedded_snapshot().offers if o.provider == "azure"]
    rows = refreshed_whole(azure_cloud(offers=offers))
    assert as_read([o for row in rows.values() for o in row.offers]) == as_read(offers)


def test_without_a_subscription_nothing_failed_and_a_note_says_where_hardware_comes_from() -> None:
    server = small()
    rows = refreshed(server, subscription=None)
    assert (failures(rows), notes(rows)) == ([], [NO_SUBSCRIPTION])
    assert not any(is_arm(request) for request in server.requests)


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (answering(429, ARM_429, Retry_After="1200"), "HTTP 429, SubscriptionRequestsThrottled: Number of 'read'"),
        (answering(429, COMPUTE_429, Retry_After="1200"), "HTTP 429, OperationNotAllowed: The server rejected"),
        (answering(401, b'{"error":{"code":"InvalidAuthenticationToken","message":"expired"}}'), "HTTP 401, Invalid"),
        (answering(403, b'{"error":{"code":"AuthorizationFailed","message":"no Reader"}}'), "HTTP 403, Authorization"),
        (answering(404, b'{"error":{"code":"SubscriptionNotFound","message":"none"}}'), "HTTP 404, SubscriptionNot"),
        (html, "the answer is not whole JSON, check the endpoint and any proxy; hardware"),
        (truncated, "resource_skus.list of azure-mgmt-compute: "),
        (
            answering(200, b'{"value": [{"name": "Standard_NC6"}, {"na'),
            "not whole JSON, check the endpoint and any proxy;",
        ),
        (answering(200, b'{"value": []}'), "the list came back without any virtual machine"),
        (
            answering(200, b'{"value": [{"resourceType": "disks", "locations": ["eastus"]}]}'),
            "without any virtual machine",
        ),
        (answering(200, b"[1]"), "answered without a list in value"),
        (answering(200, b'{"value": {}}'), "answered without a list in value"),
        (answering(200, b'{"value": [{}], "nextLink": "/subscriptions/page"}'), "lead back to one another"),
    ],
)
def test_a_sku_list_that_fails_is_one_line_and_prices_go_on(broken: Callable[[Reply], Reply], expected: str) -> None:
    server = small()
    server.break_with(broken, when=is_arm)
    rows = refreshed(server)
    (line,) = failures(rows)
    assert expected in line
    assert line.endswith("hardware comes from gpuplan's own table, prices are live")
    offers = some_offers(T4, "Standard_ND96isr_H100_v5")
    assert as_read([o for row in rows.values() for o in row.offers]) == as_read(offers)


@pytest.mark.parametrize("body", [ARM_429, COMPUTE_429])
def test_a_sku_list_that_asks_to_wait_for_twenty_minutes_is_not_waited_for(body: bytes) -> None:
    server = small()
    server.break_with(answering(429, body, Retry_After="1200"), when=is_arm)
    refreshed(server)
    assert len([request for request in server.requests if is_arm(request)]) == 1


@pytest.mark.parametrize("body", [ARM_429, COMPUTE_429])
def test_a_throttled_sku_list_is_asked_for_again(body: bytes) -> None:
    server = small()
    server.break_with(answering(429, body, Retry_After="0"), when=is_arm, times=2)
    assert not failures(refreshed(server))


def test_a_reset_in_the_middle_of_the_sku_list_leaves_the_prices_whole() -> None:
    server = small()
    server.break_with(reset_after(0.5), when=is_arm)
    rows = refreshed(server)
    assert len(failures(rows)) == 1
    assert as_read([o for row in rows.values() for o in row.offers]) == as_read(
        some_offers(T4, "Standard_ND96isr_H100_v5")
    )


def test_a_sku_list_that_breaks_off_once_is_asked_for_again() -> None:
    server = small()
    server.break_with(reset_after(0.5), when=is_arm, times=1)
    assert not failures(refreshed(server))


def test_a_refresh_asks_for_the_sku_list_once_whatever_the_number_of_regions() -> None:
    server = small()
    refreshed(server, "eastus", "westeurope", "westus2", "uksouth")
    assert len([request for request in server.requests if is_arm(request)]) == 1


def test_the_sku_list_is_paged_by_the_link_of_the_server() -> None:
    server = small(sku_page_size=2)
    assert not failures(refreshed(server))
    asked = [request for request in server.requests if is_arm(request)]
    assert len(asked) == 4
    assert all(request.parameter("api-version") for request in asked)


def test_only_a_subscription_can_tell_what_is_in_a_new_size() -> None:
    new = sku(NEW, "EastUS", capabilities={"GPUs": "8", "vCPUs": "96"}, family="standardNDSH200v5Family")
    extra: dict[str, Any] = {"more_prices": [price_row(NEW, "eastus", 90.0)], "more_skus": [new]}
    reported = refreshed(small(**extra))["eastus"]
    assert (NEW, 90_000_000) in {(o.instance_type, o.usd_micros_per_hour) for o in reported.offers}
    assert {m.accelerator for m in reported.instance_types if m.name == NEW} == {"H200-141GB-SXM"}
    untold = refreshed(small(**extra), subscription=None)["eastus"]
    assert NEW not in {offer.instance_type for offer in untold.offers}
    assert untold.quarantined[0].what == f"eastus/{NEW} (1 prices)"
    assert untold.whole_kinds == KINDS


def test_what_only_the_sku_list_described_is_not_taken_for_vanished_when_it_fails() -> None:
    server = small(more_prices=[price_row(NEW, "eastus", 90.0)])
    server.break_with(answering(403, b"{}"), when=is_arm)
    rows = refreshed(server)
    assert rows["eastus"].whole_kinds == frozenset()
    assert rows["westeurope"].whole_kinds == KINDS


def test_an_accelerator_that_nobody_knows_is_quarantined_and_noted_once() -> None:
    odd = "Standard_NZ8s_v9"
    prices = [price_row(odd, region, 3.0) for region in ("eastus", "westeurope")]
    rows = refreshed(small(more_prices=prices, more_skus=[sku(odd, "eastus")]))
    assert [len(rows[region].quarantined) for region in ("eastus", "westeurope")] == [1, 1]
    (note,) = notes(rows)
    assert note.startswith(f"{odd}: unknown accelerator")


def test_a_size_that_the_subscription_may_not_use_stands_as_not_available() -> None:
    closed = sku(T4, "eastus", restrictions=[restriction("eastus")])
    rows = refreshed(azure_cloud(offers=some_offers(T4, regions=("westeurope",)), more_skus=[closed],
                                 more_prices=[price_row(T4, "eastus", 0.5)]))  # fmt: skip
    assert [offer.available for offer in rows["eastus"].offers] == [False]
    assert all(offer.available for offer in rows["westeurope"].offers)
    assert notes(rows) == [
        "eastus: 1 prices of sizes that this subscription may not use there (NotAvailableForSubscription)"
    ]


def test_zones_make_no_price_and_a_restriction_on_zones_leaves_an_offer_available() -> None:
    zonal = sku(T4, "eastus", restrictions=[restriction("eastus", kind="Zone")])
    rows = refreshed(azure_cloud(offers=(), more_skus=[zonal], more_prices=[price_row(T4, "eastus", 0.5)]))
    assert [(offer.zone, offer.available) for offer in rows["eastus"].offers] == [("", True)]


def test_spot_of_a_size_that_has_none_is_left_out_with_a_note() -> None:
    none = sku(T4, "eastus", capabilities={"LowPriorityCapable": "False"})
    spot = price_row(T4, "eastus", 0.1, skuName="NC4as T4 v3 Spot", meterName="NC4as T4 v3 Spot")
    rows = refreshed(azure_cloud(offers=(), more_skus=[none], more_prices=[price_row(T4, "eastus", 0.5), spot]))
    assert [offer.price_kind for offer in rows["eastus"].offers] == ["on_demand"]
    assert notes(rows) == [f"eastus: Spot prices of 1 sizes that have no Spot left out ({T4})"]


def test_a_promotion_and_an_fpga_of_both_lists_give_no_rows() -> None:
    names = ("Standard_NC6_Promo", "Standard_NP10s")
    rows = refreshed(
        small(
            neighbours=False,
            more_prices=[price_row(name, "eastus", 1.0) for name in names],
            more_skus=[sku(name, "eastus") for name in names],
        )
    )
    reported = {machine.name for machine in rows["eastus"].instance_types}
    assert reported == {T4, "Standard_ND96isr_H100_v5"}
    assert not rows["eastus"].quarantined


def test_a_size_without_a_price_gives_no_offer_and_no_machine() -> None:
    rows = refreshed(small(more_skus=[sku("Standard_NV6s_v2", "eastus")]))
    assert "Standard_NV6s_v2" not in {machine.name for machine in rows["eastus"].instance_types}


def test_regions_are_the_known_ones_and_those_of_both_lists_but_no_test_regions() -> None:
    extra: dict[str, Any] = {
        "more_prices": [price_row(T4, "atlantiscentral", 1.0)],
        "more_skus": [sku(T4, "LemuriaWest"), sku(T4, "eastus2euap"), sku(T4, "EastUSSTG")],
    }
    server = small(**extra)
    with server.running():
        regions = provider(sources(server), read_at=NIGHT).regions()
    known = {region for name, region in known_regions() if name == "azure"}
    assert set(regions) == known | {"atlantiscentral", "lemuriawest"}
    assert list(regions) == sorted(regions)


def test_a_new_region_is_kept_with_a_note() -> None:
    rows = refreshed(small(more_prices=[price_row(T4, "atlantiscentral", 1.0)]), "atlantiscentral")["atlantiscentral"]
    assert [offer.available for offer in rows.offers] == [True]
    assert rows.notes == ("atlantiscentral: a new region, whose location gpuplan does not know yet",)


def test_a_government_region_of_the_public_list_is_kept_and_an_unknown_one_stands_as_not_available() -> None:
    places = ("usgovvirginia", "usgovlemuria")
    rows = refreshed(small(more_prices=[price_row(T4, region, 1.0) for region in places]), *places)
    assert {offer.usd_micros_per_hour for offer in rows["usgovvirginia"].offers} == {1_000_000}
    assert [(o.usd_micros_per_hour, o.available) for o in rows["usgovlemuria"].offers] == [(1_000_000, False)]
    assert rows["usgovlemuria"].notes == (
        "usgovlemuria: a region of a cloud of its own; its offers stand as not available",
    )


def test_a_region_that_does_not_exist_is_unusable_input() -> None:
    server = small()
    with server.running():
        azure = provider(sources(server), read_at=NIGHT)
        with pytest.raises(UnusableInput, match="azure has no region 'us-east-1'; regions are named like eastus"):
            azure.fetch("us-east-1")


def test_a_dead_region_leaves_the_others_whole() -> None:
    server = small()
    dead = answering(403, b"")
    server.break_with(dead, when=lambda request: "'westeurope'" in request.parameter("$filter"))
    with server.running():
        azure = provider(sources(server), read_at=NIGHT)
        with pytest.raises(ProviderFailure, match="HTTP 403"):
            azure.fetch("westeurope")
        assert len(azure.fetch("eastus").offers) == 12


def test_a_price_list_that_does_not_answer_is_a_failure_of_the_provider() -> None:
    server = small()
    server.break_with(answering(403, b""))
    with server.running():
        azure = provider(sources(server), read_at=NIGHT)
        with pytest.raises(ProviderFailure, match="/api/retail/prices: HTTP 403"):
            azure.regions()


def test_an_implausible_price_is_quarantined() -> None:
    rows = refreshed(small(more_prices=[price_row("Standard_NC6s_v3", "eastus", 90_000.0)]))["eastus"]
    assert "Standard_NC6s_v3" not in {offer.instance_type for offer in rows.offers}
    assert "not a plausible price" in rows.quarantined[0].reason


def test_an_endpoint_that_is_no_address_is_named() -> None:
    for bad in ("prices", "ftp://prices.azure.com", "http://", "http://host:port"):
        for name, given in (
            ("GPUPLAN_AZURE_RETAIL_ENDPOINT", Sources(azure_retail_endpoint=bad)),
            ("GPUPLAN_AZURE_ARM_ENDPOINT", Sources(azure_arm_endpoint=bad)),
        ):
            with pytest.raises(UnusableInput, match=f"{name}: is not an http or https address"):
                provider(given, read_at=NIGHT)


def test_plain_http_with_real_credentials_is_refused_by_the_sdk_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TENANT_ID", "0" * 8 + "-0000" * 3 + "-" + "0" * 12), ("CLIENT_ID", "an-app")):
        monkeypatch.setenv(f"AZURE_{name}", value)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "never-shown-secret")
    server = small()
    with server.running():
        azure = provider(replace(sources(server), anonymous=False), read_at=NIGHT)
        rows = azure.fetch("eastus")
    (line,) = rows.provider_failures
    assert "credentials are not sent over plain http: give an https GPUPLAN_AZURE_ARM_ENDPOINT, or" in line
    assert "never-shown-secret" not in line
    assert not any(is_arm(request) for request in server.requests)
