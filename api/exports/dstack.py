"""A task for dstack: https://dstack.ai/docs/reference/dstack.yml/task/

Backend, region, machine type and, if the type leaves it open, the card are fixed, so that dstack has only one offer.
Zones are names: Google's are given, Amazon's zone ids are in a comment. Runs start in a fleet.
"""

import re

from gpuplan.api.exports.container_stacks import arm, image, machine_and_cards
from gpuplan.api.exports.file_comments import heading, zone_id
from gpuplan.api.exports.launch_command import launch
from gpuplan.api.exports.neocloud_names import DSTACK, dstack_name
from gpuplan.api.exports.node_script import GRACE_SECONDS, SCRIPT, directory, is_mounted, place, variables
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded, here_document, words
from gpuplan.api.exports.tool_names import run_name, tags
from gpuplan.api.exports.unsupported_features import booked, need_cloud, need_kind, refuse
from gpuplan.api.exports.yaml_text import yaml_text
from gpuplan.catalog.model.regions import is_place_unknown
from gpuplan.catalog.parsing.json_object import JsonObject

TOOL = "dstack"
#: Idle seconds of a machine after its run: https://dstack.ai/docs/concepts/fleets
IDLE_SECONDS = 300
UNSUPPORTED = {"flex_start": "does not support flex-start machines"}
RELEASE = "0.22.5"
#: https://github.com/dstackai/dstack: the filters of the backends `aws`, `azure` and `gcp`.
STARTED = {
    "aws": re.compile(r"(p6-b300|p6-b200|p5|p5e|p5en|p4d|p4de|g7|g7e|g6|g6e|gr6|g5|g4dn)\..+"),
    "azure": re.compile(
        r"Standard_(NC\d+s_v3|NC\d+as_T4_v3|ND\d+rs_v2|NV\d+adm?s_A10_v5|NC\d+ads_A100_v4|NC\d+adi?s_H100_v5"
        r"|ND\d+asr_v4|ND\d+amsr_A100_v4|ND\d+isr_H200_v5)"
    ),
    # Other Google types are supported unless their card is in `LEFT_OUT`.
    "gcp": re.compile(r"(?!tpu).+"),
}
LEFT_OUT = ("K80", "P4", "P100")
#: TPUs of one host; https://github.com/dstackai/gpuhunt has the sizes.
TPUS = re.compile(r"tpu-(v2-8|v3-8|v5litepod-[148]|v5p-8|v6e-[148])")


def dstack(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a dstack task. Raises `UnusableInput` for features that dstack lacks."""
    need_cloud(phase, TOOL, "aws", "gcp", "azure", *DSTACK)
    need_kind(phase, TOOL, UNSUPPORTED)
    reservation = booked(phase, wishes)
    machine = dstack_name(phase) if phase.provider in DSTACK else need_started(phase).removeprefix("tpu-")
    limit, folder = limit_seconds(handover, phase, wishes), directory(handover, phase, wishes)
    task: JsonObject = {
        "type": "task",
        "name": run_name(handover, phase),
        "nodes": phase.nodes,
        "image": image(phase, wishes),
        "env": _environment(handover, phase, wishes),
        # Required for a container to access a TPU.
        **({"privileged": True} if phase.is_slice else {}),
        "commands": ["\n".join(_commands(phase, wishes)) + "\n"],
        **({"volumes": [f"{folder}:{folder}"]} if is_mounted(handover, wishes) else {}),
        "backends": [phase.provider],
        **_places(handover, phase),
        "instance_types": [machine],
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
        f"Stop: dstack stop {name}. Resume from the newest checkpoint: dstack apply -f FILE",
    ]
    if place(handover, wishes) is None:
        notes.append(
            "dstack refuses it without a checkpoint location: GPUPLAN_CHECKPOINTS=s3://bucket/path dstack apply -f FILE"
        )
    return yaml_text([task], notes)


def _environment(handover: Handover, phase: Phase, wishes: Wishes) -> dict[str, str] | list[str]:
    """The environment. A variable without value must be given when the run is started."""
    environment = variables(handover, phase, wishes, resume="dstack apply -f FILE")
    if place(handover, wishes) is not None:
        return environment
    del environment["GPUPLAN_CHECKPOINTS"]
    return [*(f"{name}={value}" for name, value in environment.items()), "GPUPLAN_CHECKPOINTS"]


def _places(handover: Handover, phase: Phase) -> dict[str, list[str]]:
    """Regions and, where zones are names, zones: the phase's own, then those of next choices under the same price kind.

    dstack starts the cheapest offer that it obtains there: https://dstack.ai/docs/reference/dstack.yml/task
    Where the provider states no region, dstack may choose any.
    """
    next_places = [place_ for place_ in handover.next_places if phase.number == 1 and place_.kind == phase.kind]
    if is_place_unknown(phase.region):
        return {}
    regions = list(dict.fromkeys([phase.region, *(place_.region for place_ in next_places)]))
    zones = list(dict.fromkeys([phase.zone, *(place_.zone for place_ in next_places)]))
    # One place without a zone admits every zone of its region.
    return {"regions": regions} | ({"availability_zones": zones} if phase.provider == "gcp" and all(zones) else {})


def _gpu(phase: Phase) -> JsonObject:
    """Required devices. N1 machines accept any card, so theirs is named; a TPU counts as one device."""
    if phase.is_slice:
        return {"name": phase.instance_type.removeprefix("tpu-"), "count": 1}
    _, cards = (None, None) if phase.provider in DSTACK else machine_and_cards(phase)
    return {"name": cards.name, "count": cards.count} if cards else {"count": phase.devices}


def _fleet(phase: Phase) -> list[str]:
    """https://dstack.ai/docs/concepts/fleets: without one nothing starts; `cluster` puts nodes onto one fabric."""
    where = ", placement: cluster" if phase.nodes > 1 else ""
    may = f"that may have {phase.nodes} nodes of {phase.provider}{where}"
    community = "community" in phase.instance_type and phase.provider == "runpod"
    return [
        f"Needs a fleet of the project {may} and idle_duration: {IDLE_SECONDS}s, or its machines stay: dstack fleet",
        *(["The project's backend runpod must allow the community cloud: community_cloud: true"] if community else []),
    ]


def _commands(phase: Phase, wishes: Wishes) -> list[str]:
    """dstack puts its own names for run, rank and address into the environment; a run keeps its id over all retries."""
    rank, address = Expanded('"$DSTACK_NODE_RANK"'), Expanded('"$DSTACK_MASTER_NODE_IP"')
    return [
        'export GPUPLAN_RUN="$DSTACK_RUN_ID" GPUPLAN_NODE="$DSTACK_NODE_RANK"',
        *here_document('"$HOME/gpuplan-run-on-node.sh"', SCRIPT.splitlines()),
        'bash "$HOME/gpuplan-run-on-node.sh" ' + words(launch(phase, wishes, rank=rank, address=address)),
    ]


def need_started(phase: Phase) -> str:
    """The machine type. Raises `UnusableInput` for types that dstack does not offer."""
    if phase.is_slice:
        if not TPUS.fullmatch(phase.instance_type):
            why = f"dstack {RELEASE} starts TPUs of one host, and {phase.instance_type} is not one of them"
            raise refuse(phase, f"{why}; export it to gcloud or skypilot")
        return phase.instance_type
    machine, cards = machine_and_cards(phase)
    if not STARTED[phase.provider].fullmatch(phase.instance_type) or (cards and cards.name in LEFT_OUT):
        instead = {"aws": "aws-cli", "azure": "az", "gcp": "gcloud"}[phase.provider]
        raise refuse(
            phase, f"dstack {RELEASE} does not start {phase.instance_type}; export it to {instead} or skypilot"
        )
    return machine
