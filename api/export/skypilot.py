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
from api.export.launcher import launch
from api.export.machines import image, machine_and_cards, stack
from api.export.names import label, labels, run_name
from api.export.notes import heading, zone_id
from api.export.on_node import SCRIPT, directory, is_mounted, place, variables
from api.export.refusal import booked, need_cloud, need_kind, refuse
from api.export.run_limit import limit_seconds
from api.export.shell import Expanded, here_document, words
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
#: How long a cluster stays once its job has ended.
IDLE_MINUTES = 5


def skypilot(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a SkyPilot task. Raises `UnusableInput` for what SkyPilot cannot say."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    booked(phase, wishes)
    name = run_name(handover, phase)
    start, end = _verbs(phase, name)
    task: dict[str, Any] = {
        "name": name,
        "num_nodes": 1 if phase.is_slice else phase.nodes,
        "resources": _resources(handover, phase, wishes),
        "envs": _environment(handover, phase, wishes, resume=start),
        "run": "\n".join(_run(phase, wishes)) + "\n",
    }
    config = _config(handover, phase, wishes)
    if config:
        task["config"] = config
    notes = [*heading(handover, phase, wishes), *zone_id(phase), *_fabric(phase), f"Start: {start}", f"End it: {end}"]
    if place(handover, wishes) is None:
        notes.append("SkyPilot refuses it until it is told a place: --env GPUPLAN_CHECKPOINTS=s3://bucket/path")
    return yaml_text([task], notes)


def _verbs(phase: Phase, name: str) -> tuple[str, str]:
    """How the task is started and ended; a cluster that has run its job is torn down."""
    if phase.kind.interruptible:
        return f"sky jobs launch --name {name} FILE", f"sky jobs cancel --name {name}"
    return f"sky launch --down --cluster {name} FILE", f"sky down {name}"


def _environment(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> dict[str, str | None]:
    """SkyPilot refuses to start a task with a variable that is null, unless it is given one."""
    said: dict[str, str | None] = {**variables(handover, phase, wishes, resume=resume)}
    return said if place(handover, wishes) else said | {"GPUPLAN_CHECKPOINTS": None}


def _config(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, Any]:
    """What of SkyPilot's settings this task changes."""
    found: dict[str, Any] = {}
    options = [] if phase.accelerator.stack in ("cuda", "xla") else list(stack(phase).docker)
    if is_mounted(handover, wishes) and not phase.is_slice:
        folder = directory(handover, phase, wishes)
        options += ["--volume", f"{folder}:{folder}"]
    if options:
        found["docker"] = {"run_options": options}
    if phase.kind.max_run_hours is not None:
        if phase.is_slice:
            raise refuse(phase, f"{TOOL} has no word for {phase.kind.name} of a TPU slice")
        group = {"run_duration": limit_seconds(handover, phase, wishes), "provision_timeout": PROVISION_TIMEOUT}
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
        **_autodown(phase),
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
        **_autodown(phase),
        "labels": labels(handover, phase),
    }


def _autodown(phase: Phase) -> dict[str, Any]:
    """https://docs.skypilot.co/en/latest/reference/auto-stop.html; managed jobs end their machines by themselves."""
    return {} if phase.kind.interruptible else {"autostop": {"idle_minutes": IDLE_MINUTES, "down": True}}


def _run(phase: Phase, wishes: Wishes) -> list[str]:
    line = launch(phase, wishes, rank=Expanded('"$SKYPILOT_NODE_RANK"'), address=Expanded('"$HEAD"'))
    several = phase.nodes > 1 and not phase.is_slice
    return [
        *(["HEAD=\"${SKYPILOT_NODE_IPS%%$'\\n'*}\""] if several else []),
        # The same for all tries of a managed job.
        'export GPUPLAN_RUN="$SKYPILOT_TASK_ID" GPUPLAN_NODE="$SKYPILOT_NODE_RANK"',
        *here_document('"$HOME/gpuplan-run-on-node.sh"', SCRIPT.splitlines()),
        'bash "$HOME/gpuplan-run-on-node.sh" ' + words(line),
    ]
