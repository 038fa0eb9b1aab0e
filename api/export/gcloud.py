"""A script for gcloud: https://cloud.google.com/sdk/gcloud/reference/compute/instances/create

All machines start by one command; each knows its rank by the end of its name and finds the first by name. A TPU slice
is a queued resource: https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create
"""

from functools import cache

from api.export.boot import GCP_IMAGE, boot_lines, usual_image
from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment
from api.export.machines import machine_and_cards
from api.export.names import labels, run_name
from api.export.notes import again, commented, heading
from api.export.refusal import BOOKED, booked, need_cloud, need_nothing, refuse
from api.export.shell import Expanded, command, exports, here_document, words
from api.export.tpu import RUNTIMES, accelerator_type
from catalog.data_tables import data_table

TOOL = "gcloud"
#: Fabrics that need networks of their own: https://cloud.google.com/compute/docs/gpus/gpudirect
PLAIN_FABRICS = ("gVNIC", "tcp", "")
#: The rank is what the short host name ends in.
RANK = ('HOST="${HOSTNAME%%.*}"', 'NODE_RANK="${HOST##*-}"')


def gcloud(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds, and for what is booked but not named."""
    need_cloud(phase, TOOL, "gcp")
    lines = _slice(handover, phase, wishes) if phase.is_slice else _machines(handover, phase, wishes)
    notes = [*heading(handover, phase), *again(phase), *fabric(phase), *_newer(phase), "Start: bash FILE"]
    return "#!/bin/bash\n" + commented(notes) + "\n".join(["set -euo pipefail", *_zone(phase), *lines]) + "\n"


def fabric(phase: Phase) -> list[str]:
    """What the file leaves to whoever owns the networks, where the plan's time between nodes rests on it."""
    found = _fabrics().get(phase.instance_type, "")
    if phase.nodes == 1 or found in PLAIN_FABRICS:
        return []
    return [
        f"The plan's times rest on {found} between the nodes: create its networks first; this file uses one network"
    ]


@cache
def _fabrics() -> dict[str, str]:
    """The fabric of each machine type of Google Cloud."""
    return {row["name"]: row["fabric"] for row in data_table("instance_types.csv") if row["provider"] == "gcp"}


def _newer(phase: Phase) -> list[str]:
    """Words that a gcloud of the middle of 2025 did not have yet outside its alpha commands."""
    return ["Needs a gcloud that knows FLEX_START: gcloud components update"] if phase.kind.name == "flex_start" else []


def scheduling(phase: Phase, reservation: str | None) -> list[tuple[str, ...]]:
    """The options that say how the machines are paid for."""
    if phase.kind.interruptible:
        return [("--provisioning-model=SPOT", "--instance-termination-action=STOP")]
    if reservation is not None:
        booked_options = ("--reservation-affinity=specific", f"--reservation={reservation}")
        return [("--provisioning-model=RESERVATION_BOUND", "--instance-termination-action=DELETE"), booked_options]
    if phase.kind.max_run_hours is not None:
        longest = f"--max-run-duration={round(phase.kind.max_run_hours * 3600)}s"
        return [
            ("--provisioning-model=FLEX_START", longest, "--instance-termination-action=DELETE"),
            ("--reservation-affinity=none",),
        ]
    return [("--provisioning-model=STANDARD",)]


def _zone(phase: Phase) -> list[str]:
    if phase.zone:
        return [command(f"ZONE={phase.zone}")]
    return [f'ZONE="${{ZONE:?the price holds in all of {phase.region}: name a zone of it that has the machines}}"']


def _machines(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    name = run_name(handover, phase)
    machine, cards = machine_and_cards(phase)
    boot = ["#!/bin/bash", *RANK, f"MASTER_ADDR={name}-0", *boot_lines(handover, phase, wishes)]
    options: list[tuple[str, ...]] = [
        (Expanded('"${NAMES[@]}"'),),
        ("--zone", Expanded('"$ZONE"')),
        ("--machine-type", machine),
        *([("--accelerator", f"type={cards.resource},count={cards.count}")] if cards else []),
        *_image(phase),
        ("--boot-disk-size=200GB", "--maintenance-policy=TERMINATE"),
        *scheduling(phase, booked(phase, wishes)),
        ("--labels", ",".join(f"{key}={value}" for key, value in labels(handover, phase).items())),
        ("--metadata-from-file", Expanded('"startup-script=$WORK/boot"')),
    ]
    return [
        *([] if usual_image(phase) else [_needed(phase)]),
        'WORK="$(mktemp -d)"',
        "trap 'rm -rf \"$WORK\"' EXIT",
        *here_document('"$WORK/boot"', boot),
        "NAMES=()",
        f'for ((node = 0; node < {phase.nodes}; node++)); do NAMES+=("{name}-$node"); done',
        command("gcloud", "compute", "instances", "create", options=options),
    ]


def _image(phase: Phase) -> list[tuple[str, ...]]:
    if usual_image(phase):
        project, family = GCP_IMAGE
        return [("--image-project", project, "--image-family", family)]
    return [("--image-project", Expanded('"$IMAGE_PROJECT"'), "--image", Expanded('"$IMAGE"'))]


def _needed(phase: Phase) -> str:
    what = f"name an image with Docker and the driver of {phase.accelerator.name}"
    return f': "${{IMAGE_PROJECT:?{what}, and its project}}" "${{IMAGE:?{what}}}"'


def _slice(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    need_nothing(wishes, "a TPU slice", "its hosts run the command as it stands")
    if phase.kind.name in BOOKED or phase.kind.max_run_hours is not None:
        raise refuse(phase, f"gcloud has no word for {phase.kind.name} of a TPU slice")
    name = run_name(handover, phase)
    runtime = RUNTIMES.get(phase.accelerator.name)
    needed = f'RUNTIME="${{RUNTIME:?name the TPU software version of {phase.accelerator.name}}}"'
    created: list[tuple[str, ...]] = [
        (name, "--node-id", name),
        ("--zone", Expanded('"$ZONE"')),
        ("--accelerator-type", accelerator_type(phase)),
        ("--runtime-version", Expanded('"$RUNTIME"')),
        *([("--spot",)] if phase.kind.interruptible else []),
        ("--labels", ",".join(f"{key}={value}" for key, value in labels(handover, phase).items())),
    ]
    told = "; ".join([*exports(environment(handover, phase)), words(wishes.command)])
    started = [(name, "--zone", Expanded('"$ZONE"'), "--worker=all"), ("--command", told)]
    return [
        needed if runtime is None else f'RUNTIME="${{RUNTIME:-{runtime}}}"',
        command("gcloud", "compute", "tpus", "queued-resources", "create", options=created),
        f'until [ "$(gcloud compute tpus queued-resources describe {name} --zone "$ZONE" --format=\'value(state.state)\')" = ACTIVE ]; do sleep 30; done',
        command("gcloud", "compute", "tpus", "tpu-vm", "ssh", options=started),
    ]
