"""RunPod over a real socket: both clouds, every size, stock, placeholders, and every failure of its API."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gpuplan.catalog.model.offer import Offer
from gpuplan.catalog.model.provider_names import provider_kind
from gpuplan.catalog.model.regions import UNKNOWN_REGION
from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_endpoints import RestAccount, Sources
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.contract import Rows
from gpuplan.providers.price_lists.field_reading import accelerator_names
from gpuplan.providers.refresh.refresh_run import CurrentRows, Refreshed, refresh
from tests.clouds.runpod import KEY, RunPod, gpu
from tests.clouds.server import CloudServer, answering, html, truncated

READ_AT = datetime(2026, 11, 27, 3, tzinfo=UTC)
LATER = datetime(2026, 11, 28, 3, tzinfo=UTC)
CARD = "NVIDIA GeForce RTX 4090"


@pytest.fixture
def cloud() -> RunPod:
    return RunPod()


@pytest.fixture
def server(cloud: RunPod) -> Iterator[CloudServer]:
    with cloud.server().running() as running:
        yield running


def sources(server: CloudServer, key: str | None = KEY) -> Sources:
    account = RestAccount(provider="runpod", endpoint=server.url, key_variable="RUNPOD_API_KEY", key=key)
    return Sources(rest=(account,), paced=False)


def read(server: CloudServer, key: str | None = KEY) -> dict[str, Rows]:
    provider = made("runpod", sources(server, key), READ_AT)
    return {region: provider.fetch(region) for region in provider.regions()}


def offers(rows: dict[str, Rows], region: str) -> dict[str, Offer]:
    return {offer.instance_type: offer for offer in rows[region].offers}


def refreshed(server: CloudServer, before: Refreshed | None = None, at: datetime = READ_AT) -> Refreshed:
    snapshot = embedded_snapshot() if before is None else before.snapshot
    read_at = frozenset() if before is None else frozenset({READ_AT})
    current = CurrentRows(snapshot=snapshot, embedded=embedded_snapshot(), read_at=read_at)
    return refresh({"runpod": lambda: made("runpod", sources(server), at)}, current, at=at)


def test_a_price_per_gpu_is_multiplied_for_every_size_of_a_machine(server: CloudServer) -> None:
    rows = offers(read(server), "EU-RO-1")
    secure = {name: offer.usd_micros_per_hour for name, offer in rows.items() if "community" not in name}
    assert secure == {f"{CARD} x{count}": count * 690_000 for count in (1, 2, 4, 8)}
    assert all(offer.available and offer.observed_at == READ_AT for offer in rows.values())


def test_the_community_cloud_is_a_marketplace_at_its_own_price(server: CloudServer) -> None:
    offer = offers(read(server), "EU-RO-1")[f"{CARD} x1 community"]
    assert (offer.price_kind, offer.usd_micros_per_hour) == ("on_demand", 340_000)
    assert provider_kind(offer.provider, offer.instance_type) == "marketplace"


def test_stock_is_that_of_the_size_asked_for(cloud: RunPod, server: CloudServer) -> None:
    cloud.stock_of_size = {"8": "NONE"}
    rows = read(server)
    assert f"{CARD} x8" not in offers(rows, "EU-RO-1")
    assert not offers(rows, UNKNOWN_REGION)[f"{CARD} x8"].available
    assert offers(rows, "EU-RO-1")[f"{CARD} x4"].available


def test_stock_without_a_data_centre_is_available_in_a_place_that_is_not_stated(
    cloud: RunPod, server: CloudServer
) -> None:
    cloud.gpus = [gpu(centers={})]
    assert offers(read(server), UNKNOWN_REGION)[f"{CARD} x1"].available


def test_a_gpu_is_offered_only_in_data_centres_that_have_it(cloud: RunPod, server: CloudServer) -> None:
    cloud.gpus = [gpu(centers={"EU-RO-1": "NONE", "US-KS-2": "LOW"})]
    rows = read(server)
    assert offers(rows, "EU-RO-1") == {}
    assert f"{CARD} x1" in offers(rows, "US-KS-2")


def test_a_machine_above_the_largest_size_is_not_offered(cloud: RunPod, server: CloudServer) -> None:
    cloud.gpus = [gpu(maxCount={"secure": 2, "community": 0})]
    assert set(offers(read(server), "EU-RO-1")) == {f"{CARD} x1", f"{CARD} x2"}


@pytest.mark.parametrize("price", [0, 0.5])
def test_the_price_of_a_market_that_is_not_offered_is_left_out(
    cloud: RunPod, server: CloudServer, price: float
) -> None:
    cloud.gpus = [gpu(community=price) | {"community": False}]
    rows = read(server)
    assert not any("community" in offer.instance_type for region_rows in rows.values() for offer in region_rows.offers)
    assert not any(region_rows.quarantined for region_rows in rows.values())


def test_the_type_unknown_is_left_out(cloud: RunPod, server: CloudServer) -> None:
    cloud.gpus = [gpu(), gpu("unknown", memory=0)]
    assert {offer.instance_type[: len(CARD)] for rows in read(server).values() for offer in rows.offers} == {CARD}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (gpu("NVIDIA A40", secure=0), "a price of zero means unknown"),
        (gpu("NVIDIA A40", secure=-0.4), "not a plausible price"),
        (gpu("NVIDIA A40", secure="0.40 EUR"), "secure is '0.40 EUR', not a number"),
        (gpu("NVIDIA A40", price=None), "price is missing, not an object"),
        (gpu("NVIDIA Z9000"), "unknown accelerator 'NVIDIA Z9000'"),
        (gpu("NVIDIA A40", stock="PLENTY"), "availability is 'PLENTY', not one of NONE, LOW, MEDIUM, HIGH"),
        (gpu("NVIDIA A40", centers={"EU-RO-1": "?"}), "availability is '?'"),
        (gpu("NVIDIA A40") | {"secure": "yes"}, "secure is 'yes', not true or false"),
        (gpu("NVIDIA A40", maxCount={"secure": "8", "community": 8}), "secure is '8', not a whole number"),
        (gpu("NVIDIA A40") | {"dataCenters": "EU-RO-1"}, "dataCenters is 'EU-RO-1', not a list"),
    ],
)
def test_an_entry_that_cannot_be_true_is_quarantined_and_the_others_are_read(
    cloud: RunPod, server: CloudServer, row: Any, reason: str
) -> None:
    cloud.gpus = [gpu(), row]
    rows = read(server)
    assert f"{CARD} x1" in offers(rows, "EU-RO-1")
    assert not any(
        f"{row['id']} x1" == offer.instance_type for region_rows in rows.values() for offer in region_rows.offers
    )
    assert any(reason in aside.reason for aside in rows[UNKNOWN_REGION].quarantined)


def test_a_gpu_that_is_listed_twice_with_two_prices_is_quarantined(cloud: RunPod, server: CloudServer) -> None:
    cloud.gpus = [gpu("NVIDIA A40", 0.4), gpu("NVIDIA A40", 0.8), gpu()]
    rows = read(server)
    assert "NVIDIA A40 x1" not in offers(rows, "EU-RO-1")
    assert any("listed twice" in aside.reason for aside in rows[UNKNOWN_REGION].quarantined)


def test_a_gpu_that_is_listed_twice_alike_is_one_offer(cloud: RunPod, server: CloudServer) -> None:
    cloud.gpus = [gpu(), gpu()]
    assert len(read(server)["EU-RO-1"].offers) == 5


def test_pods_stand_alone(server: CloudServer) -> None:
    assert not any(row.clusters for rows in read(server).values() for row in rows.instance_types)


@pytest.mark.parametrize(
    ("gpus", "message"), [([], "no machine with accelerators"), ({}, "gpus is \\{\\}, not a list"), (None, "missing")]
)
def test_a_list_that_is_empty_or_of_another_shape_fails_by_name(
    cloud: RunPod, server: CloudServer, gpus: Any, message: str
) -> None:
    cloud.gpus = gpus
    with pytest.raises(ProviderFailure, match=message):
        read(server)


@pytest.mark.parametrize("key", [None, "a-key-of-another-provider"])
def test_a_missing_or_wrong_key_names_its_variable_and_never_the_key(server: CloudServer, key: str | None) -> None:
    with pytest.raises(ProviderFailure, match="RUNPOD_API_KEY") as caught:
        read(server, key)
    assert "another-provider" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answering(403, b"{}"), r"403.*RUNPOD_API_KEY"),
        (answering(500, b"oops"), "HTTP 500 after"),
        (answering(429, b"{}", Retry_After="3600"), "asks to wait 3600 s"),
        (html, "an HTML page, not JSON"),
    ],
)
def test_a_failure_that_persists_is_one_line(server: CloudServer, reply: Any, message: str) -> None:
    server.break_with(reply)
    with pytest.raises(ProviderFailure, match=message) as caught:
        read(server)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reply", [answering(429, b"{}", Retry_After="0"), truncated])
def test_throttling_and_broken_answers_are_asked_for_again(server: CloudServer, reply: Any) -> None:
    server.break_with(reply, times=2)
    assert read(server)["EU-RO-1"].offers


def test_what_sells_out_is_no_longer_available_where_it_was(cloud: RunPod, server: CloudServer) -> None:
    first = refreshed(server)
    cloud.gpus = [gpu(stock="NONE", centers={})]
    second = refreshed(server, first, LATER)
    mine = [o for o in second.snapshot.offers if o.provider == "runpod" and o.instance_type.startswith(f"{CARD} x")]
    assert second.outcome == "whole"
    assert {offer.region for offer in mine} == {"EU-RO-1", UNKNOWN_REGION}
    assert not any(offer.available for offer in mine)


def test_a_price_that_leaps_tenfold_is_held_back(cloud: RunPod, server: CloudServer) -> None:
    first = refreshed(server)
    cloud.gpus = [gpu(secure=69)]
    second = refreshed(server, first, LATER)
    prices = {o.usd_micros_per_hour for o in second.snapshot.offers if o.instance_type == f"{CARD} x1"}
    assert prices == {690_000}


def test_every_embedded_machine_has_its_card_in_the_table() -> None:
    ours = {row.accelerator for row in embedded_snapshot().instance_types if row.provider == "runpod"}
    assert ours == set(accelerator_names("gpuplan.providers.runpod").values())
