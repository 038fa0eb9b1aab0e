"""What is shipped to run the service on several machines is valid, hardened, and calls commands and settings that exist."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from gpuplan.api.cli.main import application
from gpuplan.api.observability.doctor.configuration import known

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def documents() -> list[dict[str, Any]]:
    return [
        document
        for path in sorted(KUBERNETES.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document["kind"] != "Kustomization"
    ]


def named(kind: str, name: str) -> dict[str, Any]:
    [match] = [document for document in documents() if (document["kind"], document["metadata"]["name"]) == (kind, name)]
    return match


def pod(document: dict[str, Any]) -> dict[str, Any]:
    spec = document["spec"]
    template: dict[str, Any] = (spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec)["template"]
    return template


WORKLOADS = [document for document in documents() if document["kind"] in {"Deployment", "Job", "CronJob"}]
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SLACK_COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.slack.yaml").read_text())
#: A service without its questions, as docs/operations/deployment.md has it.
SERVICE_MIB = 400


@pytest.mark.parametrize(
    "document", documents(), ids=lambda document: f"{document['kind']} {document['metadata']['name']}"
)
def test_kubernetes_accepts_it_and_knows_every_field(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload["metadata"]["name"])
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
        assert container["volumeMounts"] == [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "secrets", "mountPath": "/run/secrets/gpuplan", "readOnly": True},
        ]
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
    assert "emptyDir" in spec["volumes"][0]
    service_accounts = {
        document["metadata"]["name"] for document in documents() if document["kind"] == "ServiceAccount"
    }
    assert spec["serviceAccountName"] in service_accounts
    assert spec["automountServiceAccountToken"] is False
    assert "sizeLimit" in spec["volumes"][0]["emptyDir"]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload["metadata"]["name"])
def test_secrets_are_files_that_are_mounted_where_variables_name_them(workload: dict[str, Any]) -> None:
    spec = pod(workload)["spec"]
    [container] = spec["containers"]
    [secret] = [volume["secret"] for volume in spec["volumes"] if volume["name"] == "secrets"]
    mounted = {f"/run/secrets/gpuplan/{item['path']}": item["key"] for item in secret["items"]}
    named_by = {
        variable["name"]: variable["value"] for variable in container["env"] if variable["name"].endswith("_FILE")
    }
    assert set(named_by.values()) == mounted.keys()
    assert set(mounted.values()) <= named("Secret", secret["secretName"])["stringData"].keys()
    assert "GPUPLAN_DATABASE_URL_FILE" in named_by
    # The image names a file of SQLite, which would go before the file.
    assert {"name": "GPUPLAN_DATABASE_URL", "value": ""} in container["env"]
    for variable in container["env"]:
        taken = variable.get("valueFrom", {}).get("secretKeyRef")
        assert taken is None or (taken["name"], taken["optional"]) == ("gpuplan-slack", True)


def test_slack_is_set_up_by_its_secret_alone() -> None:
    [container] = pod(named("Deployment", "gpuplan-api"))["spec"]["containers"]
    taken = {
        variable["name"].removeprefix("GPUPLAN_SLACK_").lower().replace("_", "-"): variable["valueFrom"][
            "secretKeyRef"
        ]["key"]
        for variable in container["env"]
        if variable["name"].startswith("GPUPLAN_SLACK_")
    }
    assert taken == {name: name for name in ("signing-secret", "bot-token", "client-id", "client-secret")}
    assert named("Secret", "gpuplan-slack")["stringData"].keys() <= taken.keys()


def test_the_ingress_leads_to_the_service_under_a_name_that_it_answers_to() -> None:
    spec = named("Ingress", "gpuplan")["spec"]
    [rule] = spec["rules"]
    [path] = rule["http"]["paths"]
    service = named("Service", path["backend"]["service"]["name"])
    assert path["backend"]["service"]["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    assert (path["path"], path["pathType"]) == ("/", "Prefix")
    settings = named("ConfigMap", "gpuplan")["data"]
    assert spec["tls"][0]["hosts"] == [rule["host"]]
    assert {rule["host"], service["metadata"]["name"]} <= set(settings["GPUPLAN_ALLOW_HOST"].split())
    assert settings["GPUPLAN_SLACK_PAGE_URL"] == f"https://{rule['host']}"


def test_what_goes_out_of_the_cluster_is_https_to_the_internet() -> None:
    for document in documents():
        if document["kind"] != "NetworkPolicy":
            continue
        for rule in document["spec"].get("egress", ()):
            ports = {port["port"] for port in rule["ports"]}
            if ports == {443}:
                four, six = (peer["ipBlock"] for peer in rule["to"])
                private = {network for network in map(str, PRIVATE) if ":" not in network}
                assert (four["cidr"], set(four["except"])) == ("0.0.0.0/0", private)
                assert (six["cidr"], set(six["except"])) == ("::/0", {"::1/128", "fc00::/7", "fe80::/10"})
            elif ports == {53}:
                assert rule["to"][0]["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"}
            else:
                assert ports == {5432}


#: Not the internet's (RFC 6890): private, shared, loopback and link-local, in which machines answer with their metadata.
PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)


def test_a_service_has_room_for_the_budgets_of_all_its_plans() -> None:
    settings = named("ConfigMap", "gpuplan")["data"]
    [container] = pod(named("Deployment", "gpuplan-api"))["spec"]["containers"]
    assert mib(container["resources"]["limits"]["memory"].removesuffix("i")) >= needed_mib(settings)
    api = COMPOSE["services"]["api"]
    assert mib(api["mem_limit"]) >= needed_mib(api["environment"])
    unit = (DEPLOY / "systemd" / "gpuplan.service").read_text()
    settings = dict(re.findall(r"^Environment=(GPUPLAN_[A-Z_]+)=(\d+)$", unit, re.MULTILINE))
    [limit] = re.findall(r"^MemoryMax=(.*)$", unit, re.MULTILINE)
    assert mib(limit) >= needed_mib(settings)
    dockerfile = (DEPLOY.parent / "Dockerfile").read_text()
    settings = dict(re.findall(r"(GPUPLAN_(?:MOST_MIB|PLANNING)[A-Z_]+)=(\d+)", dockerfile))
    [limit] = re.findall(r"--memory (\w+)", dockerfile)
    assert mib(limit) >= needed_mib(settings)


def needed_mib(settings: dict[str, str]) -> float:
    return SERVICE_MIB + int(settings["GPUPLAN_PLANNING_PROCESSES"]) * float(settings["GPUPLAN_MOST_MIB_PER_PLAN"])


def mib(text: str) -> float:
    return float(text[:-1]) * {"m": 1, "g": 1024}[text[-1].lower()]


def test_what_selects_pods_selects_those_that_are_there() -> None:
    labels = [pod(workload)["metadata"]["labels"] for workload in WORKLOADS]
    selectors = [named("Service", "gpuplan")["spec"]["selector"]]
    for document in documents():
        spec = document.get("spec", {})
        if document["kind"] in {"Deployment", "PodDisruptionBudget"}:
            selectors.append(spec["selector"]["matchLabels"])
        if document["kind"] == "NetworkPolicy":
            selectors.append(spec["podSelector"].get("matchLabels", {}))
    for selector in selectors:
        assert any(selector.items() <= label.items() for label in labels), selector
    scaled = named("HorizontalPodAutoscaler", "gpuplan-api")["spec"]
    assert named("Deployment", scaled["scaleTargetRef"]["name"])["spec"].get("replicas") is None
    assert scaled["minReplicas"] >= 2


def test_the_service_is_asked_where_it_answers_and_given_time_to_end() -> None:
    spec = pod(named("Deployment", "gpuplan-api"))["spec"]
    [container] = spec["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    settings = named("ConfigMap", "gpuplan")["data"]
    ends = float(settings["GPUPLAN_DRAIN_SECONDS"]) + float(settings["GPUPLAN_FINISH_SECONDS"])
    assert spec["terminationGracePeriodSeconds"] > ends
    worker = pod(named("Deployment", "gpuplan-worker"))["spec"]
    arguments = worker["containers"][0]["args"]
    assert worker["terminationGracePeriodSeconds"] > float(arguments[arguments.index("--grace") + 1])


def test_kustomize_takes_everything_but_the_example() -> None:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    files = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(kustomization["resources"]) == files


COMMANDS = {workload["metadata"]["name"]: pod(workload)["spec"]["containers"][0]["args"] for workload in WORKLOADS}
COMMANDS |= {
    f"compose {name}": service["command"] for name, service in COMPOSE["services"].items() if "command" in service
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_what_is_shipped_calls_commands_with_options_that_they_have(command: list[str]) -> None:
    group: Any = get_command(application())
    words = [word for word in command if not word.startswith("-")]
    command_found = group.commands[words[0]]
    if isinstance(command_found, TyperGroup):
        command_found = command_found.commands[words[1]]
    known = {option for parameter in command_found.params for option in parameter.opts}
    assert {word for word in command if word.startswith("--")} <= known


def test_every_setting_that_is_shipped_is_one_that_gpuplan_reads() -> None:
    files = (*KUBERNETES.glob("*.yaml"), *DEPLOY.glob("compose*.yaml"), *(DEPLOY / "systemd").iterdir())
    shipped = set(re.findall(r"GPUPLAN_[A-Z_]+", "".join(path.read_text() for path in files)))
    assert len(shipped) > 10
    assert shipped <= known()


def test_compose_is_hardened_and_names_only_what_it_has() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services
            assert how["condition"] in {"service_healthy", "service_completed_successfully"}
        assert set(service["networks"]) <= COMPOSE["networks"].keys()
        assert mib(service["mem_limit"]) > 0
        assert service["pids_limit"] > 0
        if name != "postgres":
            assert (service["read_only"], service["cap_drop"], service["user"]) == (True, ["ALL"], "10001:10001")
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert services["postgres"]["networks"] == ["inside"]
    assert all(port.startswith("127.0.0.1:") for port in services["api"]["ports"])
    settings = services["api"]["environment"]
    ends = float(settings["GPUPLAN_DRAIN_SECONDS"]) + float(settings["GPUPLAN_FINISH_SECONDS"])
    assert float(services["api"]["stop_grace_period"].removesuffix("s")) > ends


def test_no_secret_is_shipped() -> None:
    for document in documents():
        for value in document.get("stringData", {}).values():
            assert "PASSWORD" in value or "REPLACE-ME" in value
    for service in (*COMPOSE["services"].values(), *SLACK_COMPOSE["services"].values()):
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|KEY|SECRET|TOKEN|DATABASE_URL", name):
                assert value == "" or (name.endswith("_FILE") and value.startswith("/run/secrets/"))


@pytest.mark.parametrize("compose", [COMPOSE, SLACK_COMPOSE], ids=["compose", "slack"])
def test_secrets_of_compose_are_files_that_variables_name(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        given = {f"/run/secrets/{name}" for name in service.get("secrets", ())}
        named_by = {value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")}
        assert named_by == given
    used = {name for service in compose["services"].values() for name in service.get("secrets", ())}
    assert compose["secrets"] == {name: {"file": f"secrets/{name}"} for name in used}
    assert "deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text().split()
    assert "deploy" in (DEPLOY.parent / ".dockerignore").read_text().split()


def test_images_are_tags_that_a_digest_can_stand_in_for() -> None:
    dockerfile = (DEPLOY.parent / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert set(bases) == {"${PYTHON_IMAGE}"}
    [default] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", dockerfile, re.MULTILINE)
    services = COMPOSE["services"]
    assert services["api"]["build"]["args"]["PYTHON_IMAGE"] == f"${{PYTHON_IMAGE:-{default}}}"
    assert re.fullmatch(r"\$\{POSTGRES_IMAGE:-postgres:\d+\}", services["postgres"]["image"])
