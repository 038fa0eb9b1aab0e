"""`gpuplan quotas` over google-cloud-compute and azure-mgmt-compute, and real sockets."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.pipeline.transport import RequestsTransport

from gpuplan.api.schemas.settings_file import Environment, planner_settings
from gpuplan.api.services.composition import open_services
from gpuplan.api.services.quotas import QuotaService
from gpuplan.catalog.model.capacity_answers import quota_codes
from gpuplan.catalog.runtime.errors import ProviderFailure, UnusableInput
from gpuplan.catalog.snapshots.embedded_snapshot import embedded_instance_types
from gpuplan.planner.candidates.quota_limits import binding, names_type
from gpuplan.planner.explain.terms_notes import quota_assumption
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.model.wire import wire
from gpuplan.providers.azure.quotas import plain_code
from gpuplan.providers.gcp import quotas as gcp_quotas
from gpuplan.providers.gcp.api_calls import Patience
from tests.api.conftest import Ended
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_quotas import AzureQuotaCloud
from tests.clouds.gcp_quotas import FAMILIES, INFOS, PATH, GcpQuotaCloud
from tests.clouds.server import answering, html

CENTRAL, EAST = "us-central1", "eastus"
TYPES = {(row.provider, row.name): row for row in embedded_instance_types()}
GCP_DENIED = b'{"error": {"code": 403, "message": "Required compute.regions.list permission", "errors": [{"reason": "forbidden"}]}}'
GCP_DISABLED = (
    b'{"error": {"code": 403, "message": "Compute Engine API has not been used in project before or it is disabled",'
    b' "errors": [{"reason": "accessNotConfigured"}]}}'
)
GCP_THROTTLED = (
    b'{"error": {"code": 403, "message": "Rate Limit Exceeded", "errors": [{"reason": "rateLimitExceeded"}]}}'
)
AZURE_DENIED = (
    b'{"error": {"code": "AuthorizationFailed", "message": "no action Microsoft.Compute/locations/usages/read"}}'
)
AZURE_THROTTLED = b'{"error": {"code": "OperationNotAllowed", "message": "too many requests"}}'


@pytest.fixture
def gcp(monkeypatch: pytest.MonkeyPatch) -> Iterator[GcpQuotaCloud]:
    limits = {"NVIDIA_L4_GPUS": 8.0, "PREEMPTIBLE_NVIDIA_L4_GPUS": 16.0, "NVIDIA_A100_GPUS": 4.0}
    limits |= {code: 0.0 for code in quota_codes("gcp") if code not in limits}
    cloud = GcpQuotaCloud({CENTRAL: limits, "us-east1": {}}, {"GPUS_ALL_REGIONS": 12.0})
    hurried = Patience(seconds=20.0, attempt_seconds=10.0, first_wait_seconds=0.02, longest_wait_seconds=0.05)
    monkeypatch.setattr(gcp_quotas, "PATIENCE", hurried)
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        monkeypatch.setenv("GPUPLAN_GCP_PROJECT", "project")
        monkeypatch.setenv("GPUPLAN_GCP_COMPUTE_ENDPOINT", server.url)
        monkeypatch.setenv("GPUPLAN_GCP_QUOTAS_ENDPOINT", server.url)
        yield cloud


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureQuotaCloud]:
    limits = dict.fromkeys(quota_codes("azure"), 48) | {"cores": 350, "lowPriorityCores": 96}
    limits |= {"standardNDSH100v5Family": 192}
    # Azure's spelling differs between its lists, so other cases and blanks are the same name.
    del limits["Standard NCASv3_T4 Family"]
    cloud = AzureQuotaCloud({EAST: limits | {"standard NCASv3_T4Family": 64}})
    monkeypatch.setattr(RequestsTransport, "sleep", lambda _, __: None)
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("GPUPLAN_AZURE_ARM_ENDPOINT", server.url)
        yield cloud


def quotas_in(text: str, tmp_path: Path) -> tuple[Quota, ...]:
    path = tmp_path / "quotas.yaml"
    path.write_text(text, encoding="utf-8")
    return planner_settings(path).quotas


def limit_of(quotas: tuple[Quota, ...], provider: str, name: str, region: str, kind: str) -> tuple[str, float] | None:
    quota = binding(quotas, TYPES[provider, name], region, kind)
    return None if quota is None else (quota.code, quota.limit)


def test_gpus_of_google_are_limited_by_model_and_spot_by_its_own_metric(
    run: Callable[..., Ended], gcp: GcpQuotaCloud, tmp_path: Path
) -> None:
    ended = run("quotas", "--fresh", "--region", CENTRAL)
    assert (ended.code, ended.err) == (0, "")
    quotas = quotas_in(ended.out, tmp_path)
    assert limit_of(quotas, "gcp", "g2-standard-24", CENTRAL, "on_demand") == ("NVIDIA_L4_GPUS", 8)
    assert limit_of(quotas, "gcp", "g2-standard-24", CENTRAL, "spot") == ("PREEMPTIBLE_NVIDIA_L4_GPUS", 16)
    # Without a quota of its own, spot runs under the ordinary one.
    assert limit_of(quotas, "gcp", "a2-highgpu-1g", CENTRAL, "spot") == ("NVIDIA_A100_GPUS", 4)
    assert limit_of(quotas, "gcp", "a2-ultragpu-1g", CENTRAL, "on_demand") == ("NVIDIA_A100_80GB_GPUS", 0)
    assert limit_of(quotas, "gcp", "a3-highgpu-8g", "europe-west4", "on_demand") == ("GPUS_ALL_REGIONS", 12)
    assert limit_of(quotas, "gcp", "tpu-v5litepod-4", CENTRAL, "on_demand") is None


def test_newer_gpus_have_the_value_of_the_most_specific_dimensions_that_apply(
    run: Callable[..., Ended], gcp: GcpQuotaCloud, tmp_path: Path
) -> None:
    h200, mega = {"gpu_family": "NVIDIA_H200"}, {"gpu_family": "NVIDIA_H100_MEGA"}
    gcp.infos[FAMILIES] += [
        ({"region": CENTRAL}, "1", [CENTRAL]),
        (h200, "2", [CENTRAL, "us-east1"]),
        (h200 | {"region": CENTRAL}, "16", [CENTRAL]),
        (mega | {"region": "us-east1"}, "64", ["us-east1"]),
    ]
    gcp.infos["PREEMPTIBLE-NVIDIA-H200-GPUS-per-project-region"] = [({}, "32", [CENTRAL])]
    gcp.infos["PREEMPTIBLE-NVIDIA-B200-GPUS-per-project-region"] = [({}, 0, [CENTRAL])]
    quotas = quotas_in(run("quotas", "--fresh", "--region", CENTRAL).out, tmp_path)
    assert limit_of(quotas, "gcp", "a3-ultragpu-8g", CENTRAL, "spot") == (
        "PREEMPTIBLE-NVIDIA-H200-GPUS-per-project-region",
        32,
    )
    # The quota over all regions is 12, and binds on demand below that of the region.
    in_region = tuple(quota for quota in quotas if quota.region)
    assert limit_of(in_region, "gcp", "a3-ultragpu-8g", CENTRAL, "on_demand") == (f"{FAMILIES} NVIDIA_H200", 16)
    assert limit_of(in_region, "gcp", "a3-megagpu-8g", CENTRAL, "on_demand") == (f"{FAMILIES} NVIDIA_H100_MEGA", 1)
    assert limit_of(in_region, "gcp", "a3-highgpu-8g", CENTRAL, "on_demand") == (f"{FAMILIES} NVIDIA_H100", 1)
    # A quota on spot of 0 or none: spot runs under the ordinary one.
    for machine, family in (("a4-highgpu-8g", "NVIDIA_B200"), ("g4-standard-48", "NVIDIA_RTX_PRO_6000")):
        assert limit_of(in_region, "gcp", machine, CENTRAL, "spot") == (f"{FAMILIES} {family}", 1)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (GCP_DENIED, 403, "cloudquotas.quotas.get"),
        (b"[]", 200, "no JSON object"),
        (b'{"dimensionsInfos": [{"dimensions": [], "details": {}}]}', 200, "does not have the form"),
        (b'{"dimensionsInfos": [{"details": {"value": "many"}}]}', 200, "NVIDIA_H100) is 'many'; accepted: 0 to"),
        (b'{"dimensionsInfos": [{"details": {"value": "-1"}}]}', 200, "is -1; accepted: 0 to"),
    ],
)
def test_cloud_quotas_that_denies_or_answers_nonsense_leaves_the_others_known(
    run: Callable[..., Ended], gcp: GcpQuotaCloud, body: bytes, status: int, reason: str
) -> None:
    gcp.break_with(answering(status, body), when=lambda request: request.path.startswith(INFOS))
    answer = json.loads(run("quotas", "--fresh", "--region", CENTRAL, "--json").out)
    assert any(row["code"] == "NVIDIA_L4_GPUS" for row in answer["quotas"])
    assert any(reason in row["reason"] for row in answer["not_learned"])


def test_a_reading_is_reused_for_an_hour_by_the_same_project_with_its_time(
    gcp: GcpQuotaCloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def service() -> QuotaService:
        return open_services(Environment(database_url=f"sqlite:///{tmp_path / 'store.db'}")).quotas

    read_at = datetime(2026, 11, 27, 23, 30, tzinfo=UTC)
    first = wire(service().read((CENTRAL,), now=read_at))
    gcp.regions[CENTRAL]["NVIDIA_L4_GPUS"] = 99.0
    asked = len(gcp.requests)
    again = wire(service().read((CENTRAL,), now=read_at + timedelta(minutes=45)))
    assert (again["quotas"], len(gcp.requests)) == (first["quotas"], asked)
    assert again["meta"]["reused"] == [{"provider": "gcp", "region": CENTRAL, "read_at": "2026-11-27T23:30:00Z"}]
    assert {row["read_on"] for row in again["quotas"]} == {"2026-11-27"}
    for options in ({"fresh": True, "now": read_at}, {"now": read_at + timedelta(minutes=61)}):
        answer = wire(service().read((CENTRAL,), **options))
        assert [row["accelerators"] for row in answer["quotas"] if row["code"] == "NVIDIA_L4_GPUS"] == [99]
        assert answer["meta"]["reused"] == []
    asked = len(gcp.requests)
    monkeypatch.setenv("GPUPLAN_GCP_PROJECT", "other")
    with pytest.raises(ProviderFailure):
        service().read((CENTRAL,), now=read_at + timedelta(minutes=62))
    assert len(gcp.requests) > asked


def test_a_limit_over_all_regions_is_listed_once(run: Callable[..., Ended], gcp: GcpQuotaCloud) -> None:
    gcp.regions["us-east1"] = {"NVIDIA_L4_GPUS": 2.0}
    answer = json.loads(run("quotas", "--fresh", "--region", CENTRAL, "--region", "us-east1", "--json").out)
    assert [row["accelerators"] for row in answer["quotas"] if row["code"] == "GPUS_ALL_REGIONS"] == [12]
    missing = {row["reason"] for row in answer["not_learned"] if row["region"] == "us-east1"}
    assert "compute.regions.list does not list NVIDIA_T4_GPUS" in missing


def test_a_project_that_may_not_be_read_leaves_the_regions_known(run: Callable[..., Ended], gcp: GcpQuotaCloud) -> None:
    gcp.break_with(answering(403, GCP_DENIED), when=lambda request: request.path == PATH)
    answer = json.loads(run("quotas", "--fresh", "--region", CENTRAL, "--json").out)
    assert any(row["code"] == "NVIDIA_L4_GPUS" for row in answer["quotas"])
    assert any("GPUS_ALL_REGIONS" in row["reason"] for row in answer["not_learned"])


@pytest.mark.parametrize(
    ("body", "reason"), [(GCP_DENIED, "compute.regions.list permission"), (GCP_DISABLED, "disabled")]
)
def test_google_without_permission_or_api_is_a_failure(
    run: Callable[..., Ended], gcp: GcpQuotaCloud, body: bytes, reason: str
) -> None:
    gcp.break_with(answering(403, body))
    ended = run("quotas", "--fresh", "--region", CENTRAL)
    assert (ended.code, ended.out) == (3, "")
    assert f"gcp {CENTRAL}: " in ended.err
    assert reason in ended.err


def test_a_throttled_call_to_google_is_repeated(run: Callable[..., Ended], gcp: GcpQuotaCloud) -> None:
    gcp.break_with(answering(403, GCP_THROTTLED), times=2)
    assert json.loads(run("quotas", "--fresh", "--region", CENTRAL, "--json").out)["not_learned"] == []


def test_nonsense_limits_of_google_are_named(run: Callable[..., Ended], gcp: GcpQuotaCloud) -> None:
    gcp.regions[CENTRAL] |= {"NVIDIA_L4_GPUS": -1.0, "PREEMPTIBLE_NVIDIA_A100_GPUS": 1e12}
    answer = json.loads(run("quotas", "--fresh", "--region", CENTRAL, "--json").out)
    reasons = " ".join(row["reason"] for row in answer["not_learned"])
    assert "NVIDIA_L4_GPUS is -1.0; accepted: 0 to 10000000" in reasons
    assert "PREEMPTIBLE_NVIDIA_A100_GPUS is 1000000000000.0" in reasons


def test_sizes_of_azure_are_limited_by_family_region_and_spot_together(
    run: Callable[..., Ended], azure: AzureQuotaCloud, tmp_path: Path
) -> None:
    ended = run("quotas", "--fresh", "--region", EAST)
    assert (ended.code, ended.err) == (0, "")
    quotas = quotas_in(ended.out, tmp_path)
    assert len(quotas) == len(quota_codes("azure"))
    h100 = "Standard_ND96isr_H100_v5"
    assert limit_of(quotas, "azure", h100, EAST, "on_demand") == ("standardNDSH100v5Family", 192)
    assert limit_of(quotas, "azure", h100, EAST, "spot") == ("lowPriorityCores", 96)
    assert limit_of(quotas, "azure", "Standard_NC16as_T4_v3", EAST, "on_demand") == ("Standard NCASv3_T4 Family", 64)
    assert limit_of(quotas, "azure", h100, "westus", "on_demand") is None
    # The region's limit holds below those of the families.
    azure.values[EAST]["cores"] = 90
    quotas = quotas_in(run("quotas", "--fresh", "--region", EAST).out, tmp_path)
    assert limit_of(quotas, "azure", h100, EAST, "on_demand") == ("cores", 90)


def test_every_family_of_azure_and_metric_of_google_names_machines_and_no_machine_two_families() -> None:
    for provider in ("gcp", "azure"):
        rows = quota_codes(provider)
        quotas = {code: Quota(provider=provider, family=row["family"], vcpus=1.0) for code, row in rows.items()}
        named = {
            code: {name for key, name in TYPES if names_type(quota, TYPES[key, name])} for code, quota in quotas.items()
        }
        assert all(named.values())
        apart = {code for code in rows if code not in ("cores", "lowPriorityCores", "GPUS_ALL_REGIONS")}
        for kind in ("on_demand", "spot"):
            families = [named[code] for code in apart if rows[code]["price_kind"] == kind]
            assert sum(map(len, families)) == len(set().union(*families))
    assert len({plain_code(code) for code in quota_codes("azure")}) == len(quota_codes("azure"))


def test_azure_that_denies_is_named_beside_google(
    run: Callable[..., Ended], azure: AzureQuotaCloud, gcp: GcpQuotaCloud
) -> None:
    azure.break_with(answering(403, AZURE_DENIED))
    answer = json.loads(run("quotas", "--fresh", "--region", EAST, "--region", CENTRAL, "--json").out)
    assert {row["provider"] for row in answer["quotas"]} == {"gcp"}
    [missing] = answer["not_learned"]
    assert (missing["provider"], missing["region"]) == ("azure", EAST)
    assert "AuthorizationFailed" in missing["reason"]


def test_a_throttled_call_to_azure_is_repeated(run: Callable[..., Ended], azure: AzureQuotaCloud) -> None:
    azure.break_with(answering(429, AZURE_THROTTLED, Retry_After="0"), times=2)
    assert json.loads(run("quotas", "--fresh", "--region", EAST, "--json").out)["not_learned"] == []


def test_a_location_without_compute_and_a_foreign_page_are_failures(
    run: Callable[..., Ended], azure: AzureQuotaCloud
) -> None:
    ended = run("quotas", "--fresh", "--region", "westus")
    assert ended.code == 3
    assert "NoRegisteredProviderFound" in ended.err
    azure.break_with(html)
    assert run("quotas", "--fresh", "--region", EAST).code == 3


def test_an_account_that_is_not_named_is_a_failure(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID", raising=False)
    monkeypatch.delenv("GPUPLAN_GCP_PROJECT", raising=False)
    assert "AZURE_SUBSCRIPTION_ID" in run("quotas", "--fresh", "--region", EAST).err
    assert "GPUPLAN_GCP_PROJECT" in run("quotas", "--fresh", "--region", CENTRAL).err


def test_a_plan_says_how_old_its_quotas_are() -> None:
    start = datetime(2026, 11, 21, 8, tzinfo=UTC)
    old, new, stated = (Quota(provider="gcp", vcpus=8.0, read_on=day) for day in ("2026-11-01", "2026-11-20", ""))
    assert "(read on 2026-11-20, 1 days before the start)" in quota_assumption((new, stated), start)
    assert "(the oldest read on 2026-11-01, 20 days before the start)" in quota_assumption((new, old), start)
    assert "read on" not in quota_assumption((stated,), start)


def test_the_day_of_a_quota_is_a_day(tmp_path: Path) -> None:
    line = "quotas:\n  - {provider: gcp, accelerators: 8, read_on: %s}\n"
    assert quotas_in(line % "2026-11-20", tmp_path)[0].read_on == "2026-11-20"
    with pytest.raises(UnusableInput, match="no day; write one as 2026-11-20"):
        quotas_in(line % "yesterday", tmp_path)
