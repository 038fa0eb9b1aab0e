"""A task for SkyPilot: https://docs.skypilot.co/en/latest/reference/yaml-spec.html

The machine type is named, so nothing is left for SkyPilot to choose; a TPU slice is an accelerator to it, and one node
that runs the command on each of its hosts. Devices that are not NVIDIA's reach the container by options for Docker, and
the fabric between nodes by its best network tier. Spot runs as a managed job (`sky jobs launch`),
which brings it back after a preemption. A zone can be given on Google Cloud alone: Amazon's zone ids are no names, and
Azure's prices have none.
"""

from typing import Any

from api.export.gcloud import fabric
from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment, launch
from api.export.machines import image, machine_and_cards, stack
from api.export.names import label, labels, run_name
from api.export.notes import heading, zone_id
from api.export.refusal import booked, need_cloud, need_kind, refuse
from api.export.shell import Expanded, words
from api.export.tpu import RUNTIMES
from api.export.yaml_text import yaml_text

TOOL = "SkyPilot"
#: https://docs.skypilot.co/en/latest/reference/yaml-spec.html: `network_tier` on Google Cloud is GPUDirect-TCPX.
TCPX = "a3-highgpu-8g"
UNSUPPORTED = {
    "capacity_block": "cannot start machines of one capacity block by name",
    "calendar": "cannot be given the reservation of one task",
}
#: How long SkyPilot waits for machines that start when capacity is found, in seconds: a day.
PROVISION_TIMEOUT = 24 * 3600


def skypilot(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a SkyPilot task. Raises `UnusableInput` for what SkyPilot cannot say."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    booked(phase, wishes)
    verb = "sky jobs launch" if phase.kind.interruptible else "sky launch --down"
    task: dict[str, Any] = {
        "name": run_name(handover, phase),
        "num_nodes": 1 if phase.is_slice else phase.nodes,
        "resources": _resources(handover, phase, wishes),
        "envs": environment(handover, phase),
        "run": "\n".join(_run(phase, wishes)) + "\n",
    }
    config = _config(phase)
    if config:
        task["config"] = config
    return yaml_text([task], [*heading(handover, phase), *zone_id(phase), *_fabric(phase), f"Start: {verb} FILE"])


def _config(phase: Phase) -> dict[str, Any]:
    """What of SkyPilot's settings this task changes."""
    found: dict[str, Any] = {}
    if phase.accelerator.stack not in ("cuda", "xla"):
        found["docker"] = {"run_options": list(stack(phase).docker)}
    if phase.kind.max_run_hours is not None:
        if phase.is_slice:
            raise refuse(phase, f"{TOOL} has no word for {phase.kind.name} of a TPU slice")
        seconds = round(phase.kind.max_run_hours * 3600)
        group = {"run_duration": seconds, "provision_timeout": PROVISION_TIMEOUT}
        found["gcp"] = {"managed_instance_group": group}
    return found


def _tier(phase: Phase) -> dict[str, str]:
    """The fabric of several nodes, where SkyPilot sets it up: EFA, and TCPX on the type of Google's that has it."""
    has = phase.provider == "aws" or phase.instance_type == TCPX
    return {"network_tier": "best"} if phase.nodes > 1 and has and phase.accelerator.stack == "cuda" else {}


def _fabric(phase: Phase) -> list[str]:
    """What is left of the fabric to whoever runs SkyPilot."""
    if phase.is_slice:
        return []
    if phase.provider == "aws" and _tier(phase):
        return ["A machine with several EFA cards gets one unless SkyPilot's own settings say aws.use_internal_ips"]
    return [] if _tier(phase) or phase.provider != "gcp" else fabric(phase)


def _resources(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, Any]:
    if phase.is_slice:
        return _slice(handover, phase, wishes)
    machine, cards = machine_and_cards(phase)
    zone = f"/{phase.zone}" if phase.zone and phase.provider == "gcp" else ""
    found: dict[str, Any] = {
        "infra": f"{phase.provider}/{phase.region}{zone}",
        "instance_type": machine,
        "image_id": f"docker:{image(phase, wishes)}",
        "use_spot": phase.kind.interruptible,
        **_tier(phase),
        "labels": labels(handover, phase)
        | ({"gpuplan-zone-id": label(phase.zone)} if phase.provider == "aws" and phase.zone else {}),
    }
    if cards:
        # Google's N1 machines get their cards apart: `n1-standard-16+2xV100`.
        found["accelerators"] = {cards.name: cards.count}
    return found


def _slice(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, Any]:
    """A slice, whose hosts run the command as it stands unless an image is named."""
    runtime = RUNTIMES.get(phase.accelerator.name)
    if runtime is None:
        raise refuse(phase, f"{TOOL} is not known to start {phase.accelerator.name}; export it to gcloud")
    zone = f"/{phase.zone}" if phase.zone else ""
    return {
        "infra": f"gcp/{phase.region}{zone}",
        "accelerators": {phase.instance_type: 1},
        "accelerator_args": {"tpu_vm": True, "runtime_version": runtime},
        **({"image_id": f"docker:{wishes.image}"} if wishes.image else {}),
        "use_spot": phase.kind.interruptible,
        "labels": labels(handover, phase),
    }


def _run(phase: Phase, wishes: Wishes) -> list[str]:
    line = launch(phase, wishes, rank=Expanded('"$SKYPILOT_NODE_RANK"'), address=Expanded('"$HEAD"'))
    several = phase.nodes > 1 and not phase.is_slice
    return ["HEAD=\"${SKYPILOT_NODE_IPS%%$'\\n'*}\"", words(line)] if several else [words(line)]
