"""What is shipped to run the service on several machines is valid, hardened, and calls commands and settings that exist."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from api.cli.main import application

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def documents() -> list[dict[str, Any]]:
    return [
        each
        for path in sorted(KUBERNETES.glob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text())
        if each["kind"] != "Kustomization"
    ]


def named(kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in documents() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod(document: dict[str, Any]) -> dict[str, Any]:
    spec = document["spec"]
    found: dict[str, Any] = (spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec)["template"]
    return found


WORKLOADS = [each for each in documents() if each["kind"] in {"Deployment", "Job", "CronJob"}]
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.mark.parametrize("document", documents(), ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_kubernetes_accepts_it_and_knows_every_field(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each["metadata"]["name"])
def test_every_pod_runs_as_nobody_on_a_file_system_that_it_cannot_write(workload: dict[str, Any]) -> None:
    spec = pod(workload)["spec"]
    user = spec["securityContext"]["runAsUser"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"--uid {user} " in (DEPLOY.parent / "Dockerfile").read_text()
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
    assert "emptyDir" in spec["volumes"][0]
    service_accounts = {each["metadata"]["name"] for each in documents() if each["kind"] == "ServiceAccount"}
    assert spec["serviceAccountName"] in service_accounts
    assert spec["automountServiceAccountToken"] is False
    assert "sizeLimit" in spec["volumes"][0]["emptyDir"]


def test_what_selects_pods_selects_those_that_are_there() -> None:
    labels = [pod(each)["metadata"]["labels"] for each in WORKLOADS]
    selectors = [named("Service", "gpuplan")["spec"]["selector"]]
    for each in documents():
        spec = each.get("spec", {})
        if each["kind"] in {"Deployment", "PodDisruptionBudget"}:
            selectors.append(spec["selector"]["matchLabels"])
        if each["kind"] == "NetworkPolicy":
            selectors.append(spec["podSelector"].get("matchLabels", {}))
    for selector in selectors:
        assert any(selector.items() <= each.items() for each in labels), selector
    scaled = named("HorizontalPodAutoscaler", "gpuplan-api")["spec"]
    assert named("Deployment", scaled["scaleTargetRef"]["name"])["spec"].get("replicas") is None
    assert scaled["minReplicas"] >= 2


def test_the_service_is_asked_where_it_answers_and_given_time_to_end() -> None:
    spec = pod(named("Deployment", "gpuplan-api"))["spec"]
    [container] = spec["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    told = named("ConfigMap", "gpuplan")["data"]
    ends = float(told["GPUPLAN_DRAIN_SECONDS"]) + float(told["GPUPLAN_FINISH_SECONDS"])
    assert spec["terminationGracePeriodSeconds"] > ends
    worker = pod(named("Deployment", "gpuplan-worker"))["spec"]
    arguments = worker["containers"][0]["args"]
    assert worker["terminationGracePeriodSeconds"] > float(arguments[arguments.index("--grace") + 1])


def test_kustomize_takes_everything_but_the_example() -> None:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    there = {each.name for each in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(kustomization["resources"]) == there


COMMANDS = {each["metadata"]["name"]: pod(each)["spec"]["containers"][0]["args"] for each in WORKLOADS}
COMMANDS |= {f"compose {name}": each["command"] for name, each in COMPOSE["services"].items() if "command" in each}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_what_is_shipped_calls_commands_with_options_that_they_have(command: list[str]) -> None:
    group: Any = get_command(application())
    words = [each for each in command if not each.startswith("-")]
    found = group.commands[words[0]]
    if isinstance(found, TyperGroup):
        found = found.commands[words[1]]
    known = {option for parameter in found.params for option in parameter.opts}
    assert {each for each in command if each.startswith("--")} <= known


def test_every_setting_that_is_shipped_is_one_that_gpuplan_reads() -> None:
    sources = "".join(path.read_text() for path in (DEPLOY.parent / "api").rglob("*.py")).lower()
    shipped = "".join(path.read_text() for path in (*KUBERNETES.glob("*.yaml"), DEPLOY / "compose.yaml"))
    for name in set(re.findall(r"GPUPLAN_[A-Z_]+", shipped)):
        assert name.lower() in sources or name.removeprefix("GPUPLAN_").lower() in sources, name


def test_compose_is_hardened_and_names_only_what_it_has() -> None:
    services = COMPOSE["services"]
    for name, each in services.items():
        for needed, how in each.get("depends_on", {}).items():
            assert needed in services
            assert how["condition"] in {"service_healthy", "service_completed_successfully"}
        assert set(each["networks"]) <= COMPOSE["networks"].keys()
        if name != "postgres":
            assert (each["read_only"], each["cap_drop"], each["user"]) == (True, ["ALL"], "10001:10001")
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert services["postgres"]["networks"] == ["inside"]
    assert all(port.startswith("127.0.0.1:") for port in services["api"]["ports"])
    told = services["api"]["environment"]
    ends = float(told["GPUPLAN_DRAIN_SECONDS"]) + float(told["GPUPLAN_FINISH_SECONDS"])
    assert float(services["api"]["stop_grace_period"].removesuffix("s")) > ends


def test_no_secret_is_shipped() -> None:
    for each in documents():
        for value in each.get("stringData", {}).values():
            assert "PASSWORD" in value or "REPLACE-ME" in value
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name or "KEY" in name:
                assert re.fullmatch(r"\$\{[A-Z_]+:\?[^}]+\}", value)
