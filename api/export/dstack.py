"""A task for dstack: https://dstack.ai/docs/reference/dstack.yml/task/

Backend, region, machine type and, where the type leaves it open, the card are named, so dstack has one offer to take.
Its zones are names: those of Google Cloud are given, an id of Amazon's is said in a comment. Runs start in a fleet.
"""

from typing import Any

from api.export.dstack_machines import need_started
from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import launch
from api.export.machines import arm, image, machine_and_cards
from api.export.names import run_name, tags
from api.export.notes import heading, zone_id
from api.export.on_node import GRACE_SECONDS, SCRIPT, directory, is_mounted, place, variables
from api.export.refusal import booked, need_cloud, need_kind
from api.export.run_limit import limit_seconds
from api.export.shell import Expanded, here_document, words
from api.export.yaml_text import yaml_text

TOOL = "dstack"
#: How long a machine stays once its run has ended: https://dstack.ai/docs/concepts/fleets
IDLE_SECONDS = 300
UNSUPPORTED = {"flex_start": "has no word for flex-start machines"}


def dstack(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a dstack task. Raises `UnusableInput` for what dstack cannot say."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    reservation = booked(phase, wishes)
    need_started(phase)
    limit, folder = limit_seconds(handover, phase, wishes), directory(handover, phase, wishes)
    task: dict[str, Any] = {
        "type": "task",
        "name": run_name(handover, phase),
        "nodes": phase.nodes,
        "image": image(phase, wishes),
        "env": _environment(handover, phase, wishes),
        # A container sees a TPU only so.
        **({"privileged": True} if phase.is_slice else {}),
        "commands": ["\n".join(_commands(phase, wishes)) + "\n"],
        **({"volumes": [f"{folder}:{folder}"]} if is_mounted(handover, wishes) else {}),
        "backends": [phase.provider],
        "regions": [phase.region],
        **({"availability_zones": [phase.zone]} if phase.provider == "gcp" and phase.zone else {}),
        "instance_types": [machine_and_cards(phase)[0].removeprefix("tpu-")],
        "resources": ({"cpu": {"arch": "arm"}} if arm(phase) else {}) | {"gpu": _gpu(phase)},
        "spot_policy": "spot" if phase.kind.interruptible else "on-demand",
        **({"reservation": reservation} if reservation else {}),
        "max_duration": limit,
        "stop_duration": GRACE_SECONDS,
        "idle_duration": IDLE_SECONDS,
        "tags": {name: value for name, value in tags(handover, phase).items() if name != "Name"},
    }
    if phase.kind.interruptible:
        task["retry"] = {"on_events": ["no-capacity", "interruption"], "duration": limit}
    name = run_name(handover, phase)
    notes = [
        *heading(handover, phase, wishes),
        *zone_id(phase),
        *_fleet(phase),
        "Start: dstack apply -f FILE",
        f"End it: dstack stop {name}. To go on from the newest checkpoint: dstack apply -f FILE",
    ]
    if place(handover, wishes) is None:
        notes.append(
            "dstack refuses it until it is told a place: GPUPLAN_CHECKPOINTS=s3://bucket/path dstack apply -f FILE"
        )
    return yaml_text([task], notes)


def _environment(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, str] | list[str]:
    """dstack takes a variable without a value from whoever starts the run, and refuses to start without."""
    said = variables(handover, phase, wishes, resume="dstack apply -f FILE")
    if place(handover, wishes) is not None:
        return said
    del said["GPUPLAN_CHECKPOINTS"]
    return [*(f"{name}={value}" for name, value in said.items()), "GPUPLAN_CHECKPOINTS"]


def _gpu(phase: Phase) -> dict[str, Any]:
    """What the machine must have. A machine of N1 is had with any card, so there the card is named; a TPU counts once."""
    if phase.is_slice:
        return {"name": phase.instance_type.removeprefix("tpu-"), "count": 1}
    _, cards = machine_and_cards(phase)
    return {"name": cards.name, "count": cards.count} if cards else {"count": phase.devices}


def _fleet(phase: Phase) -> list[str]:
    """https://dstack.ai/docs/concepts/fleets: without one nothing starts; `cluster` puts nodes onto one fabric."""
    where = ", placement: cluster" if phase.nodes > 1 else ""
    may = f"that may have {phase.nodes} nodes of {phase.provider}{where}"
    return [
        f"Needs a fleet of the project {may} and idle_duration: {IDLE_SECONDS}s, or its machines stay: dstack fleet"
    ]


def _commands(phase: Phase, wishes: Wishes) -> list[str]:
    """dstack puts its own names for run, rank and address into the environment; a run keeps its id over all retries."""
    rank, address = Expanded('"$DSTACK_NODE_RANK"'), Expanded('"$DSTACK_MASTER_NODE_IP"')
    return [
        'export GPUPLAN_RUN="$DSTACK_RUN_ID" GPUPLAN_NODE="$DSTACK_NODE_RANK"',
        *here_document('"$HOME/gpuplan-run-on-node.sh"', SCRIPT.splitlines()),
        'bash "$HOME/gpuplan-run-on-node.sh" ' + words(launch(phase, wishes, rank=rank, address=address)),
    ]
