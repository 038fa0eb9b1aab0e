"""TPU slices: one accelerator to SkyPilot, nodes of one pool to GKE, and to dstack where one host has it all."""

import json
from typing import Any

import pytest
import yaml

from gpuplan.api.exports.export_formats import PER_PHASE, one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.api.exports.tpu_names import GKE_NAMES
from gpuplan.catalog.model.tpu_slices import tpu_slices
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import answer, phase


def loaded(to: str, machine: str, *, kind: str = "on_demand", image: str | None = None, **changed: Any) -> Any:
    document = answer(phase(machine, kind=kind, **changed))
    wishes = read_wishes(command="python train.py", image=image)
    return list(yaml.safe_load_all(one_export(document, to=to, wishes=wishes).text))[-1]


def test_skypilot_takes_a_slice_as_one_accelerator_on_one_node() -> None:
    task = loaded("skypilot", "gcp-tpu", kind="spot")
    assert task["num_nodes"] == 1
    assert task["resources"] | {"labels": {}} == {
        "infra": "gcp/us-east5/us-east5-a",
        "accelerators": {"tpu-v5p-16": 1},
        "accelerator_args": {"tpu_vm": True, "runtime_version": "v2-alpha-tpuv5"},
        "use_spot": True,
        "labels": {},
    }
    assert task["run"].endswith('\nbash "$HOME/gpuplan-run-on-node.sh" python train.py\n')
    assert loaded("skypilot", "gcp-tpu", image="me/jax:1")["resources"]["image_id"] == "docker:me/jax:1"


@pytest.mark.parametrize("to", ["kubernetes", "jobset"])
def test_kubernetes_finds_the_hosts_of_a_slice_by_generation_and_topology(to: str) -> None:
    job = loaded(to, "gcp-tpu", kind="spot", image="me/jax:1")
    spec = job["spec"] if to == "kubernetes" else job["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (spec["completions"], spec["parallelism"]) == (2, 2)
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice",
        "cloud.google.com/gke-tpu-topology": "2x2x2",
        "topology.kubernetes.io/region": "us-east5",
        "topology.kubernetes.io/zone": "us-east5-a",
        "cloud.google.com/gke-spot": "true",
    }
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "4"}
    assert pod["containers"][0]["command"] == ["bash", "/gpuplan/run-on-node.sh", "python", "train.py"]
    assert {toleration["key"] for toleration in pod["tolerations"]} == {"google.com/tpu", "cloud.google.com/gke-spot"}


def test_the_pods_of_a_jobset_stay_on_one_slice() -> None:
    assert loaded("jobset", "gcp-tpu", image="me/jax:1")["metadata"]["annotations"] == {
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"
    }
    assert "annotations" not in loaded("jobset", "gcp")["metadata"]


def test_every_slice_of_the_catalogue_has_a_way_out() -> None:
    for tpu_slice in tpu_slices():
        place: dict[str, Any] = {
            "instance_type": tpu_slice.name,
            "accelerator": tpu_slice.accelerator,
            "slice_hosts": tpu_slice.hosts,
        }
        row = phase("gcp-tpu", **place, nodes=tpu_slice.hosts, accelerators_per_node=float(tpu_slice.chips_per_host))
        one_export(answer(row), to="gcloud")
        if tpu_slice.accelerator in GKE_NAMES:
            image = read_wishes(command="python train.py", image="me/jax:1")
            made = one_export(answer(row), to="kubernetes", wishes=image).text
            assert f"gke-tpu-topology: {tpu_slice.topology}\n" in made.replace("'", "")


def test_dstack_takes_what_one_host_has_and_refuses_more() -> None:
    task = loaded("dstack", "gcp-tpu-host", image="me/jax:1")
    assert (task["instance_types"], task["privileged"]) == (["v6e-8"], True)
    assert task["resources"]["gpu"] == {"name": "v6e-8", "count": 1}
    with pytest.raises(UnusableInput, match=r"starts TPUs of one host, and tpu-v5p-16 is not one of them"):
        loaded("dstack", "gcp-tpu", image="me/jax:1")


def test_a_slice_waits_for_no_capacity_in_skypilot() -> None:
    with pytest.raises(UnusableInput, match="SkyPilot does not support flex_start for a TPU slice"):
        loaded("skypilot", "gcp-tpu", kind="flex_start")


def test_a_part_of_a_slice_is_refused_at_its_nodes() -> None:
    for to in (*PER_PHASE, "json"):
        with pytest.raises(
            UnusableInput, match=r"plan\.phases\[0\]\.nodes: 3 is not accepted; a slice has 2 and is rented as a whole"
        ):
            one_export(answer(phase("gcp-tpu", nodes=3) | {"nodes": 3}), to=to)


def test_a_generation_that_a_tool_does_not_know_is_refused() -> None:
    row = phase("gcp-tpu", instance_type="tpu7x-16", accelerator="TPU-v7")
    with pytest.raises(UnusableInput, match="SkyPilot is not known to start TPU-v7"):
        one_export(answer(row), to="skypilot")
    old = phase("gcp-tpu", instance_type="tpu-v3-32", accelerator="TPU-v3", slice_hosts=4, nodes=4)
    with pytest.raises(UnusableInput, match="GKE has no nodes of tpu-v3-32; export it to gcloud"):
        one_export(answer(old), to="kubernetes", wishes=read_wishes(command="python t.py", image="me/jax:1"))
    assert json.loads(one_export(answer(old), to="json").text)["outcome"] == "planned"


def test_the_heading_and_the_charges_name_one_slice_with_its_hosts_not_as_many_slices_as_hosts() -> None:
    document = answer(phase("gcp-tpu", kind="spot"))
    exported = one_export(document, to="gcloud").text
    assert "# Where: tpu-v5p-16 (one slice, 2 hosts), each 4 x TPU-v5p, in gcp us-east5 us-east5-a\n" in exported
    assert "compute of tpu-v5p-16 (one slice, 2 hosts) spot, phase 1" in one_export(document, to="focus").text
