"""A task for SkyPilot: https://docs.skypilot.co/en/latest/reference/yaml-spec.html

The machine type is named, so nothing is left for SkyPilot to choose. Spot runs as a managed job (`sky jobs launch`),
which brings it back after a preemption. A zone can be given on Google Cloud alone: Amazon's zone ids are no names, and
Azure's prices have none.
"""

from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment, launch
from api.export.machines import image
from api.export.names import label, labels, run_name
from api.export.notes import heading, zone_id
from api.export.refusal import booked, need_cloud, need_kind, need_no_slice
from api.export.shell import Expanded, words
from api.export.yaml_text import yaml_text

TOOL = "SkyPilot"
UNSUPPORTED = {
    "capacity_block": "cannot start machines of one capacity block by name",
    "calendar": "cannot be given the reservation of one task",
}
#: How long SkyPilot waits for machines that start when capacity is found, in seconds: a day.
PROVISION_TIMEOUT = 24 * 3600


def skypilot(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a SkyPilot task. Raises `UnusableInput` for what SkyPilot cannot say."""
    need_no_slice(phase, TOOL)
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    booked(phase, wishes)
    verb = "sky jobs launch" if phase.kind.interruptible else "sky launch --down"
    task: dict[str, Any] = {
        "name": run_name(handover, phase),
        "num_nodes": phase.nodes,
        "resources": _resources(handover, phase, wishes),
        "envs": environment(handover, phase),
        "run": "\n".join(_run(phase, wishes)) + "\n",
    }
    if phase.kind.max_run_hours is not None:
        seconds = round(phase.kind.max_run_hours * 3600)
        group = {"run_duration": seconds, "provision_timeout": PROVISION_TIMEOUT}
        task["config"] = {"gcp": {"managed_instance_group": group}}
    return yaml_text([task], [*heading(handover, phase), *zone_id(phase), f"Start: {verb} FILE"])


def _resources(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, Any]:
    machine, _, cards = phase.instance_type.partition("+")
    zone = f"/{phase.zone}" if phase.zone and phase.provider == "gcp" else ""
    found: dict[str, Any] = {
        "infra": f"{phase.provider}/{phase.region}{zone}",
        "instance_type": machine,
        "image_id": f"docker:{image(phase, wishes)}",
        "use_spot": phase.kind.interruptible,
        "labels": labels(handover, phase)
        | ({"gpuplan-zone-id": label(phase.zone)} if phase.provider == "aws" and phase.zone else {}),
    }
    if cards:
        # Google's N1 machines get their cards apart: `n1-standard-16+2xV100`.
        count, _, card = cards.partition("x")
        found["accelerators"] = {card: int(count) if count.isdecimal() else phase.devices}
    return found


def _run(phase: Phase, wishes: Wishes) -> list[str]:
    line = launch(phase, wishes, rank=Expanded('"$SKYPILOT_NODE_RANK"'), address=Expanded('"$HEAD"'))
    return ["HEAD=\"${SKYPILOT_NODE_IPS%%$'\\n'*}\"", words(line)] if phase.nodes > 1 else [words(line)]
