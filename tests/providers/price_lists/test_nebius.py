"""Nebius over a real gRPC connection: projects, presets priced one by one, capacity advice, and every failure."""

from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_snapshot
from gpuplan.providers.cloud_endpoints import RestAccount, Sources
from gpuplan.providers.cloud_registry import made
from gpuplan.providers.contract import Rows
from gpuplan.providers.refresh.refresh_run import CurrentRows, refresh
from tests.clouds.nebius import FRESH, HIGH, LIMIT_REACHED, LOW, STALE, TOKEN, Nebius, advice, platform, preset
from tests.providers.price_lists.reading import READ_AT, prices, reasons

ONE, EIGHT = "gpu-h200-sxm 1gpu-16vcpu-200gb", "gpu-h200-sxm 8gpu-128vcpu-1600gb"


def sources(url: str, key: str | None = TOKEN) -> Sources:
    account = RestAccount(provider="nebius", endpoint=url, key_variable="NEBIUS_IAM_TOKEN", key=key)
    return Sources(rest=(account,), paced=False)


def read(cloud: Nebius, key: str | None = TOKEN) -> dict[str, Rows]:
    with cloud.running() as url:
        provider = made("nebius", sources(url, key), READ_AT)
        return {region: provider.fetch(region) for region in provider.regions()}


def test_every_preset_with_gpus_is_priced_on_demand_and_preemptible_in_each_region_with_a_project() -> None:
    cloud = Nebius()
    rows = read(cloud)
    assert set(rows) == {"eu-north1", "us-central1"}
    assert prices(rows["eu-north1"]) == {
        (ONE, "on_demand"): (4_500_000, True),
        (ONE, "spot"): (2_500_000, True),
        (EIGHT, "on_demand"): (36_000_000, True),
        (EIGHT, "spot"): (20_000_000, True),
    }
    assert sum(call.endswith("Estimate") for call in cloud.calls) == 8
    machines = {machine.name: machine for machine in rows["eu-north1"].instance_types}
    assert (machines[EIGHT].fabric, machines[EIGHT].network_gbps) == ("InfiniBand", 3200)
    assert (machines[ONE].fabric, machines[ONE].vcpus, machines[ONE].ram_gib) == ("plain", 16, 200)
    assert machines[ONE].accelerator == "H200-141GB-SXM"


def test_only_presets_that_can_be_joined_have_infiniband() -> None:
    new = platform(presets=[preset("8gpu-128vcpu-1600gb", 8), preset("8gpu-256vcpu-3200gb", 8, joins=True)])
    rows = read(Nebius(projects={"p-eu": "eu-north1"}, platforms={"p-eu": [new]}))["eu-north1"]
    fabrics = {machine.name: (machine.fabric, machine.network_gbps) for machine in rows.instance_types}
    assert fabrics == {EIGHT: ("plain", 10.0), "gpu-h200-sxm 8gpu-256vcpu-3200gb": ("InfiniBand", 3200.0)}


@pytest.mark.parametrize(
    ("graded", "available", "modelled"),
    [
        ((FRESH, HIGH, 12), True, ()),
        ((FRESH, LOW, 0), False, ()),
        ((STALE, HIGH, 12), True, ("obtainability",)),
        ((FRESH, LIMIT_REACHED, 0), True, ("obtainability",)),
        ((FRESH, 5, 0), True, ("obtainability",)),
    ],
)
def test_stock_is_what_fresh_advice_says_and_a_reached_quota_says_nothing(
    graded: Any, available: bool, modelled: tuple[str, ...]
) -> None:
    cloud = Nebius(advice=[advice("eu-north1", "gpu-h200-sxm", "8gpu-128vcpu-1600gb", graded)])
    rows = read(cloud)["eu-north1"]
    offer = next(row for row in rows.offers if (row.instance_type, row.price_kind) == (EIGHT, "on_demand"))
    assert (offer.available, offer.modelled) == (available, modelled)
    assert any("a quota is reached for 1 of 4" in note for note in rows.provider_notes) == (graded[1] == LIMIT_REACHED)


@pytest.mark.parametrize("spot", ["0", "36.0", "36.00"])
def test_a_preemptible_price_that_is_none_is_no_offer(spot: str) -> None:
    rows = read(Nebius(cost=lambda _, name, is_spot: spot if is_spot else "36.0"))
    assert {kind for _, kind in prices(rows["eu-north1"])} == {"on_demand"}


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        ("0", "a price of zero means unknown"),
        ("-4.5", "not a plausible price"),
        ("free", "cost is 'free', not a number"),
        ("", "hourly_cost.general.total.cost is missing"),
    ],
)
def test_a_cost_that_cannot_be_true_is_quarantined_and_the_others_are_read(cost: str, reason: str) -> None:
    rows = read(Nebius(cost=lambda _, name, __: cost if name[0] == "8" else "4.5"))
    assert (ONE, "on_demand") in prices(rows["eu-north1"])
    assert any(why.startswith(EIGHT) and reason in why for why in reasons(rows))


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (platform("gpu-z9000"), "unknown accelerator 'gpu-z9000'"),
        (platform("gpu-h100-sxm", 640), "states 640 GiB per accelerator, but H100-80GB-SXM has 80"),
    ],
)
def test_a_platform_that_cannot_be_true_is_quarantined(new: Any, reason: str) -> None:
    rows = read(Nebius(platforms={"p-eu": [platform(), new], "p-us": [platform()]}))
    assert (ONE, "on_demand") in prices(rows["eu-north1"])
    assert any(reason in why for why in reasons(rows))


def test_a_preset_that_is_listed_twice_with_two_prices_is_quarantined() -> None:
    costs = iter(range(2, 99))
    twice = platform(presets=[preset("8gpu-128vcpu-1600gb", 8, joins=True)] * 2, preemptible=False)
    cloud = Nebius(platforms={"p-eu": [platform("gpu-h100-sxm", 80), twice], "p-us": [platform()]})
    cloud.cost = lambda name, _, __: str(next(costs)) if name == "gpu-h200-sxm" else "4.5"
    rows = read(cloud)
    assert (EIGHT, "on_demand") not in prices(rows["eu-north1"])
    assert any(why.startswith(EIGHT) and "listed twice" in why for why in reasons(rows))


def test_a_wrong_token_names_its_variable_and_none_does_too() -> None:
    with pytest.raises(ProviderFailure, match=r"UNAUTHENTICATED.*check NEBIUS_IAM_TOKEN") as caught:
        read(Nebius(), "a-token-of-another-provider")
    assert "another-provider" not in str(caught.value)
    with pytest.raises(ProviderFailure, match="set NEBIUS_IAM_TOKEN"):
        read(Nebius(), None)
    with pytest.raises(UnusableInput, match="GPUPLAN_NEBIUS_ENDPOINT"):
        made("nebius", sources("api.nebius.cloud"), READ_AT)


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        ({"Tenant": grpc.StatusCode.PERMISSION_DENIED}, "PERMISSION_DENIED, as told; check NEBIUS_IAM_TOKEN"),
        ({"Project": grpc.StatusCode.UNAVAILABLE}, "UNAVAILABLE"),
        ({"Platform": grpc.StatusCode.UNKNOWN}, "UNKNOWN"),
        ({"Platform": b"<html>"}, "changed its shape"),
        ({"Estimate": grpc.StatusCode.INVALID_ARGUMENT}, "no machine with accelerators.*INVALID_ARGUMENT"),
    ],
)
def test_a_failure_that_persists_is_one_line(failures: Any, message: str) -> None:
    with pytest.raises(ProviderFailure, match=message) as caught:
        read(Nebius(failures=failures))
    assert "\n" not in str(caught.value)


def test_throttling_is_asked_for_again_and_missing_advice_is_noted() -> None:
    again = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE]
    rows = read(Nebius(failures={"Estimate": again, "Advice": grpc.StatusCode.PERMISSION_DENIED}))
    assert len(rows["eu-north1"].offers) == 4
    assert any("stock is not known" in note for note in rows["eu-north1"].provider_notes)


def test_an_account_without_projects_and_pages_that_do_not_end_fail() -> None:
    with pytest.raises(ProviderFailure, match="no project with a region"):
        read(Nebius(projects={}))
    cloud = Nebius(page=0)
    with pytest.raises(ProviderFailure, match="names the page '0' twice"):
        read(cloud)


def test_a_region_that_fails_keeps_its_prices_while_the_other_is_read() -> None:
    cloud = Nebius(platforms={"p-eu": [platform()], "p-us": []})
    current = CurrentRows(snapshot=embedded_snapshot(), embedded=embedded_snapshot(), read_at=frozenset())
    with cloud.running() as url:
        after = refresh({"nebius": lambda: made("nebius", sources(url), READ_AT)}, current, at=READ_AT)
    assert after.outcome == "partial"
    offers = [offer for offer in after.snapshot.offers if offer.provider == "nebius"]
    assert {offer.stale_since for offer in offers if offer.region == "us-central1"} == {READ_AT}
    assert {offer.stale_since for offer in offers if offer.region == "eu-north1"} == {None}
