"""Other people's recordings of Google's answers, served to Google's clients as they were."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.runtime.errors import ProviderFailure
from gpuplan.providers.contract import Rows
from tests.clouds.gcp import COMPUTE_ENGINE, GcpCatalogue
from tests.clouds.server import answering
from tests.providers.gcp.reads import asks_machines, asks_skus, kinds, price, provider_of, serving, small_catalogue

pytestmark = pytest.mark.shared_data


def sample(shared_data: Path, name: str) -> Any:
    return json.loads((shared_data / "wire" / "gcp" / name).read_text(encoding="utf-8"))


@pytest.fixture
def recorded(shared_data: Path) -> GcpCatalogue:
    """Machines, accelerator types and SKUs of the samples in one catalogue."""
    made = GcpCatalogue()
    machines = sample(shared_data, "compute_machineTypes_aggregatedList.accelerators.constructed.json")
    for scope, machine in machines["items"].items():
        for item in machine.get("machineTypes", []):
            made.add_machine(scope.removeprefix("zones/"), item)
    attachable = sample(shared_data, "compute_acceleratorTypes_aggregatedList.recorded.json")
    for scope, machine in attachable["items"].items():
        zone = scope.removeprefix("zones/")
        made.add_zone(zone)
        made.attachable[zone] += [item["name"] for item in machine.get("acceleratorTypes", [])]
    for name in ("accelerators.constructed", "TPU.2026-06", "N2_legacy_units", "opencost"):
        made.skus[COMPUTE_ENGINE] += sample(shared_data, f"cloudbilling_skus.{name}.json")["skus"]
    made.skus[COMPUTE_ENGINE] += sample(shared_data, "cloudbilling_sku.A2_commit1yr.json")["skus"]
    return made


@pytest.fixture
def rows(recorded: GcpCatalogue) -> Rows:
    with serving(recorded) as server:
        return provider_of(server).fetch("us-central1")


def test_recorded_a2_prices_compose_to_the_published_totals(rows: Rows) -> None:
    assert price(rows, "a2-highgpu-1g") == 3_673_385
    assert price(rows, "a2-megagpu-16g") == 55_739_504
    assert price(rows, "a2-highgpu-1g", "flex_start") == (1_613_650 + 12 * 17_390 + 85 * 2_330)


def test_recorded_b200_slices_give_every_kind(rows: Rows) -> None:
    assert price(rows, "a4-highgpu-8g") == 128_880_000
    assert price(rows, "a4-highgpu-8g", "spot") == 39_633_600
    assert kinds(rows, "a4-highgpu-8g") == {
        "on_demand",
        "spot",
        "flex_start",
        "calendar",
        "committed_1y",
        "committed_3y",
    }


def test_recorded_machines_are_all_known_and_none_is_priced_in_part(rows: Rows) -> None:
    assert rows.quarantined == ()
    for name in ("a2-ultragpu-1g", "a3-megagpu-8g", "a3-ultragpu-8g", "g4-standard-48", "n1-standard-8+1xV100"):
        assert name in {instance_type.name for instance_type in rows.instance_types}
        assert kinds(rows, name) == set()
    assert kinds(rows, "g2-standard-4") == {"spot"}


def test_recorded_tpu_machines_give_tpu7x(rows: Rows) -> None:
    assert price(rows, "tpu7x-8") == 48_000_000


def test_a_recorded_2013_list_has_no_accelerators_and_breaks_nothing(shared_data: Path) -> None:
    old = (shared_data / "wire" / "gcp" / "compute_machineTypes_aggregatedList.2013.json").read_bytes()
    page = json.loads(old)
    page.pop("nextPageToken", None)
    with serving(small_catalogue()) as server:
        server.break_with(answering(200, json.dumps(page).encode()), when=asks_machines)
        rows = provider_of(server).fetch("us-central1")
    assert not rows.failures
    assert not [
        instance_type for instance_type in rows.instance_types if not instance_type.name.startswith(("tpu", "n1"))
    ]


def test_the_recorded_wrong_key_answer_is_one_line(shared_data: Path) -> None:
    body = (shared_data / "wire" / "gcp" / "error.cloudbilling_API_KEY_INVALID.400.json").read_bytes()
    with serving(small_catalogue()) as server:
        server.break_with(answering(400, body), when=asks_skus)
        with pytest.raises(ProviderFailure, match="API key not valid"):
            provider_of(server).fetch("us-central1")


@pytest.mark.parametrize(
    ("name", "status"), [("error.compute_rateLimitExceeded.403.json", 403), ("error.RESOURCE_EXHAUSTED.429.json", 429)]
)
def test_the_sample_rate_limits_are_tried_again(shared_data: Path, name: str, status: int) -> None:
    body = (shared_data / "wire" / "gcp" / name).read_bytes()
    with serving(small_catalogue()) as server:
        server.break_with(answering(status, body), times=4)
        rows = provider_of(server).fetch("us-central1")
    assert not rows.failures
    assert price(rows, "g2-standard-4") == 652_000
