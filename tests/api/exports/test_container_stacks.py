"""What differs by machine: the image that its cards and processors can run, its cards by name, its fabric."""

import json
from typing import Any

import pytest
import yaml

from gpuplan.api.exports.export_formats import one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import answer, phase

HOPPER, OLDER = "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime"


def text(to: str, machine: str, *, image: str | None = None, **given: Any) -> str:
    wishes = read_wishes(command="python train.py", image=image)
    return one_export(answer(phase(machine, **given)), to=to, wishes=wishes).text


def loaded(to: str, machine: str, **given: Any) -> Any:
    made = text(to, machine, **given)
    return json.loads(made) if to == "terraform" else list(yaml.safe_load_all(made))[-1]


def test_cards_that_newer_builds_of_pytorch_leave_out_get_one_that_has_them() -> None:
    assert OLDER in text("aws-cli", "aws-v100")
    assert HOPPER in text("aws-cli", "aws")


def test_cards_that_no_build_has_and_arm_nodes_ask_for_an_image() -> None:
    kepler = {"instance_type": "p2.xlarge", "accelerator": "K80"}
    with pytest.raises(UnusableInput, match="image: is missing: there is no default image for K80"):
        text("skypilot", "aws", **kepler)
    for to in ("gcloud", "terraform", "skypilot", "kubernetes", "dstack"):
        with pytest.raises(UnusableInput, match="image: is missing: there is no default image for GB200"):
            text(to, "gcp-arm")
    assert "IMAGE:?name an image with Docker and the driver of GB200" in text("gcloud", "gcp-arm", image="me/train:1")
    assert "image" in loaded("terraform", "gcp-arm", image="me/train:1")["variable"]
    assert loaded("dstack", "gcp-arm", image="me/train:1")["resources"]["cpu"] == {"arch": "arm"}


def test_the_card_of_an_n1_machine_is_named_where_the_type_leaves_it_open() -> None:
    assert loaded("dstack", "gcp-n1")["resources"]["gpu"] == {"name": "T4", "count": 2}
    pod = loaded("kubernetes", "gcp-n1")["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-accelerator"] == "nvidia-tesla-t4"
    node = loaded("terraform", "gcp-n1")["resource"]["google_compute_instance"]["node"]
    assert node["guest_accelerator"] == [{"type": "nvidia-tesla-t4", "count": 2}]


@pytest.mark.parametrize("odd", ["n1-standard-16+foo", "n1-standard-16+", "n1-standard-16+0xT4", "n1+2xT4+2xT4"])
@pytest.mark.parametrize("to", ["skypilot", "dstack", "terraform", "kubernetes", "jobset", "gcloud"])
def test_odd_cards_are_refused_in_one_line(to: str, odd: str) -> None:
    with pytest.raises(UnusableInput, match=r"is not a machine with cards such as n1-standard-16\+2xT4"):
        text(to, "gcp-n1", instance_type=odd)


def test_devices_that_are_not_nvidias_reach_skypilots_container() -> None:
    amd = loaded("skypilot", "azure-amd")
    assert amd["config"]["docker"]["run_options"] == ["--device", "/dev/kfd", "--device", "/dev/dri"]
    assert loaded("skypilot", "aws-neuron", image="me/t:1")["config"]["docker"]["run_options"] == ["--privileged"]
    assert "config" not in loaded("skypilot", "aws")


def test_skypilot_is_asked_for_the_fabric_between_nodes_where_it_sets_one_up() -> None:
    assert loaded("skypilot", "aws", nodes=2)["resources"]["network_tier"] == "best"
    assert loaded("skypilot", "gcp", nodes=2)["resources"]["network_tier"] == "best"
    assert "network_tier" not in loaded("skypilot", "aws", nodes=1)["resources"]
    assert "network_tier" not in loaded("skypilot", "azure", nodes=2)["resources"]
    mega = text("skypilot", "gcp", nodes=2, instance_type="a3-megagpu-8g")
    assert "network_tier" not in mega
    assert "# The plan's times assume GPUDirect-TCPXO between the nodes" in mega


def test_dstack_refuses_the_types_it_has_no_offer_of() -> None:
    refused = {
        "aws-neuron": "trn1.32xlarge; export it to aws-cli",
        "aws-v100": "p3.16xlarge",
        "azure": "Standard_ND96isr_H100_v5; export it to az",
        "azure-amd": "Standard_ND96isr_MI300X_v5",
    }
    for machine, reason in refused.items():
        with pytest.raises(UnusableInput, match=rf"dstack 0\.22\.5 does not start {reason}"):
            text("dstack", machine, image="me/train:1")
    with pytest.raises(UnusableInput, match=r"does not start n1-standard-16\+1xP4; export it to gcloud"):
        text("dstack", "gcp-n1", instance_type="n1-standard-16+1xP4", accelerator="P4", accelerators_per_node=1)


def test_dstack_says_which_fleet_a_run_needs() -> None:
    several = "# Needs a fleet of the project that may have 2 nodes of aws, placement: cluster and idle_duration: 300s, or its machines stay: dstack fleet\n"
    assert several in text("dstack", "aws", nodes=2)
    assert "placement: cluster" not in text("dstack", "aws", nodes=1)


def test_every_machine_of_the_catalogue_that_trains_has_a_script_or_a_refusal_in_words() -> None:
    tool = {"aws": "aws-cli", "gcp": "gcloud", "azure": "az"}
    for row in data_table("instance_types.csv")[::5]:
        machine: dict[str, Any] = {
            "provider": row["provider"],
            "instance_type": row["name"],
            "accelerator": row["accelerator"],
        }
        hosts = int(row["fixed_nodes"]) if row["fixed_nodes"] else None
        given = machine | {"slice_hosts": hosts, "accelerators_per_node": 1, "zone": ""}
        for to in (tool.get(row["provider"], "skypilot"), "skypilot", "kubernetes", "dstack", "terraform"):
            wishes = read_wishes(command="python t.py", image=None if hosts and to == "gcloud" else "me/train:1")
            try:
                made = one_export(answer(phase("gcp", nodes=hosts or 1, **given)), to=to, wishes=wishes).text
            except UnusableInput as error:
                assert "cannot be exported: " in str(error), row["name"]  # noqa: PT017
            else:
                assert row["name"] in made
