"""The settings file and the environment: every key known, every figure in range."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from gpuplan.api.schemas.settings_file import Environment, SettingsFile, planner_settings, read_file, settings_file
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.retention import RetentionPolicy
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.providers.cloud_endpoints import Sources, rest_account


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_assumption_of_the_planner_can_be_set_and_no_other() -> None:
    beside = {"channels", "rates", "retention"}
    assert set(SettingsFile.model_fields) - beside == {field.name for field in fields(PlannerSettings)}


def test_an_empty_choice_is_the_planners_defaults(tmp_path: Path) -> None:
    assert planner_settings(None) == PlannerSettings()
    assert planner_settings(written(tmp_path, "goodput: 0.8")) == PlannerSettings(goodput=0.8)
    assert planner_settings(written(tmp_path, "goodput: null")).goodput is None


def test_held_commitments_are_read(tmp_path: Path) -> None:
    text = "held: [{provider: aws, region: us-east-1, instance_type: p5.48xlarge, price_kind: reserved_1y, nodes: 2}]"
    [held] = planner_settings(written(tmp_path, text)).held
    assert (held.instance_type, held.nodes) == ("p5.48xlarge", 2)


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("goodputt: 0.5", "settings.goodputt", "goodput"),
        ("goodput: 0", "settings.goodput", "greater than or equal to 0.01"),
        ("goodput: 1e-300", "settings.goodput", "greater than or equal to 0.01"),
        ("goodput: true", "settings.goodput", "number"),
        ("checkpoint_gbs: 1e-300", "settings.checkpoint_gbs", "greater than or equal to"),
        ("goodput: .nan", "settings.goodput", "finite"),
        ("setup_hours: -1", "settings.setup_hours", "greater than or equal to 0"),
        ("cost_basis: cheap", "settings.cost_basis", "marginal"),
        ("checkpoints_kept: 2.5", "settings.checkpoints_kept", "integer"),
        ("held: [{provider: aws}]", "settings.held[0].region", "missing"),
        (
            "held: [{provider: aws, region: r, instance_type: t, price_kind: spot, nodes: 1}]",
            "settings.held[0].price_kind",
            "reserved_1y",
        ),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, text: str, field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        planner_settings(written(tmp_path, text))
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert message in faults[field]


def test_how_long_things_are_kept_is_read_and_null_is_for_ever(tmp_path: Path) -> None:
    given = settings_file(written(tmp_path, "retention: {every_snapshot_days: 30, plans_days: null}"))
    assert given.retention.policy() == RetentionPolicy(every_snapshot_days=30, plans_days=None)
    assert settings_file(None).retention.policy() == RetentionPolicy()


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("{every_snapshot_days: 0}", "settings.retention.every_snapshot_days", "greater than or equal to 1"),
        ("{plans_days: 1.5}", "settings.retention.plans_days", "integer"),
        ("{plan_days: 9}", "settings.retention.plan_days", "plans_days"),
        ("{every_snapshot_days: 30, weekly_snapshot_days: 10}", "settings.retention", "at least as many"),
    ],
)
def test_a_wrong_bound_of_retention_is_refused_by_name(tmp_path: Path, text: str, field: str, message: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        settings_file(written(tmp_path, f"retention: {text}"))
    faults = {fault.field: fault.message for fault in refused.value.faults}
    assert message in faults[field]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"settings: cannot read .*No such file"):
        planner_settings(tmp_path / "absent.yaml")
    with pytest.raises(UnusableInput, match=r"inventory: cannot read .*directory"):
        read_file(tmp_path, field="inventory")


def test_an_endless_file_is_read_only_so_far() -> None:
    with pytest.raises(UnusableInput, match="1 MiB"):
        planner_settings(Path("/dev/zero"))


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_SETTINGS", "")
    monkeypatch.setenv("GPUPLAN_INVENTORY", "/lab.yaml")
    assert Environment().settings is None
    assert Environment().inventory == Path("/lab.yaml")


def test_a_wrong_inventory_is_named_as_the_inventory(tmp_path: Path) -> None:
    path = written(tmp_path, "machines: [{name: rig, accelerator: RTX 9999, usd_per_hour: 1}]")
    with pytest.raises(UnusableInput) as refused:
        _ = open_services(Environment(inventory=path)).context.owned
    assert [fault.field for fault in refused.value.faults] == ["inventory.machines[0].accelerator"]


def test_the_clouds_are_where_they_are_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_SUBSCRIPTION_ID", "GPUPLAN_ANONYMOUS", "GPUPLAN_GCP_API_KEY", "GPUPLAN_GCP_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    sources = Environment().sources()
    assert sources == replace(Sources(), rest=sources.rest)
    assert {account.provider: account.key for account in sources.rest} == dict.fromkeys(
        ("hyperstack", "lambda", "nebius", "oci", "runpod", "scaleway", "vast", "verda")
    )
    assert all(account == rest_account(Sources(), account.provider) for account in sources.rest)


def test_a_provider_with_one_rest_api_has_its_key_and_endpoint_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAMBDA_API_KEY", "secret-key")
    monkeypatch.setenv("GPUPLAN_LAMBDA_ENDPOINT", "http://127.0.0.1:9/api")
    account = rest_account(Environment().sources(), "lambda")
    assert (account.endpoint, account.key) == ("http://127.0.0.1:9/api", "secret-key")
    assert "secret-key" not in repr(Environment().sources())


def test_every_address_and_account_of_the_clouds_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {
        field.name: f"http://127.0.0.1:9/{field.name}" for field in fields(Sources) if "project" not in field.name
    }
    chosen |= {"gcp_project": "lab", "azure_subscription_id": "0000", "gcp_api_key": "AIza"}
    for name in ("anonymous", "paced", "rest"):
        del chosen[name]
    for name, value in chosen.items():
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID" if "subscription" in name else f"GPUPLAN_{name.upper()}", value)
    monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
    sources = Environment().sources()
    assert {name: getattr(sources, name) for name in chosen} == chosen
    assert sources.anonymous
    assert "AIza" not in repr(Environment())


@pytest.mark.parametrize("text", ["prices.example.org", "ftp://host/", "https://", "http://host:port/", "file:///x"])
def test_an_address_that_is_none_is_refused_by_the_variables_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_AZURE_RETAIL_ENDPOINT", text)
    monkeypatch.setenv("GPUPLAN_ANONYMOUS", "perhaps")
    with pytest.raises(UnusableInput) as refused:
        Environment().sources()
    assert [fault.field for fault in refused.value.faults] == ["GPUPLAN_AZURE_RETAIL_ENDPOINT", "GPUPLAN_ANONYMOUS"]
    assert "accepted: https://host/path" in refused.value.faults[0].message
