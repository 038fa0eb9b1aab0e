"""What goes wrong between gpuplan and Google, with the bodies that Google sends: bounded, told, and the rest stays whole."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.contract import Rows
from gpuplan.providers.gcp.api_calls import Patience
from tests.clouds.gcp import CLOUD_TPU, COMPUTE_ENGINE, GcpCatalogue, GcpServer, machine_item
from tests.clouds.gcp_skus import sku
from tests.clouds.server import Reply, Request, answering, html, reset_after, truncated
from tests.providers.gcp.reads import (
    HURRIED,
    IN_VAIN,
    REGION,
    ZONE,
    asks_machines,
    asks_skus,
    asks_tpus,
    is_unread,
    price,
    provider_of,
    serving,
    small_catalogue,
)

RATE_LIMIT = {
    "error": {
        "code": 403,
        "message": "Quota exceeded for quota metric 'Global reads' and limit 'Global reads per minute'.",
        "errors": [{"message": "Quota exceeded", "domain": "usageLimits", "reason": "rateLimitExceeded"}],
        "status": "RESOURCE_EXHAUSTED",
    }
}
EXHAUSTED = {
    "error": {
        "code": 429,
        "message": "Quota exceeded for quota metric 'Requests' of service 'cloudbilling.googleapis.com'.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}],
    }
}
FORBIDDEN = {
    "error": {
        "code": 403,
        "message": "Required 'compute.machineTypes.list' permission for 'projects/project'",
        "errors": [{"message": "Required permission", "domain": "global", "reason": "forbidden"}],
    }
}
EXPIRED = {"error": {"code": 400, "message": "Invalid value for field 'pageToken': the token has expired."}}


def body(error: object) -> bytes:
    return json.dumps(error).encode()


def asks_compute(request: Request) -> bool:
    return request.path.startswith("/compute/")


def read(server: GcpServer, region: str = REGION, *, patience: Patience = HURRIED) -> Rows:
    return provider_of(server, patience=patience).fetch(region)


def whole(rows: Rows) -> bool:
    return not rows.failures and price(rows, "g2-standard-4") == 652_000 and price(rows, "tpu-v5litepod-4") == 4_800_000


@pytest.mark.parametrize(
    ("when", "status", "error"),
    [
        (asks_compute, 403, RATE_LIMIT),
        (asks_skus, 429, EXHAUSTED),
        (asks_tpus, 429, EXHAUSTED),
        (asks_compute, 503, {}),
    ],
)
def test_throttled_calls_of_every_kind_are_tried_again(
    when: Callable[[Request], bool], status: int, error: object
) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(status, body(error)), when=when, times=3)
        assert whole(read(server))


def test_a_403_with_a_rate_limit_reason_is_tried_again_and_a_permission_one_is_not() -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(403, body(RATE_LIMIT)), when=asks_machines, times=2)
        assert whole(read(server))
        assert sum(map(asks_machines, server.requests)) == 3
    with serving(small_catalogue()) as server:
        server.break_with(answering(403, body(FORBIDDEN)), when=asks_machines)
        rows = read(server)
        assert sum(map(asks_machines, server.requests)) == 1
    assert "MachineTypes" in rows.failures[0]
    assert "compute.machineTypes.list" in rows.failures[0]


def test_a_missing_permission_for_one_call_leaves_the_rest_whole() -> None:
    made = small_catalogue()
    made.attachable[ZONE].append("nvidia-tesla-t4")
    with serving(made) as server:
        server.break_with(
            answering(403, body(FORBIDDEN)), when=lambda r: r.path.endswith("/aggregated/acceleratorTypes")
        )
        rows = read(server)
    assert price(rows, "g2-standard-4") == 652_000
    assert len(rows.failures) == 1
    assert "N1 machines stay as they were" in rows.failures[0]
    assert (is_unread(rows, "n1-standard-8+1xT4"), is_unread(rows, "g2-standard-4")) == (True, False)
    assert is_unread(rows, "tpu-v5litepod-4") is False


@pytest.mark.parametrize("when", [asks_skus, asks_machines, asks_tpus])
@pytest.mark.parametrize("change", [reset_after(0.5), truncated], ids=["reset", "truncated"])
def test_a_connection_reset_or_a_cut_off_body_is_asked_for_again(
    when: Callable[[Request], bool], change: Callable[[Reply], Reply]
) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(change, when=when, times=1)
        assert whole(read(server))


def test_a_reset_in_the_middle_of_the_pages_loses_nothing() -> None:
    with serving(small_catalogue(), most_per_page=3) as server:
        server.break_with(reset_after(0.3), when=lambda r: asks_skus(r) and "pageToken" in r.query, times=2)
        assert whole(read(server))


def test_an_expired_page_token_starts_the_list_again() -> None:
    with serving(small_catalogue(), most_per_page=3) as server:
        server.break_with(
            answering(400, body(EXPIRED)), when=lambda r: asks_skus(r) and "pageToken" in r.query, times=1
        )
        assert whole(read(server))
        assert [r.parameter("pageToken") for r in server.requests if asks_skus(r)] == ["", "after-3"] * 2


def test_a_page_token_that_expires_for_ever_ends() -> None:
    with serving(small_catalogue(), most_per_page=3) as server:
        server.break_with(answering(400, body(EXPIRED)), when=lambda r: asks_skus(r) and "pageToken" in r.query)
        with pytest.raises(ProviderFailure, match="expired"):
            read(server)


def test_a_server_may_give_one_thing_per_page() -> None:
    with serving(small_catalogue(), most_per_page=1) as server:
        assert whole(read(server))
        assert sum(map(asks_skus, server.requests)) == 4


def test_a_page_token_that_comes_twice_ends() -> None:
    def same_token(reply: Reply) -> Reply:
        return Reply(body=body({**json.loads(reply.body), "nextPageToken": "after-0"}))

    with serving(small_catalogue()) as server:
        server.break_with(same_token, when=asks_skus)
        with pytest.raises(ProviderFailure, match="'after-0' came twice"):
            read(server)


@pytest.mark.parametrize("services", [(COMPUTE_ENGINE,), (COMPUTE_ENGINE, CLOUD_TPU)])
def test_an_empty_sku_list_is_a_failure_and_never_an_empty_catalogue(services: tuple[str, ...]) -> None:
    made = small_catalogue()
    for service in services:
        made.skus[service].clear()
    with serving(made) as server, pytest.raises(ProviderFailure, match="the list is empty"):
        read(server)


def test_an_empty_sku_list_of_cloud_tpu_alone_is_one_failure() -> None:
    made = small_catalogue()
    made.skus[CLOUD_TPU].clear()
    with serving(made) as server:
        rows = read(server)
    assert len(rows.failures) == 1
    assert "TPU v2 to v4 stay as they were" in rows.failures[0]
    assert (is_unread(rows, "tpu-v3-8"), is_unread(rows, "g2-standard-4")) == (True, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_for_ever_end_in_one_line_that_names_the_call(status: int) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(status, b"{}"), when=asks_skus)
        # A second, so that a busy machine has time for a second attempt.
        gcp = provider_of(server, patience=replace(IN_VAIN, seconds=1.0, longest_wait_seconds=0.1))
        assert gcp.regions() == (REGION,)
        for _ in range(2):
            with pytest.raises(
                ProviderFailure, match=r"Cloud Billing Catalog, SKUs of services/6F81-5844-456A"
            ) as caught:
                gcp.fetch(REGION)
        tried = sum(map(asks_skus, server.requests))
    assert str(status) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert tried > 2


def test_compute_engine_down_for_ever_has_no_regions() -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(503, b"{}"), when=asks_compute)
        with pytest.raises(ProviderFailure, match=r"Regions\.list"):
            provider_of(server, patience=IN_VAIN).regions()


def test_no_region_at_all_is_a_failure() -> None:
    with serving(GcpCatalogue()) as server, pytest.raises(ProviderFailure, match="GPUPLAN_GCP_PROJECT"):
        provider_of(server).regions()


@pytest.mark.parametrize("when", [asks_compute, asks_skus])
def test_an_html_page_is_named_as_such_and_not_asked_for_long(when: Callable[[Request], bool]) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(html, when=when)
        with pytest.raises(ProviderFailure, match="check the endpoint and any proxy"):
            read(server)
        assert sum(map(when, server.requests)) <= 12


@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize(
    "odd", [b"[]", b"null", b'"text"', b"\xff\xfe\x00", b"", b'[{"error": {"code": 503}}]', b'{"error": "x"}']
)
def test_answers_of_another_shape_are_one_line_and_never_a_crash(status: int, odd: bytes) -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(status, odd), when=asks_machines)
        rows = read(server, patience=IN_VAIN)
    assert price(rows, "tpu-v5litepod-4") == 4_800_000
    assert len(rows.failures) == 1
    assert "MachineTypes.aggregated_list" in rows.failures[0]
    assert is_unread(rows, "g2-standard-4")
    assert is_unread(rows, "tpu-v5litepod-4"), "hosts of slices stand in the same list"
    assert not is_unread(rows, "n1-standard-8+1xT4")


def test_a_field_that_changed_its_type_fails_that_list_alone() -> None:
    def retyped(reply: Reply) -> Reply:
        return Reply(body=reply.body.replace(b'"guestCpus": 4', b'"guestCpus": {"count": 4}'))

    with serving(small_catalogue()) as server:
        server.break_with(retyped, when=asks_machines)
        rows = read(server)
    assert "the answer does not have the form that the API documents" in rows.failures[0]
    assert price(rows, "tpu-v5litepod-4") == 4_800_000


def test_a_zone_that_does_not_answer_in_an_aggregated_list_is_told() -> None:
    def unreachable(reply: Reply) -> Reply:
        page = json.loads(reply.body)
        page["items"]["zones/us-east1-b"] = {"warning": {"code": "UNREACHABLE", "message": "zone is down"}}
        return Reply(body=body(page))

    made = small_catalogue()
    made.add_machine("us-east1-b", machine_item("g2-standard-4", 4, 16, "nvidia-l4", 1))
    with serving(made) as server:
        server.break_with(unreachable, when=asks_machines)
        gcp = provider_of(server)
        east, central = gcp.fetch("us-east1"), gcp.fetch(REGION)
    assert "us-east1-b" in east.failures[0]
    assert "zone is down" in east.failures[0]
    assert is_unread(east, "g2-standard-4")
    assert not is_unread(central, "g2-standard-4")
    assert whole(central)


def test_a_list_that_names_no_zone_is_a_failure_and_never_an_empty_cloud() -> None:
    with serving(small_catalogue()) as server:
        server.break_with(answering(200, b"{}"), when=asks_machines)
        rows = read(server)
    assert "the list names no zone" in rows.failures[0]
    assert is_unread(rows, "g2-standard-4")


def test_scopes_without_results_are_no_errors() -> None:
    made = small_catalogue()
    made.add_zone("us-east1-b")
    with serving(made) as server:
        rows = read(server, "us-east1")
    assert (rows.offers, rows.failures, rows.notes) == ((), (), ())
    assert rows.whole_kinds


def test_a_server_that_ignores_page_sizes_and_adds_unknown_fields_is_read() -> None:
    def odd(reply: Reply) -> Reply:
        return Reply(body=body({**json.loads(reply.body), "somethingNew": {"a": [1]}}))

    made = small_catalogue()
    made.skus[COMPUTE_ENGINE][0]["geoTaxonomy"]["type"] = "CONTINENTAL"
    with serving(made) as server:
        server.break_with(odd)
        assert whole(read(server))


def test_many_threads_share_one_reading() -> None:
    made = small_catalogue()
    made.add_machine("us-east1-b", machine_item("g2-standard-4", 4, 16, "nvidia-l4", 1))
    with serving(made) as server:
        gcp = provider_of(server)
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(gcp.fetch, [REGION, "us-east1"] * 8))
        assert sum(map(asks_skus, server.requests)) == 1
    assert all(row == rows[0] for row in rows[::2])


def test_prices_set_aside_are_told_in_a_region_that_they_concern() -> None:
    made = small_catalogue()
    made.add_zone("asia-east1-a")
    made.skus[COMPUTE_ENGINE].append(sku("Nvidia L4 GPU running in Iowa", 700_000_000, [REGION]))
    with serving(made) as server:
        gcp = provider_of(server)
        current, existing = gcp.fetch(REGION), gcp.fetch("asia-east1")
    assert len(current.quarantined) == 1
    assert existing.quarantined == ()
    assert price(current, "g2-standard-4") == 852_000, "the dearer of two prices of one day"


def test_skus_of_machines_without_accelerators_fill_no_quarantine() -> None:
    """Two prices of one day for a core of N2 concern nobody; for one of a new family with GPUs they do."""
    made = small_catalogue()
    made.add_machine(ZONE, machine_item("g9-standard-8", 8, 32, "nvidia-l40s-48gb", 1))
    for name in ("N2", "C3", "E2", "M1", "G9"):
        made.skus[COMPUTE_ENGINE] += [
            sku(f"{name} Instance Core running in Iowa", nanos, [REGION], group="CPU") for nanos in (30_000, 40_000)
        ]
    with serving(made) as server:
        rows = read(server)
    assert [item.what.split()[0] for item in rows.quarantined] == ["G9"]
