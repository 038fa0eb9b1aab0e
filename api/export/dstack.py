"""A task for dstack: https://dstack.ai/docs/reference/dstack.yml/task/

Backend, region and machine type are named, so dstack has one offer to take. Its zones are names: those of Google Cloud
are given, an id of Amazon's is said in a comment.
"""

from typing import Any

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment, launch
from api.export.machines import image
from api.export.names import run_name, tags
from api.export.notes import heading, zone_id
from api.export.refusal import booked, need_cloud, need_kind, need_no_slice
from api.export.shell import Expanded, words
from api.export.yaml_text import yaml_text

TOOL = "dstack"
UNSUPPORTED = {"flex_start": "has no word for flex-start machines"}


def dstack(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a dstack task. Raises `UnusableInput` for what dstack cannot say."""
    need_no_slice(phase, TOOL)
    need_cloud(phase, TOOL, "aws", "gcp", "azure")
    need_kind(phase, TOOL, UNSUPPORTED)
    reservation = booked(phase, wishes)
    task: dict[str, Any] = {
        "type": "task",
        "name": run_name(handover, phase),
        "nodes": phase.nodes,
        "image": image(phase, wishes),
        "env": environment(handover, phase),
        "commands": [words(_line(phase, wishes))],
        "backends": [phase.provider],
        "regions": [phase.region],
        **({"availability_zones": [phase.zone]} if phase.provider == "gcp" and phase.zone else {}),
        "instance_types": [phase.instance_type.partition("+")[0]],
        "resources": {"gpu": {"count": phase.devices}},
        "spot_policy": "spot" if phase.kind.interruptible else "on-demand",
        **({"reservation": reservation} if reservation else {}),
        "max_duration": f"{handover.limit_hours(phase)}h",
        "tags": {name: value for name, value in tags(handover, phase).items() if name != "Name"},
    }
    if phase.kind.interruptible:
        task["retry"] = {"on_events": ["no-capacity", "interruption"], "duration": f"{handover.limit_hours(phase)}h"}
    return yaml_text([task], [*heading(handover, phase), *zone_id(phase), "Start: dstack apply -f FILE"])


def _line(phase: Phase, wishes: Wishes) -> list[str]:
    """dstack puts its own names for rank and address into the environment."""
    rank, address = Expanded('"$DSTACK_NODE_RANK"'), Expanded('"$DSTACK_MASTER_NODE_IP"')
    return launch(phase, wishes, rank=rank, address=address)
