"""A task for dstack: https://dstack.ai/docs/reference/dstack.yml/task/

Backend, region, machine type and, where the type leaves it open, the card are named, so dstack has one offer to take.
Its zones are names: those of Google Cloud are given, an id of Amazon's is said in a comment. Runs start in a fleet.
"""

from typing import Any

from api.export.dstack_machines import need_started
from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment, launch
from api.export.machines import arm, image, machine_and_cards
from api.export.names import run_name, tags
from api.export.notes import heading, zone_id
from api.export.refusal import booked, need_cloud, need_kind
from api.export.shell import Expanded, words
from api.export.yaml_text import yaml_text

TOOL = "dstack"
UNSUPPORTED = {"flex_start": "has no word for flex-start machines"}


def dstack(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a dstack task. Raises `UnusableInput` for what dstack cannot say."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    reservation = booked(phase, wishes)
    need_started(phase)
    task: dict[str, Any] = {
        "type": "task",
        "name": run_name(handover, phase),
        "nodes": phase.nodes,
        "image": image(phase, wishes),
        "env": environment(handover, phase),
        # A container sees a TPU only so.
        **({"privileged": True} if phase.is_slice else {}),
        "commands": [words(_line(phase, wishes))],
        "backends": [phase.provider],
        "regions": [phase.region],
        **({"availability_zones": [phase.zone]} if phase.provider == "gcp" and phase.zone else {}),
        "instance_types": [machine_and_cards(phase)[0].removeprefix("tpu-")],
        "resources": ({"cpu": {"arch": "arm"}} if arm(phase) else {}) | {"gpu": _gpu(phase)},
        "spot_policy": "spot" if phase.kind.interruptible else "on-demand",
        **({"reservation": reservation} if reservation else {}),
        "max_duration": f"{handover.limit_hours(phase)}h",
        "tags": {name: value for name, value in tags(handover, phase).items() if name != "Name"},
    }
    if phase.kind.interruptible:
        task["retry"] = {"on_events": ["no-capacity", "interruption"], "duration": f"{handover.limit_hours(phase)}h"}
    return yaml_text(
        [task], [*heading(handover, phase), *zone_id(phase), *_fleet(phase), "Start: dstack apply -f FILE"]
    )


def _gpu(phase: Phase) -> dict[str, Any]:
    """What the machine must have. A machine of N1 is had with any card, so there the card is named; a TPU counts once."""
    if phase.is_slice:
        return {"name": phase.instance_type.removeprefix("tpu-"), "count": 1}
    _, cards = machine_and_cards(phase)
    return {"name": cards.name, "count": cards.count} if cards else {"count": phase.devices}


def _fleet(phase: Phase) -> list[str]:
    """https://dstack.ai/docs/concepts/fleets: without one nothing starts; `cluster` puts nodes onto one fabric."""
    where = ", with placement: cluster" if phase.nodes > 1 else ""
    return [f"Needs a fleet of the project that may have {phase.nodes} nodes of {phase.provider}{where}: dstack fleet"]


def _line(phase: Phase, wishes: Wishes) -> list[str]:
    """dstack puts its own names for rank and address into the environment."""
    rank, address = Expanded('"$DSTACK_NODE_RANK"'), Expanded('"$DSTACK_MASTER_NODE_IP"')
    return launch(phase, wishes, rank=rank, address=address)
