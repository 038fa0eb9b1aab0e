"""TPU slices by zone, from the TPU API and from the hosts that Compute Engine lists, priced per chip."""

from datetime import timedelta

import pytest

from gpuplan.providers.refresh.refresh_run import CurrentRows, refresh
from tests.clouds.gcp import CLOUD_TPU, COMPUTE_ENGINE, GcpCatalogue, machine_item
from tests.clouds.gcp_skus import sku
from tests.clouds.server import answering
from tests.providers.fake_clouds import current_rows, last_night
from tests.providers.gcp.reads import (
    HURRIED,
    IN_VAIN,
    READ_AT,
    REGION,
    ZONE,
    asks_tpus,
    is_unread,
    kinds,
    price,
    provider_of,
    rows_of,
    serving,
    small_catalogue,
    zones,
)

#: What a project gets that has not enabled the API.
DISABLED = (
    b'{"error": {"code": 403, "message": "Cloud TPU API has not been used in project 1 before or it is disabled.",'
    b' "status": "PERMISSION_DENIED", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo",'
    b' "reason": "SERVICE_DISABLED", "domain": "googleapis.com"}]}}'
)


def with_slices(*names: str) -> GcpCatalogue:
    made = small_catalogue()
    made.tpu_types[ZONE] = list(names)
    return made


def test_tpu_v2_to_v4_are_priced_per_eight_cores_and_newer_ones_per_chip() -> None:
    made = with_slices("v3-8", "v4-8", "v5litepod-4", "v5p-8", "v6e-8")
    made.skus[CLOUD_TPU].append(sku("Tpu-v4 Pod running in Oklahoma", 12_880_000_000, [REGION], group="TPU"))
    made.skus[COMPUTE_ENGINE] += [
        sku("TpuV5p running in Iowa", 4_200_000_000, [REGION], group="TPU"),
        sku("TpuV6e running in Iowa", 2_700_000_000, [REGION], group="TPU"),
    ]
    rows = rows_of(made)
    assert price(rows, "tpu-v3-8") == 8_800_000
    assert price(rows, "tpu-v4-8") == 12_880_000
    assert price(rows, "tpu-v5litepod-4") == 4 * 1_200_000
    assert price(rows, "tpu-v5p-8") == 4 * 4_200_000
    assert price(rows, "tpu-v6e-8") == 8 * 2_700_000


def test_pods_of_v2_and_v3_have_a_price_of_their_own() -> None:
    made = with_slices("v3-8", "v3-32")
    made.skus[CLOUD_TPU].append(sku("Tpu-v3 Pod running in Iowa", 8_000_000_000, [REGION], group="TPU"))
    rows = rows_of(made)
    assert price(rows, "tpu-v3-8") == 8_800_000
    assert price(rows, "tpu-v3-32") == 8_000_000, "of each of its four hosts"


def test_preemptible_tpus_that_say_on_demand_are_spot_in_the_rows() -> None:
    made = with_slices("v3-8")
    made.skus[CLOUD_TPU].append(sku("Preemptible Tpu-v3 running in Iowa", 2_640_000_000, [REGION], group="TPU"))
    rows = rows_of(made)
    assert (price(rows, "tpu-v3-8"), price(rows, "tpu-v3-8", "spot")) == (8_800_000, 2_640_000)


def test_calendar_mode_of_a_tpu_is_never_its_on_demand_price() -> None:
    made = with_slices("v5p-8")
    made.skus[COMPUTE_ENGINE].append(
        sku("Reserved TpuV5p in Delhi in Calendar Mode", 2_940_000_000, [REGION], group="TPU")
    )
    rows = rows_of(made)
    assert kinds(rows, "tpu-v5p-8") == {"calendar"}
    assert price(rows, "tpu-v5p-8", "calendar") == 4 * 2_940_000


def test_slices_stand_in_the_zones_that_list_them() -> None:
    made = small_catalogue()
    made.add_zone("us-central1-b")
    made.tpu_types["us-central1-b"] += ["v3-8"]
    rows = rows_of(made)
    assert zones(rows, "tpu-v5litepod-4") == {ZONE}
    assert zones(rows, "tpu-v3-8") == {"us-central1-b"}
    assert zones(rows, "g2-standard-4") == {""}


def test_slices_larger_than_the_documented_ones_are_passed_over() -> None:
    rows = rows_of(with_slices("v5litepod-4", "v5p-12288"))
    assert {o.instance_type for o in rows.offers if o.zone} == {"tpu-v5litepod-4"}


def test_tpu_hosts_among_the_machines_are_never_gpus() -> None:
    made = small_catalogue()
    made.add_machine(ZONE, machine_item("ct5lp-hightpu-4t", 112, 192, "ct5lp", 4))
    made.add_machine(ZONE, machine_item("ct6e-standard-4t", 180, 720, "ct6e", 4))
    rows = rows_of(made)
    assert not rows.quarantined
    assert not [instance_type.name for instance_type in rows.instance_types if instance_type.name.startswith("ct")]


def test_a_zone_that_the_tpu_api_forgets_takes_its_slices_from_the_machines() -> None:
    made = with_slices()
    made.add_machine(ZONE, machine_item("ct5lp-hightpu-4t", 112, 192, "ct5lp", 4))
    rows = rows_of(made)
    assert price(rows, "tpu-v5litepod-256") == 4 * 1_200_000
    assert zones(rows, "tpu-v5litepod-8") == {ZONE}


def test_tpu7x_is_found_by_its_machines_since_the_tpu_api_does_not_list_it() -> None:
    made = small_catalogue()
    made.add_machine(ZONE, machine_item("tpu7x-standard-4t", 224, 960, "tpu7x", 4))
    made.skus[COMPUTE_ENGINE].append(sku("TPU7x running in Americas", 12_000_000_000, [REGION], group="TPU"))
    rows = rows_of(made)
    assert price(rows, "tpu7x-8") == 48_000_000
    assert zones(rows, "tpu-v5litepod-8") == set(), "the API lists v5e here, and only as v5litepod-4"


@pytest.mark.parametrize("status", [500, 503])
def test_a_tpu_zone_that_fails_is_one_failure_and_the_rest_stays_whole(status: int) -> None:
    made = small_catalogue()
    made.add_machine("us-east1-b", machine_item("g2-standard-4", 4, 16, "nvidia-l4", 1))
    made.add_machine("us-east1-b", machine_item("ct5lp-hightpu-1t", 24, 48, "ct5lp", 1))
    made.skus[COMPUTE_ENGINE] += [sku("TpuV5e running in South Carolina", 1_300_000_000, ["us-east1"], group="TPU")]
    with serving(made) as server:
        server.break_with(
            answering(status, b"{}"), when=lambda request: asks_tpus(request) and "us-east1-b" in request.path
        )
        gcp = provider_of(server, patience=IN_VAIN)
        whole, failed = gcp.fetch(REGION), gcp.fetch("us-east1")
    assert whole.failures == ()
    assert whole.unread_types == frozenset()
    assert [("accelerator types of us-east1-b" in line, str(status) in line) for line in failed.failures] == [
        (True, True)
    ]
    assert (is_unread(failed, "tpu-v5litepod-1"), is_unread(failed, "g2-standard-4")) == (True, False)
    assert price(failed, "tpu-v5litepod-1") == 1_300_000


def test_a_zone_without_tpus_may_answer_404() -> None:
    made = small_catalogue()
    made.add_zone("us-central1-f")
    with serving(made) as server:
        server.break_with(answering(404, b"{}"), when=lambda request: asks_tpus(request) and "-f/" in request.path)
        rows = provider_of(server).fetch(REGION)
    assert rows.failures == ()
    assert price(rows, "tpu-v5litepod-4")


def test_a_tpu_api_that_is_not_enabled_is_one_failure_for_all_zones() -> None:
    made = small_catalogue()
    for letter in "bcdef":
        made.add_zone(f"us-central1-{letter}")
    with serving(made) as server:
        server.break_with(answering(403, DISABLED), when=asks_tpus)
        rows = provider_of(server).fetch(REGION)
    assert len(rows.failures) == 1
    assert "Cloud TPU API has not been used" in rows.failures[0]
    assert price(rows, "g2-standard-4") == 652_000


def test_while_the_tpu_api_refuses_machines_that_are_gone_are_gone_and_slices_alone_are_stale() -> None:
    made = small_catalogue()
    with serving(made) as server:
        first = refresh({"gcp": lambda: provider_of(server)}, current_rows(*last_night("elsewhere")), at=READ_AT)
        del made.machines[ZONE][1]
        server.break_with(answering(403, DISABLED), when=asks_tpus)
        before = CurrentRows(snapshot=first.snapshot, embedded=None, read_at=frozenset({READ_AT}))
        second = refresh({"gcp": lambda: provider_of(server)}, before, at=READ_AT + timedelta(days=1))
    remaining = {offer.instance_type: offer.stale_since for offer in second.snapshot.offers if offer.provider == "gcp"}
    assert remaining == {"g2-standard-4": None, "tpu-v5litepod-4": READ_AT + timedelta(days=1)}
    assert second.outcome == "partial"


def test_a_dead_tpu_api_is_not_asked_for_every_zone() -> None:
    made = small_catalogue()
    for number in range(60):
        made.add_zone(f"us-east{number}-b")
    with serving(made) as server:
        server.break_with(answering(503, b"{}"), when=asks_tpus)
        rows = provider_of(server, patience=IN_VAIN).fetch(REGION)
        asked = {request.path for request in server.requests if asks_tpus(request)}
    assert len(asked) <= 8
    assert price(rows, "g2-standard-4") == 652_000


def test_a_tpu_zone_is_given_less_time_than_other_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.providers.gcp.listed_places.TPU_SECONDS_PER_ZONE", 0.05)
    with serving(small_catalogue()) as server:
        server.break_with(answering(503, b"{}"), when=asks_tpus)
        provider_of(server, patience=HURRIED).fetch(REGION)
        assert 0 < sum(map(asks_tpus, server.requests)) <= 5  # in a minute it would be hundreds
