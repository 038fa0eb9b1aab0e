"""Every format against what its tool publishes: schemas, service models, options and enumerations.

`schemas/` holds what was taken from the tools, each with the release it is of; the models of the clouds come from
their own packages.
"""

import base64
import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import jsonschema_rs
import pytest
import yaml
from azure.mgmt.compute import models as azure_models
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from google.cloud import compute_v1

from gpuplan.api.exports.export_formats import exports, one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.exports.unsupported_features import BOOKED
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import MACHINES, answer, ladder, phase

NAMES = ("llama-3-8b", "x'; $(rm -rf /) `id` ${HOME} %{if} \"#: -\n--- !!python/object", "日本語 ünï", "=1+1", "")
COMMAND = "python train.py --note 'it'\"'\"'s $(boom) $$ ${y} %{z} `q`'"


@cache
def schema(name: str) -> Any:
    return json.loads((Path(__file__).parent / "schemas" / name).read_text(encoding="utf-8"))


@cache
def asked(machine: str, kind: str, nodes: int, name: str) -> dict[str, Any]:
    """An answer of one phase."""
    return answer(phase(machine, kind=kind, nodes=nodes), name=name)


@cache
def made(to: str) -> list[str]:
    """Every file of the format that these machines, kinds, node counts and names give, every second with an image."""
    texts = []
    for machine in MACHINES:
        for kind in price_kinds():
            reservation = "cr-0123456789abcdef0" if kind in BOOKED else None
            for nodes, image in ((1, None), (3, None if to == "slurm" else "ghcr.io/me/train:1")):
                wishes = read_wishes(command=COMMAND, image=image, reservation=reservation)
                for name in NAMES if kind == "spot" else NAMES[:1]:
                    try:
                        texts += [
                            file.text for file in exports(asked(machine, kind, nodes, name), to=to, wishes=wishes)
                        ]
                    except UnusableInput:
                        continue
    assert len(texts) > (1 if to in {"lambda", "nebius", "runpod"} else 20)
    return texts


def documents(text: str) -> list[Any]:
    """The documents of a YAML file, as libyaml reads them."""
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def calls(script: str, *program: str) -> Iterator[list[str]]:
    """The words of each call of a program, as the shell reads the script."""
    joined = script.replace("\\\n", " ")
    for line in joined.splitlines():
        at = line.find(" ".join(program) + " ")
        if at >= 0 and not line.startswith("#"):
            yield shlex.split(line[at:].removesuffix(')"'), comments=False)


def test_skypilot_takes_every_task() -> None:
    valid = jsonschema_rs.validator_for(schema("skypilot-0.14.json"))
    for text in made("skypilot"):
        valid.validate(documents(text)[0])


def test_dstack_takes_every_task() -> None:
    valid = jsonschema_rs.validator_for(schema("dstack-0.22.json"))
    for text in made("dstack"):
        valid.validate(documents(text)[0])


def jobset_and_kueue() -> dict[str, Any]:
    """A validator of each kind of object."""
    kinds = schema("jobset-kueue.json").items()
    return {kind: jsonschema_rs.validator_for(definition) for kind, definition in kinds if kind[0] != "$"}


@pytest.mark.slow(reason="one long case")
def test_jobset_and_kueue_take_every_object() -> None:
    kinds = jobset_and_kueue()
    for text in made("jobset"):
        for document in documents(text):
            if document["apiVersion"] != "v1":
                kinds[document["kind"]].validate(document)


def test_kueue_has_a_flavour_for_each_place_of_the_cluster_in_order() -> None:
    """Pods select what all places have in common, and Kueue adds the rest; nodes of another region are in no cluster."""
    first = phase("gcp", nodes=2, kind="spot")
    document = answer(first)
    choices: tuple[dict[str, Any], ...] = (
        {"zone": "us-central1-b"},
        {"region": "us-east4", "zone": "us-east4-b"},
        {"price_kind": "on_demand"},
    )
    document["plan"]["capacity_ladder"] = ladder(*(first | row for row in choices))
    exported = one_export(document, to="jobset", wishes=read_wishes(command="python train.py")).text
    *flavors, queue, _, _, run = list(yaml.safe_load_all(exported))
    kinds = jobset_and_kueue()
    for item in (*flavors, queue, run):
        kinds[item["kind"]].validate(item)
    zone, spot = "topology.kubernetes.io/zone", "cloud.google.com/gke-spot"
    labels = [flavor["spec"]["nodeLabels"] for flavor in flavors]
    assert [(label[zone], label.get(spot)) for label in labels] == [
        ("us-central1-a", "true"),
        ("us-central1-b", "true"),
        ("us-central1-a", None),
    ]
    [group] = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == [flavor["metadata"]["name"] for flavor in flavors]
    pod = run["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "a3-highgpu-8g",
        "topology.kubernetes.io/region": "us-central1",
    }
    assert any(toleration["key"] == spot for toleration in pod["tolerations"])
    assert "3 places of the capacity ladder" in exported


def test_terraforms_providers_know_every_argument_and_miss_none() -> None:
    providers = schema("terraform-providers.json")
    for text in made("terraform"):
        document = json.loads(text)
        for section, prefix in (("resource", ""), ("data", "data:")):
            for kind, blocks in document.get(section, {}).items():
                for block in blocks.values():
                    assert list(wrong(block, providers[prefix + kind]["arguments"])) == [], kind


def wrong(block: Any, known: dict[str, Any]) -> Iterator[str]:
    """Arguments that the provider does not have, and those it needs that are not there."""
    for item in block if isinstance(block, list) else [block]:
        generated = item.get("dynamic", {})
        for name, value in item.items():
            if name in ("//", "count", "dynamic"):
                continue
            if name not in known:
                yield f"{name} is unknown"
            elif "block" in known[name]:
                yield from wrong(value, known[name]["block"])
        for name, content in generated.items():
            yield from wrong(content["content"], known[name]["block"])
        for name, about in known.items():
            if about.get("required") and name not in item and name not in generated:
                yield f"{name} is missing"


def test_terraform_expands_nothing_but_what_is_meant() -> None:
    meant = re.compile(
        r"\$\{(?:var\.|data\.|aws_|azurerm_|count\.index|network_interfaces\.value|range\(|base64encode\(local\.boot\)\})"
    )
    for text in made("terraform"):
        for value in strings({name: part for name, part in json.loads(text).items() if name != "//"}):
            for interpolation in re.finditer(r"(?<!\$)\$\{[^}]*\}?", value):
                assert meant.match(interpolation.group()), value
            assert not re.search(r"(?<!%)%\{", value)


def strings(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, value in part.items():
            yield name
            yield from strings(value)
    elif isinstance(part, list):
        for value in part:
            yield from strings(value)
    elif isinstance(part, str):
        yield part


def test_ec2_takes_every_request_and_the_command_line_every_option() -> None:
    model = botocore.session.get_session().get_service_model("ec2").operation_model("RunInstances")
    shape = model.input_shape
    assert shape is not None
    options = {"--" + botocore.xform_name(name, "-") for name in shape.members} | {
        "--region",
        "--cli-input-json",
        "--query",
        "--output",
    }
    for text in made("aws-cli"):
        commands = list(calls(text, "aws", "ec2", "run-instances"))
        assert commands
        for words in commands:
            assert {word for word in words if word.startswith("--")} <= options
            asked = json.loads(words[words.index("--cli-input-json") + 1])
            report = ParamValidator().validate(asked, shape)
            assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize(
    ("to", "command"),
    [
        ("gcloud", "gcloud compute instances create"),
        ("gcloud", "gcloud compute tpus queued-resources create"),
        ("gcloud", "gcloud compute tpus tpu-vm ssh"),
        ("az", "az vmss create"),
        ("az", "az group create"),
    ],
)
def test_gcloud_and_az_have_every_option(to: str, command: str) -> None:
    known = set(schema("cli-options.json")[command])
    commands = [words for text in made(to) for words in calls(text, *command.split())]
    assert commands
    for words in commands:
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= known


def test_compute_engine_has_every_way_to_provision_that_is_asked_for() -> None:
    models = set(compute_v1.Scheduling.ProvisioningModel.__members__)
    actions = set(compute_v1.Scheduling.InstanceTerminationAction.__members__)
    maintenance = set(compute_v1.Scheduling.OnHostMaintenance.__members__)
    reservations = set(compute_v1.ReservationAffinity.ConsumeReservationType.__members__)
    seen = set()
    for text in made("terraform"):
        node = json.loads(text)["resource"].get("google_compute_instance", {}).get("node")
        if node is None:
            continue
        scheduling = node["scheduling"]
        seen.add(scheduling["provisioning_model"])
        assert scheduling["provisioning_model"] in models
        assert scheduling.get("instance_termination_action", "STOP") in actions
        assert scheduling["on_host_maintenance"] in maintenance
        assert node.get("reservation_affinity", {}).get("type", "NO_RESERVATION") in reservations
    assert seen == {"STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"}


def test_azure_has_every_priority_and_policy_that_is_asked_for() -> None:
    priorities = {priority.value for priority in azure_models.VirtualMachinePriorityTypes}
    policies = {policy.value for policy in azure_models.VirtualMachineEvictionPolicyTypes}
    modes = {mode.value for mode in azure_models.OrchestrationMode}
    for text in made("az"):
        (words,) = calls(text, "az", "vmss", "create")
        given = dict(itertools.pairwise(words))
        assert given["--priority"] in priorities
        assert given.get("--eviction-policy", "Delete") in policies
        assert given["--orchestration-mode"] in modes


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize("to", ["slurm", "aws-cli", "gcloud", "az", "lambda", "nebius", "runpod", "docker"])
def test_bash_reads_every_script(to: str) -> None:
    for text in made(to)[:: 31 if to == "docker" else 7]:
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_bash_reads_what_the_machines_run_when_they_start() -> None:
    for text in made("terraform")[::4]:
        resources = json.loads(text)["resource"]
        scale_set = resources.get("azurerm_linux_virtual_machine_scale_set", {}).get("run")
        if scale_set is not None:
            boot_script = json.loads(text).get("locals", {}).get("boot")
            script = base64.b64decode(scale_set["custom_data"]).decode() if boot_script is None else boot_script
            assert script.startswith("#!/bin/bash\n")
            done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")


def test_slurm_finds_its_options_before_the_first_command() -> None:
    for text in made("slurm"):
        lines = text.splitlines()
        last = max(i for i, line in enumerate(lines) if line.startswith("#SBATCH "))
        assert all(line.startswith("#") for line in lines[: last + 1])
        for line in lines[: last + 1]:
            assert re.fullmatch(r"#!/bin/bash|#SBATCH --[a-z-]+(=[A-Za-z0-9:@-]+)?", line)
