"""What each format says in its tool's own words, and what is refused with which reason."""

import json
from typing import Any

import pytest
import yaml

from gpuplan.api.exports.export_formats import FORMATS, exports, one_export
from gpuplan.api.exports.launch_command import read_wishes
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.exports.documents import MACHINES, answer, in_phases, ladder, phase


def text(to: str, machine: str = "aws", *, nodes: int = 2, kind: str = "on_demand", **wishes: Any) -> str:
    """One phase in one format."""
    document = answer(phase(machine, nodes=nodes, kind=kind))
    return one_export(document, to=to, wishes=read_wishes(command="python train.py", **wishes)).text


def loaded(to: str, *given: Any, **changed: Any) -> Any:
    """The last of the YAML documents, or the JSON one."""
    exported = text(to, *given, **changed)
    return json.loads(exported) if to == "terraform" else list(yaml.safe_load_all(exported))[-1]


STARTING = [to for to in FORMATS if to not in ("focus", "json")]


@pytest.mark.parametrize("to", STARTING)
def test_every_file_names_its_plan_phase_snapshot_and_place(to: str) -> None:
    machine = {"gcloud": "gcp", "az": "azure"}.get(to, to if to in MACHINES else "aws")
    exported = text(to, machine, nodes=1)
    assert "plan-0123456789abcdef0123" in exported
    assert "phase 1 of 1" in exported
    assert "snapshot 0961144a3bc4ebd327519ca01e325437" in exported
    assert phase(machine)["instance_type"] in exported
    assert phase(machine)["region"] in exported
    assert "GPUPLAN_TENSOR_PARALLEL" in exported


def with_ladder(machine: str, kind: str, *rows: dict[str, Any]) -> Any:
    """The resources of the SkyPilot task of a plan whose ladder has these next choices."""
    return task_with_ladder("skypilot", machine, kind, *rows)["resources"]


def task_with_ladder(to: str, machine: str, kind: str, *rows: dict[str, Any]) -> Any:
    """The task of a plan whose ladder has these next choices of its machine, with other values."""
    first = phase(machine, nodes=2, kind=kind)
    document = answer(first)
    document["plan"]["capacity_ladder"] = ladder(*(first | row for row in rows))
    wishes = read_wishes(command="python train.py")
    return list(yaml.safe_load_all(one_export(document, to=to, wishes=wishes).text))[-1]


def test_skypilot_tries_the_next_places_of_the_same_machines_in_order() -> None:
    """Other machines and other node counts have another layout, so they stay out; two AWS zones are one region."""
    other_zone, other_region = {"zone": "use1-az1"}, {"region": "us-west-2", "zone": ""}
    on_demand = {"price_kind": "on_demand", "zone": ""}
    resources = with_ladder(
        "aws", "spot", other_zone, other_region, {"nodes": 3}, {"instance_type": "p4d.24xlarge"}, on_demand
    )
    assert resources["ordered"] == [
        {"infra": "aws/us-east-1", "use_spot": True},
        {"infra": "aws/us-west-2", "use_spot": True},
        {"infra": "aws/us-east-1", "use_spot": False},
    ]
    assert not {"infra", "use_spot"} & set(resources)
    assert "gpuplan-zone-id" not in resources["labels"]
    assert resources["instance_type"] == "p5.48xlarge"
    zoned = with_ladder("gcp", "on_demand", {"region": "us-east4", "zone": "us-east4-b"}, {"price_kind": "spot"})
    assert [place["infra"] for place in zoned["ordered"]] == [
        "gcp/us-central1/us-central1-a",
        "gcp/us-east4/us-east4-b",
    ]


def test_dstack_may_start_the_same_machines_in_the_next_regions_under_the_same_price_kind() -> None:
    rows = (
        {"region": "us-east4", "zone": "us-east4-b"},
        {"region": "us-west1", "zone": "us-west1-a", "price_kind": "spot"},
    )
    task = task_with_ladder("dstack", "gcp", "on_demand", *rows)
    assert task["regions"] == ["us-central1", "us-east4"]
    assert task["availability_zones"] == ["us-central1-a", "us-east4-b"]
    whole = task_with_ladder("dstack", "gcp", "on_demand", {"region": "us-east4", "zone": ""})
    assert whole["regions"] == ["us-central1", "us-east4"]
    assert "availability_zones" not in whole


def test_a_ladder_without_other_places_leaves_the_file_as_it_is() -> None:
    assert with_ladder("aws", "spot", {"nodes": 3}) == loaded("skypilot", kind="spot")["resources"]


def test_a_hostile_next_place_is_refused_with_its_field() -> None:
    with pytest.raises(UnusableInput, match=r"capacity_ladder.next_choices\[?\.?0\]?.region"):
        with_ladder("aws", "spot", {"region": "us-east-1; rm -rf /"})


def test_spot_is_said_in_the_words_of_each_tool() -> None:
    assert loaded("skypilot", kind="spot")["resources"]["use_spot"] is True
    assert loaded("skypilot")["resources"]["use_spot"] is False
    assert loaded("dstack", kind="spot")["spot_policy"] == "spot"
    assert loaded("dstack")["spot_policy"] == "on-demand"
    assert '"MarketType": "spot"' in text("aws-cli", kind="spot")
    assert "MarketType" not in text("aws-cli")
    assert "--provisioning-model=SPOT" in text("gcloud", "gcp", kind="spot")
    assert "--priority Spot --eviction-policy Delete" in text("az", "azure", kind="spot")
    template = loaded("terraform", kind="spot")["resource"]["aws_launch_template"]["node"]
    assert template["instance_market_options"]["market_type"] == "spot"
    node = loaded("terraform", "gcp", kind="spot")["resource"]["google_compute_instance"]["node"]
    assert (node["scheduling"]["provisioning_model"], node["scheduling"]["preemptible"]) == ("SPOT", True)
    scale_set = loaded("terraform", "azure", kind="spot")["resource"]["azurerm_linux_virtual_machine_scale_set"]
    assert scale_set["run"]["priority"] == "Spot"
    pod = loaded("kubernetes", "azure", kind="spot")["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["kubernetes.azure.com/scalesetpriority"] == "spot"
    assert "#SBATCH --requeue\n" in text("slurm", kind="spot")
    assert "#SBATCH --no-requeue\n" in text("slurm")


def test_flex_start_is_said_where_google_sells_it() -> None:
    config = loaded("skypilot", "gcp", kind="flex_start")["config"]
    assert config["gcp"]["managed_instance_group"]["run_duration"] == 150 * 3600
    assert "--provisioning-model=FLEX_START --max-run-duration=540000s" in text("gcloud", "gcp", kind="flex_start")
    scheduling = loaded("terraform", "gcp", kind="flex_start")["resource"]["google_compute_instance"]["node"][
        "scheduling"
    ]
    assert scheduling["max_run_duration"] == {"seconds": 540000}
    pod = loaded("jobset", "gcp", kind="flex_start")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
        "spec"
    ]
    assert pod["nodeSelector"]["cloud.google.com/gke-flex-start"] == "true"


def test_a_capacity_block_is_named_by_its_reservation_or_asked_for() -> None:
    block: dict[str, Any] = {"kind": "capacity_block", "reservation": "cr-0123456789abcdef0"}
    assert '"MarketType": "capacity-block"' in text("aws-cli", **block)
    assert '"CapacityReservationId": "cr-0123456789abcdef0"' in text("aws-cli", **block)
    assert loaded("dstack", **block)["reservation"] == "cr-0123456789abcdef0"
    template = loaded("terraform", **block)["resource"]["aws_launch_template"]["node"]
    assert template["instance_market_options"] == {"market_type": "capacity-block"}
    for to in ("aws-cli", "dstack", "terraform", "kubernetes", "jobset"):
        with pytest.raises(UnusableInput, match="reservation: is missing: a capacity_block must be booked"):
            text(to, kind="capacity_block")
    with pytest.raises(UnusableInput, match="reservation: belongs to capacity_block and calendar"):
        text("aws-cli", reservation="cr-0123456789abcdef0")


def test_a_calendar_booking_starts_on_its_reservation() -> None:
    exported = text("gcloud", "gcp", kind="calendar", reservation="winter")
    assert "--provisioning-model=RESERVATION_BOUND" in exported
    assert "--reservation-affinity=specific --reservation=winter" in exported


def test_a_zone_id_of_aws_is_resolved_and_never_given_as_a_name() -> None:
    assert "Name=availability-zone-id,Values=use1-az4" in text("aws-cli")
    subnets = loaded("terraform")["data"]["aws_subnets"]["zone"]
    assert subnets == {"filter": [{"name": "availability-zone-id", "values": ["use1-az4"]}]}
    for to in ("skypilot", "dstack"):
        assert "--filters Name=zone-id,Values=use1-az4" in text(to)
    assert loaded("skypilot")["resources"]["infra"] == "aws/us-east-1"
    assert "availability_zones" not in loaded("dstack")
    selector = loaded("kubernetes")["spec"]["template"]["spec"]["nodeSelector"]
    assert selector["topology.k8s.aws/zone-id"] == "use1-az4"
    assert "topology.kubernetes.io/zone" not in selector


def test_a_zone_name_of_google_is_given_and_a_price_of_a_whole_region_asks_for_one() -> None:
    assert loaded("skypilot", "gcp")["resources"]["infra"] == "gcp/us-central1/us-central1-a"
    assert loaded("dstack", "gcp")["availability_zones"] == ["us-central1-a"]
    assert "\nZONE=us-central1-a\n" in text("gcloud", "gcp")
    assert "ZONE:?the price applies to all of europe-west4" in text("gcloud", "gcp-n1")
    assert "default" not in loaded("terraform", "gcp-n1")["variable"]["zone"]


def test_the_cards_of_an_n1_machine_are_asked_for_apart() -> None:
    assert loaded("skypilot", "gcp-n1")["resources"]["instance_type"] == "n1-standard-16"
    assert loaded("skypilot", "gcp-n1")["resources"]["accelerators"] == {"T4": 2}
    assert "--accelerator type=nvidia-tesla-t4,count=2" in text("gcloud", "gcp-n1")


def test_nodes_and_devices_stand_in_the_fields_of_each_tool() -> None:
    assert loaded("skypilot", nodes=4)["num_nodes"] == 4
    assert loaded("dstack", nodes=4)["nodes"] == 4
    job = loaded("kubernetes", nodes=4)["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (4, 4, "Indexed")
    limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "8"}
    queue = list(yaml.safe_load_all(text("jobset", nodes=4)))[1]
    assert queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "32"
    assert "#SBATCH --nodes=4\n" in text("slurm", nodes=4)
    assert "#SBATCH --gpus-per-node=8\n" in text("slurm", nodes=4)
    assert "--instance-count 4" in text("az", "azure", nodes=4)
    assert loaded("terraform", nodes=4)["resource"]["aws_instance"]["worker"]["count"] == 3


def test_devices_that_are_no_gpus_have_their_own_resource() -> None:
    limits = loaded("kubernetes", "aws-neuron", image="me/train:1")["spec"]["template"]["spec"]["containers"][0]
    assert limits["resources"]["limits"] == {"aws.amazon.com/neuron": "16"}
    assert "--gpus-per-node" not in text("slurm", "aws-neuron")
    assert "One process per chip of Trainium1" in text("slurm", "aws-neuron")
    with pytest.raises(UnusableInput, match="image: is missing: there is no default image for Trainium1"):
        text("kubernetes", "aws-neuron")


def test_machines_that_the_clouds_image_has_no_driver_for_ask_for_an_image() -> None:
    assert "AMI_ID:?name an image with Docker and the driver of V100-16GB" in text("aws-cli", "aws-v100")
    assert "IMAGE:?name an image with Docker and the driver of MI300X" in text("az", "azure-amd")
    assert "ami_id" in loaded("terraform", "aws-v100")["variable"]


def test_a_commitment_is_started_as_on_demand_and_said_to_be_held_first() -> None:
    exported = text("aws-cli", kind="reserved_1y")
    assert "MarketType" not in exported
    assert "commitment (reserved_1y, 8,760 h): buy it first" in exported


def test_a_tpu_slice_is_a_queued_resource_of_gcloud() -> None:
    exported = text("gcloud", "gcp-tpu", kind="spot")
    assert "--accelerator-type v5p-16" in exported
    assert "--runtime-version" in exported
    assert "--spot" in exported
    assert "torchrun --" not in exported
    for to in ("terraform", "slurm"):
        with pytest.raises(
            UnusableInput, match=r"is a slice of TPU-v5p, which .* does not support; export it to gcloud"
        ):
            text(to, "gcp-tpu")


def test_owned_machines_go_to_slurm_and_kubernetes_and_no_cloud_is_asked_for_them() -> None:
    assert "#SBATCH --nodes=2\n" in text("slurm", "local", kind="owned")
    assert "nodeSelector" not in loaded("kubernetes", "local", kind="owned")["spec"]["template"]["spec"]
    for to in ("skypilot", "dstack", "terraform", "aws-cli", "gcloud", "az"):
        with pytest.raises(UnusableInput, match=r"it runs on owned machines, which .* does not start"):
            text(to, "local", kind="owned")


def test_what_a_tool_has_no_word_for_is_refused_with_the_reason() -> None:
    with pytest.raises(UnusableInput, match="SkyPilot cannot start machines of one capacity block by name"):
        text("skypilot", kind="capacity_block")
    with pytest.raises(UnusableInput, match="dstack does not support flex-start machines"):
        text("dstack", "gcp", kind="flex_start")
    with pytest.raises(UnusableInput, match="flex_start is sold by Google Cloud, not by Amazon Web Services"):
        text("aws-cli", kind="flex_start")
    with pytest.raises(UnusableInput, match="it runs on Amazon Web Services, but gcloud supports only Google Cloud"):
        text("gcloud")
    with pytest.raises(UnusableInput, match="101 nodes are more than the 100 that share one fabric on Azure"):
        text("az", "azure", nodes=101)
    with pytest.raises(UnusableInput, match="image: is not accepted for slurm"):
        text("slurm", image="me/train:1")


@pytest.mark.parametrize("to", ["skypilot", "dstack", "kubernetes", "jobset", "slurm"])
def test_each_phase_is_a_file_of_its_own_and_a_standby_says_when_to_switch(to: str) -> None:
    files = exports(in_phases(), to=to)
    assert [file.phase for file in files] == [1, 2, 3]
    assert len({file.file_name for file in files}) == 3
    assert "Then hands over to the next phase with a checkpoint, at about 2026-12-01T00:00:00Z" in files[0].text
    assert "Takes over from p5.48xlarge aws us-east-1 use1-az4" in files[1].text
    assert "Start it if less than 58.0 % of the work is saved at 2026-12-02T18:00:00Z" in files[2].text
    assert "which 4.0 % of runs need" in files[2].text
    with pytest.raises(UnusableInput, match="phase: is missing: every phase has its own file"):
        one_export(in_phases(), to=to)
    with pytest.raises(UnusableInput, match="phase: 4 is not accepted; the plan has phases 1 to 3"):
        exports(in_phases(), to=to, phase=4)


def test_a_phase_that_a_tool_cannot_start_does_not_hide_those_that_it_can() -> None:
    assert len(exports(in_phases(), to="aws-cli", phase=1)) == 1
    with pytest.raises(UnusableInput, match="phase 2 cannot be exported: it runs on Microsoft Azure"):
        exports(in_phases(), to="aws-cli")


def test_the_whole_plan_as_json_is_what_was_given() -> None:
    assert json.loads(one_export(in_phases("\ud800"), to="json").text) == in_phases("\ud800")


def test_a_command_that_no_ec2_instance_can_start_with_is_refused() -> None:
    long = read_wishes(command="python train.py " + '"' + "'" * 3900 + '"')
    for to in ("aws-cli", "terraform"):
        with pytest.raises(
            UnusableInput, match="command: is too long: the user data of an EC2 instance has at most 14,336 bytes"
        ):
            one_export(answer(), to=to, wishes=long)


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnusableInput, match="to: 'helm' is not accepted; write one of skypilot, dstack"):
        exports(answer(), to="helm")


def test_skypilot_and_dstack_name_the_machines_of_neoclouds_as_they_list_them() -> None:
    assert loaded("skypilot", "lambda")["resources"]["infra"] == "lambda"
    assert loaded("skypilot", "lambda")["resources"]["instance_type"] == "gpu_8x_h100_sxm5"
    nebius = text("skypilot", "nebius")
    assert "gpu-h200-sxm_8gpu-128vcpu-1600gb" in nebius
    # SkyPilot does not end clusters at Nebius by itself, so the run is a managed job.
    assert "Start: sky jobs launch" in nebius
    assert "autostop" not in nebius
    pod = loaded("dstack", "runpod", nodes=1)
    assert (pod["backends"], pod["instance_types"]) == (["runpod"], ["NVIDIA H100 80GB HBM3"])
    assert (pod["resources"]["gpu"]["count"], pod["regions"]) == (8, ["EU-RO-1"])
    assert "regions" not in loaded("dstack", "lambda", nodes=1)
    assert loaded("dstack", "nebius", nodes=2)["nodes"] == 2
    assert "community_cloud: true" in text("dstack", "runpod-community", nodes=1)


@pytest.mark.parametrize(
    ("to", "machine", "nodes", "reason"),
    [
        ("skypilot", "runpod", 1, "it runs on RunPod, but SkyPilot supports only .*export it to docker"),
        ("skypilot", "own-campus", 1, "it runs on own-campus, but SkyPilot supports only .*export it to docker"),
        ("skypilot", "verda", 2, "SkyPilot joins no machines of Verda"),
        ("dstack", "verda", 2, "dstack joins no machines of Verda"),
        ("lambda", "lambda", 2, "2 machines, and this script starts one"),
        ("lambda", "aws", 1, "but Lambda's API supports only Lambda"),
        ("docker", "gcp-tpu", 1, "which Docker alone does not support"),
    ],
)
def test_what_no_tool_starts_is_refused_with_the_reason(to: str, machine: str, nodes: int, reason: str) -> None:
    with pytest.raises(UnusableInput, match=reason):
        text(to, machine, nodes=nodes)


def test_a_price_that_names_no_machine_is_not_started() -> None:
    row = phase("lambda", nodes=1, instance_type="rate card NVIDIA H100")
    with pytest.raises(UnusableInput, match="is the name of a price, not of a machine"):
        one_export(answer(row), to="skypilot", wishes=read_wishes(command="python train.py"))


def test_machines_of_neoclouds_do_not_mount_checkpoints() -> None:
    with pytest.raises(UnusableInput, match="is a file system that machines of RunPod do not mount") as caught:
        text("runpod", "runpod", nodes=1, checkpoints="/mnt/runs")
    assert caught.value.faults[0].field == "checkpoints"


def test_a_plain_docker_command_runs_anywhere_and_says_that_the_machine_stays() -> None:
    script = text("docker", "own-campus", nodes=1)
    assert "docker run" in script
    assert "in own-campus rack-1" in script
    assert "This ends the container and NOT the machine." in script
    assert "${NODE_RANK:?number the machines from 0}" in text("docker", "own-campus", nodes=2)
