"""Machines of Compute Engine in Terraform: https://registry.terraform.io/providers/hashicorp/google/latest/docs"""

from gpuplan.api.exports.boot_script import GCP_IMAGE, boot_lines, usual_image
from gpuplan.api.exports.container_stacks import machine_and_cards
from gpuplan.api.exports.gcloud import RANK, fabric, max_run_seconds
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.terraform_text import RESUME, log_ins, machine_head, script, variable
from gpuplan.api.exports.tool_names import labels, run_name
from gpuplan.api.exports.unsupported_features import booked
from gpuplan.catalog.parsing.json_object import JsonObject

Block = JsonObject


def gcp_resources(handover: Handover, phase: Phase, wishes: Wishes) -> Block:
    """Provider, inputs, look-ups and machines of one phase on Google Cloud."""
    name = run_name(handover, phase)
    machine, cards = machine_and_cards(phase)
    boot = [*RANK, f"MASTER_ADDR={name}-0", *boot_lines(handover, phase, wishes, resume=RESUME)]
    node: Block = {
        "count": phase.nodes,
        "name": f"{name}-${{count.index}}",
        "machine_type": machine,
        "zone": "${var.zone}",
        "labels": labels(handover, phase),
        "boot_disk": {"initialize_params": {"image": _image(phase), "size": 200}},
        "network_interface": {"network": "default", "access_config": {}},
        "metadata_startup_script": machine_head(handover, phase, wishes) + script(boot),
        "service_account": {"scopes": ["cloud-platform"]},
        "scheduling": _scheduling(phase, max_run_seconds(handover, phase, wishes)),
    }
    reservation = booked(phase, wishes)
    if reservation is not None:
        specific = {"key": "compute.googleapis.com/reservation-name", "values": [reservation]}
        node["reservation_affinity"] = {"type": "SPECIFIC_RESERVATION", "specific_reservation": specific}
    elif phase.kind.max_run_hours is not None:
        node["reservation_affinity"] = {"type": "NO_RESERVATION"}
    if cards:
        node["guest_accelerator"] = [{"type": cards.resource, "count": cards.count}]
    return {
        "terraform": {"required_providers": {"google": {"source": "hashicorp/google", "version": ">= 6.40"}}},
        "provider": {"google": {"region": phase.region}},
        "variable": _variables(phase) | log_ins(handover, phase, wishes),
        **({"data": _look_ups()} if usual_image(phase) else {}),
        "resource": {"google_compute_instance": {"node": ({"//": fabric(phase)} if fabric(phase) else {}) | node}},
    }


def _variables(phase: Phase) -> Block:
    inputs = {"zone": variable(f"A zone of {phase.region} that has the machines", default=phase.zone or None)}
    if not usual_image(phase):
        inputs["image"] = variable(f"An image with Docker and the driver of {phase.accelerator.name}")
    return inputs


def _look_ups() -> Block:
    project, family = GCP_IMAGE
    return {"google_compute_image": {"node": {"project": project, "family": family}}}


def _image(phase: Phase) -> str:
    return "${data.google_compute_image.node.self_link}" if usual_image(phase) else "${var.image}"


def _scheduling(phase: Phase, limit: int) -> Block:
    """Price kind, and deletion at the run limit in seconds.

    Machines with GPUs do not support live migration, so they stop for maintenance. Booked machines are deleted when the
    booking ends.
    """
    block: Block = {
        "on_host_maintenance": "TERMINATE",
        "automatic_restart": False,
        "instance_termination_action": "DELETE",
    }
    if phase.kind.name == "calendar":
        return block | {"provisioning_model": "RESERVATION_BOUND"}
    block["max_run_duration"] = {"seconds": limit}
    if phase.kind.interruptible:
        return block | {"provisioning_model": "SPOT", "preemptible": True}
    return block | {"provisioning_model": "STANDARD" if phase.kind.max_run_hours is None else "FLEX_START"}
