"""Lambda over a real socket: every field, stock, and every failure of its API."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_endpoints import RestAccount, Sources
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.contract import Rows
from gpuplan.providers.price_lists.field_reading import accelerator_names
from gpuplan.providers.refresh.refresh_run import CurrentRows, Refreshed, refresh
from tests.clouds.lambda_cloud import KEY, Lambda, entry
from tests.clouds.server import CloudServer, Reply, answering, html, truncated

READ_AT = datetime(2026, 11, 27, 3, tzinfo=UTC)
LATER = datetime(2026, 11, 28, 3, tzinfo=UTC)


@pytest.fixture
def cloud() -> Lambda:
    return Lambda()


@pytest.fixture
def server(cloud: Lambda) -> Iterator[CloudServer]:
    with cloud.server().running() as running:
        yield running


def sources(server: CloudServer, key: str | None = KEY) -> Sources:
    account = RestAccount(provider="lambda", endpoint=server.url, key_variable="LAMBDA_API_KEY", key=key)
    return Sources(rest=(account,), paced=False)


def read(server: CloudServer, key: str | None = KEY) -> dict[str, Rows]:
    provider = made("lambda", sources(server, key), READ_AT)
    return {region: provider.fetch(region) for region in provider.regions()}


def refreshed(server: CloudServer, before: Refreshed | None = None, at: datetime = READ_AT) -> Refreshed:
    snapshot = embedded_snapshot() if before is None else before.snapshot
    read_at = frozenset() if before is None else frozenset({READ_AT})
    current = CurrentRows(snapshot=snapshot, embedded=embedded_snapshot(), read_at=read_at)
    return refresh({"lambda": lambda: made("lambda", sources(server), at)}, current, at=at)


def reasons(cloud: Lambda, server: CloudServer, name: str, row: Any) -> list[str]:
    """Why an entry is quarantined, beside the usual ones, which are read all the same."""
    cloud.types = cloud.types | {name: row}
    rows = read(server)
    assert "gpu_1x_a10" in {offer.instance_type for offer in rows["us-west-1"].offers}
    assert name not in {offer.instance_type for region_rows in rows.values() for offer in region_rows.offers}
    return [aside.reason for aside in rows[UNKNOWN_REGION].quarantined if aside.what == name]


def test_every_field_of_a_machine_in_stock_arrives(server: CloudServer) -> None:
    rows = read(server)["us-west-1"]
    (offer,), (machine,) = rows.offers, rows.instance_types
    assert (offer.region, offer.price_kind, offer.usd_micros_per_hour) == ("us-west-1", "on_demand", 1_290_000)
    assert offer.available
    assert offer.observed_at == READ_AT
    assert offer.source.endswith("/instance-types")
    assert (machine.accelerator, machine.devices, machine.vcpus, machine.ram_gib) == ("A10", 1, 30, 200)
    assert machine.local_disk_gb == pytest.approx(1400 * 1.073741824)


def test_a_machine_is_sold_only_where_it_has_capacity_and_never_in_every_region(server: CloudServer) -> None:
    rows = read(server)
    assert {region for region, region_rows in rows.items() if region_rows.offers} == {"us-west-1", UNKNOWN_REGION}


def test_a_sold_out_machine_keeps_its_price_and_is_not_available(server: CloudServer) -> None:
    rows = read(server)[UNKNOWN_REGION]
    prices = {offer.instance_type: (offer.usd_micros_per_hour, offer.available) for offer in rows.offers}
    assert prices == {"gpu_1x_a10": (1_290_000, False), "gpu_8x_h100_sxm5": (31_920_000, False)}
    assert rows.provider_notes == ("1 of 2 machines are sold out everywhere",)


def test_a_machine_without_accelerators_is_left_out(server: CloudServer) -> None:
    assert all("cpu" not in offer.instance_type for rows in read(server).values() for offer in rows.offers)


def test_the_list_is_read_once_whatever_the_number_of_regions(server: CloudServer) -> None:
    read(server)
    assert [request.path for request in server.requests] == ["/instance-types", "/regions"]


def test_a_new_region_with_capacity_is_read_although_the_list_of_regions_lacks_it(
    cloud: Lambda, server: CloudServer
) -> None:
    cloud.types = {"gpu_1x_a10": entry("gpu_1x_a10", regions=("mars-1",))}
    assert [offer.region for offer in read(server)["mars-1"].offers] == ["mars-1"]


def test_a_new_machine_gets_the_plain_network(cloud: Lambda, server: CloudServer) -> None:
    cloud.types = {"gpu_16x_a10": entry("gpu_16x_a10", 2000, 16)}
    (machine,) = read(server)["us-west-1"].instance_types
    assert (machine.fabric, machine.network_gbps, machine.devices) == ("plain", 10.0, 16)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (entry("new", 0), "a price of zero means unknown"),
        (entry("new", -5), "not a plausible price"),
        (entry("new", 1.29), "price_cents_per_hour is 1.29, not a whole number"),
        (entry("new", None), "price_cents_per_hour is missing, not a whole number"),
        (entry("new", "129 EUR"), "price_cents_per_hour is '129 EUR', not a whole number"),
        (entry("new", True), "price_cents_per_hour is True, not a whole number"),
        (entry("new", gpu="Z9000 (1 TB)"), "unknown accelerator 'Z9000 (1 TB)'"),
        (entry("new", gpus=400), "accelerator_count 400 is outside"),
        (entry("new", gpus=None), "gpus is missing, not a whole number"),
        (entry("new", vcpus="many"), "vcpus is 'many', not a whole number"),
        (entry("new", memory_gib=0), "ram_gib 0.0 is not a positive size"),
        (entry("other"), "name is 'other', not its key 'new'"),
        ({"instance_type": None}, "instance_type is missing, not an object"),
        (entry("new") | {"regions_with_capacity_available": None}, "regions_with_capacity_available is missing"),
    ],
)
def test_an_entry_that_cannot_be_true_is_quarantined_and_the_others_are_read(
    cloud: Lambda, server: CloudServer, row: Any, reason: str
) -> None:
    (why,) = reasons(cloud, server, "new", row)
    assert reason in why


def test_a_machine_whose_count_contradicts_the_known_one_is_quarantined(cloud: Lambda, server: CloudServer) -> None:
    (why,) = reasons(cloud, server, "gpu_8x_a100", entry("gpu_8x_a100", 1592, 4, "A100 (40 GB SXM4)"))
    assert "listed with 4 x A100-40GB-SXM, but gpuplan knows it with 8 x A100-40GB-SXM" in why


@pytest.mark.parametrize(
    ("types", "message"),
    [({}, "no machine with accelerators"), ([], "data is \\[\\], not an object"), (None, "data is missing")],
)
def test_a_list_that_is_empty_or_of_another_shape_fails_by_name(
    cloud: Lambda, server: CloudServer, types: Any, message: str
) -> None:
    cloud.types = types
    with pytest.raises(ProviderFailure, match=message):
        read(server)


@pytest.mark.parametrize("key", [None, "a-key-of-another-provider"])
def test_a_missing_or_wrong_key_names_its_variable_and_never_the_key(server: CloudServer, key: str | None) -> None:
    with pytest.raises(ProviderFailure, match="LAMBDA_API_KEY") as caught:
        read(server, key)
    assert "another-provider" not in str(caught.value)


def test_a_key_without_rights_names_its_variable(server: CloudServer) -> None:
    server.break_with(answering(403, b'{"error":{"code":"global/account-inactive"}}'))
    with pytest.raises(ProviderFailure, match=r"403.*LAMBDA_API_KEY"):
        read(server)


@pytest.mark.parametrize("reply", [answering(429, b"slow down", Retry_After="0"), answering(429, b""), truncated])
def test_throttling_and_broken_answers_are_asked_for_again(server: CloudServer, reply: Any) -> None:
    server.break_with(reply, times=2)
    assert read(server)["us-west-1"].offers


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answering(500, b"oops"), "HTTP 500 after"),
        (answering(429, b"slow", Retry_After="3600"), "asks to wait 3600 s"),
        (html, "an HTML page, not JSON"),
        (answering(200, b"[1, 2]"), "JSON that is no object"),
    ],
)
def test_a_failure_that_persists_is_one_line(server: CloudServer, reply: Any, message: str) -> None:
    server.break_with(reply)
    with pytest.raises(ProviderFailure, match=message) as caught:
        read(server)
    assert "\n" not in str(caught.value)


def test_a_failed_refresh_keeps_the_last_prices_and_marks_them_stale(server: CloudServer) -> None:
    server.break_with(lambda _: Reply(status=500, body=b""))
    after = refreshed(server)
    rows = [offer for offer in after.snapshot.offers if offer.provider == "lambda"]
    assert after.outcome == "failed"
    assert len(rows) == 23
    assert {offer.stale_since for offer in rows} == {READ_AT}


def test_a_machine_that_sells_out_is_no_longer_available_where_it_was(cloud: Lambda, server: CloudServer) -> None:
    first = refreshed(server)
    cloud.types = cloud.types | {"gpu_1x_a10": entry("gpu_1x_a10", regions=())}
    second = refreshed(server, first, LATER)
    a10 = {o.region: o for o in second.snapshot.offers if (o.provider, o.instance_type) == ("lambda", "gpu_1x_a10")}
    assert second.outcome == "whole"
    assert not a10["us-west-1"].available
    assert not a10[UNKNOWN_REGION].available


def test_a_price_that_leaps_tenfold_is_held_back(cloud: Lambda, server: CloudServer) -> None:
    first = refreshed(server)
    cloud.types = cloud.types | {"gpu_1x_a10": entry("gpu_1x_a10", 129_00)}
    second = refreshed(server, first, LATER)
    prices = {o.usd_micros_per_hour for o in second.snapshot.offers if o.instance_type == "gpu_1x_a10"}
    assert prices == {1_290_000}


def test_the_prices_of_other_providers_do_not_change(server: CloudServer) -> None:
    def others(offers: Any) -> set[Any]:
        return {offer for offer in offers if offer.provider != "lambda"}

    assert others(refreshed(server).snapshot.offers) == others(embedded_snapshot().offers)


def test_every_card_that_lambda_describes_is_in_the_table() -> None:
    table = accelerator_names("gpuplan.providers.lambda_")
    assert {offer.accelerator for offer in embedded_snapshot().instance_types if offer.provider == "lambda"} <= set(
        table.values()
    )


def test_an_endpoint_that_is_no_address_is_refused_by_its_variable() -> None:
    account = RestAccount(provider="lambda", endpoint="lambda", key_variable="LAMBDA_API_KEY", key=KEY)
    with pytest.raises(UnusableInput, match="GPUPLAN_LAMBDA_ENDPOINT"):
        made("lambda", Sources(rest=(account,)), READ_AT)


def test_a_region_that_there_is_not_is_refused(server: CloudServer) -> None:
    with pytest.raises(UnusableInput, match="lambda has no region 'mars'"):
        made("lambda", sources(server), READ_AT).fetch("mars")
