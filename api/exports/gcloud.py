"""A script for gcloud: https://cloud.google.com/sdk/gcloud/reference/compute/instances/create

One command starts all machines. The end of a machine's name is its rank; the first node is found by name. A TPU slice
is a queued resource: https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create
"""

from functools import cache

from gpuplan.api.exports.boot_script import GCP_IMAGE, boot_lines, usual_image
from gpuplan.api.exports.container_stacks import machine_and_cards
from gpuplan.api.exports.file_comments import again, commented, heading
from gpuplan.api.exports.machine_lifecycle import (
    RESUME,
    SHARED,
    boot_file,
    credentials,
    exit_status,
    is_elsewhere,
    settings,
    user_data,
)
from gpuplan.api.exports.node_script import script_lines, variables
from gpuplan.api.exports.places_in_order import (
    asks_in_order,
    left_out,
    order_notes,
    other_place,
    phases_to_try,
    start_in_order,
)
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded, command, exports, here_document, words
from gpuplan.api.exports.tool_names import labels, run_name
from gpuplan.api.exports.tpu_names import RUNTIMES, accelerator_type
from gpuplan.api.exports.unsupported_features import BOOKED, booked, need_cloud, need_nothing, refuse
from gpuplan.catalog.model.data_tables import data_table
from gpuplan.catalog.runtime.errors import UnusableInput

TOOL = "gcloud"
#: https://cloud.google.com/compute/docs/instances/limit-vm-runtime
MOST_RUN_DAYS = 120
#: Longest wait for a slice: one day.
WAIT_SECONDS = 86_400
#: The lines KEY=VALUE of a file as exports, each value quoted.
_LOG_IN = [
    'while IFS="=" read -r key value; do LOG_IN+="export $key=$(printf %q "$value"); "; done < "$CREDENTIALS_FILE"',
]
_ACCOUNT = ["ACCOUNT=()", 'if [ -n "${SERVICE_ACCOUNT:-}" ]; then ACCOUNT=(--service-account "$SERVICE_ACCOUNT"); fi']
_OF_RUN = 'gcloud compute instances list --zones "$ZONE" --format="value(name)" --filter="labels.gpuplan-run=$RUN'
#: Commands that list and delete the machines of a run. In a trap, a bare `return` would return the status from before.
FUNCTIONS = [
    "machines_left() {",
    "  local found",
    f'  found="$({_OF_RUN} AND status=(PROVISIONING STAGING RUNNING)")" || return 1',
    '  grep -c . <<< "$found" || true',
    "}",
    "# shellcheck disable=SC2329",
    "teardown() {",
    "  local found",
    "  local -a names",
    f'  found="$({_OF_RUN}")" || return 1',
    '  read -r -d "" -a names <<< "$found" || true',
    '  if [ "${#names[@]}" -eq 0 ]; then return 0; fi',
    '  gcloud compute instances delete "${names[@]}" --zone "$ZONE" --quiet',
    "}",
    "by_hand() {",
    "  local names=\"gcloud compute instances list --zones $ZONE --filter=labels.gpuplan-run=$RUN --format='value(name)'\"",
    '  echo "  gcloud compute instances delete \\$($names) --zone $ZONE --quiet"',
    "}",
]
#: The same for a slice, which exists only as a whole.
SLICE_FUNCTIONS = [
    "# shellcheck disable=SC2329",
    "teardown() {",
    "  local found",
    '  found="$(gcloud compute tpus queued-resources list --zone "$ZONE" --format="value(name)")" || return 1',
    '  if ! grep -q "$RUN\\$" <<< "$found"; then return 0; fi',
    '  gcloud compute tpus queued-resources delete "$RUN" --zone "$ZONE" --force --quiet',
    "}",
    'by_hand() { echo "  gcloud compute tpus queued-resources delete $RUN --zone $ZONE --force --quiet"; }',
]
#: A slice that is refused or not available in time never becomes active.
_WAIT = [
    "while",
    '  STATE="$(gcloud compute tpus queued-resources describe "$RUN" --zone "$ZONE" --format=\'value(state.state)\')"',
    '  [ "$STATE" != ACTIVE ]',
    "do",
    '  case "$STATE" in FAILED | SUSPENDED) say "the slice is $STATE" && exit 1 ;; esac',
    "  pause 30",
    "done",
]
#: Fabrics that need their own networks: https://cloud.google.com/compute/docs/gpus/gpudirect
PLAIN_FABRICS = ("gVNIC", "tcp", "")
#: The rank is the end of the short host name.
RANK = ('HOST="${HOSTNAME%%.*}"', 'NODE_RANK="${HOST##*-}"')


def gcloud(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds, and for a booking without reservation."""
    need_cloud(phase, TOOL, "gcp")
    lines = _slice(handover, phase, wishes) if phase.is_slice else _machines(handover, phase, wishes)
    notes = [
        *heading(handover, phase, wishes),
        *(again(phase) if phase.is_slice else order_notes(handover, phases_to_try(handover, phase))),
        *fabric(phase),
        *_newer(phase),
        "Start: bash FILE. It runs until the run ends and then deletes all machines; on a signal it does so at once.",
        *_unwatched(phase),
        "From your account: SERVICE_ACCOUNT (else the default one), which needs access to the checkpoints",
    ]
    start = [
        *settings(handover, phase, wishes, run_name(handover, phase)),
        *_zone(phase),
        *(SLICE_FUNCTIONS if phase.is_slice else FUNCTIONS),
        *exit_status(handover, wishes),
        *SHARED,
        *credentials(handover, phase, wishes),
    ]
    return "#!/bin/bash\n" + commented(notes) + "\n".join([*start, *lines]) + "\n"


def _unwatched(phase: Phase) -> list[str]:
    """How the machines end if the script is killed."""
    keep = "Keep it running (tmux, systemd-run). If it is killed,"
    if phase.is_slice:
        allowed = "for which its service account needs roles/tpu.admin"
        return [f"{keep} a host deletes the slice at the run limit, {allowed}"]
    return [f"{keep} every machine still stops when its part of the run ends"]


def fabric(phase: Phase) -> list[str]:
    """A note on fabrics that need their own networks, which the plan's times assume."""
    fabric_name = _fabrics().get(phase.instance_type, "")
    if phase.nodes == 1 or fabric_name in PLAIN_FABRICS:
        return []
    return [
        f"The plan's times assume {fabric_name} between the nodes: create its networks first; this file uses one network"
    ]


@cache
def _fabrics() -> dict[str, str]:
    """The fabric of each machine type of Google Cloud."""
    return {row["name"]: row["fabric"] for row in data_table("instance_types.csv") if row["provider"] == "gcp"}


def _newer(phase: Phase) -> list[str]:
    """A note on options that gcloud of mid-2025 had only in its alpha commands."""
    return (
        ["Needs a gcloud that supports FLEX_START: gcloud components update"] if phase.kind.name == "flex_start" else []
    )


def max_run_seconds(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """The run limit in seconds. Raises `UnusableInput` above Compute Engine's limit."""
    seconds = limit_seconds(handover, phase, wishes)
    if seconds > MOST_RUN_DAYS * 86_400:
        message = f"{seconds / 3600:g} h is more than the {MOST_RUN_DAYS} days that Google Cloud allows; give less"
        raise UnusableInput.at("run_limit", message=message)
    return seconds


def scheduling(phase: Phase, reservation: str | None, limit: int) -> list[tuple[str, ...]]:
    """Options of the price kind, and of deletion at the run limit in seconds.

    Machines of a booking are deleted at its end and accept no other limit.
    """
    ended = (f"--max-run-duration={limit}s", "--instance-termination-action=DELETE")
    if phase.kind.interruptible:
        return [("--provisioning-model=SPOT", *ended)]
    if reservation is not None:
        booked_options = ("--reservation-affinity=specific", f"--reservation={reservation}")
        return [("--provisioning-model=RESERVATION_BOUND", "--instance-termination-action=DELETE"), booked_options]
    if phase.kind.max_run_hours is not None:
        return [("--provisioning-model=FLEX_START", *ended), ("--reservation-affinity=none",)]
    return [("--provisioning-model=STANDARD", *ended)]


def _zone(phase: Phase) -> list[str]:
    if phase.zone:
        return [command(f"ZONE={phase.zone}")]
    return [f'ZONE="${{ZONE:?the price applies to all of {phase.region}: name a zone with these machines}}"']


def _machines(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    name = run_name(handover, phase)
    boot = [*RANK, f"MASTER_ADDR={name}-0", *boot_lines(handover, phase, wishes, resume=RESUME)]
    phases = phases_to_try(handover, phase)
    lines = [
        *([] if usual_image(phase) else [_needed(phase)]),
        *boot_file(boot),
        *user_data(handover, phase, wishes, []),
        *_ACCOUNT,
        "NAMES=()",
        f'for ((node = 0; node < {phase.nodes}; node++)); do NAMES+=("{name}-$node"); done',
    ]
    if not asks_in_order(handover, phase):
        return [*lines, "begin", _created(handover, phase, wishes), "watch_run"]
    named = any(not tried.zone and tried.region == phase.region for tried in phases)
    return [
        *lines,
        *(['FIRST_ZONE="$ZONE"'] if named else []),
        *start_in_order(
            handover,
            phases,
            wishes,
            where=lambda tried: [_zone_of(tried, phase)],
            start=lambda tried: [*_zone_needed(tried, phase), _created(handover, tried, wishes)],
        ),
    ]


def _zone_of(phase: Phase, first: Phase) -> str:
    """The zone of a place; where the price is that of a region, one that the user names."""
    if phase.zone:
        return command(f"ZONE={phase.zone}")
    return 'ZONE="$FIRST_ZONE"' if phase.region == first.region else f'ZONE="${{{other_place("ZONE", phase)}:-}}"'


def _zone_needed(phase: Phase, first: Phase) -> list[str]:
    """Leaves out a region in which no zone is named."""
    return [] if phase.zone or phase.region == first.region else [left_out("ZONE", phase)]


def _created(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The command that starts all machines."""
    machine, cards = machine_and_cards(phase)
    options: list[tuple[str, ...]] = [
        (Expanded('"${NAMES[@]}"'),),
        ("--zone", Expanded('"$ZONE"')),
        ("--machine-type", machine),
        *([("--accelerator", f"type={cards.resource},count={cards.count}")] if cards else []),
        *_image(phase),
        ("--boot-disk-size=200GB", "--maintenance-policy=TERMINATE"),
        *scheduling(phase, booked(phase, wishes), max_run_seconds(handover, phase, wishes)),
        ("--labels", _labels(handover, phase)),
        ("--scopes=cloud-platform", Expanded('"${ACCOUNT[@]}"')),
        ("--metadata-from-file", Expanded('"startup-script=$WORK/user-data"')),
    ]
    return command("gcloud", "compute", "instances", "create", options=options)


def _labels(handover: Handover, phase: Phase) -> str:
    """The labels as one word, with the name of the run."""
    fixed = ",".join(f"{key}={value}" for key, value in labels(handover, phase).items())
    return Expanded(f'"{fixed},gpuplan-run=$RUN"')


def _image(phase: Phase) -> list[tuple[str, ...]]:
    if usual_image(phase):
        project, family = GCP_IMAGE
        return [("--image-project", project, "--image-family", family)]
    return [("--image-project", Expanded('"$IMAGE_PROJECT"'), "--image", Expanded('"$IMAGE"'))]


def _needed(phase: Phase) -> str:
    what = f"name an image with Docker and the driver of {phase.accelerator.name}"
    return f': "${{IMAGE_PROJECT:?{what}, and its project}}" "${{IMAGE:?{what}}}"'


def _slice(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    need_nothing(wishes, "a TPU slice", "its hosts run the command without a container")
    if phase.kind.name in BOOKED or phase.kind.max_run_hours is not None:
        raise refuse(phase, f"gcloud does not support {phase.kind.name} for a TPU slice")
    runtime = RUNTIMES.get(phase.accelerator.name)
    needed = f'RUNTIME="${{RUNTIME:?name the TPU software version of {phase.accelerator.name}}}"'
    created: list[tuple[str, ...]] = [
        (Expanded('"$RUN"'), "--node-id", Expanded('"$RUN"')),
        ("--zone", Expanded('"$ZONE"')),
        ("--accelerator-type", accelerator_type(phase)),
        ("--runtime-version", Expanded('"$RUNTIME"')),
        ("--valid-until-duration", f"{WAIT_SECONDS}s"),
        ("--scopes=https://www.googleapis.com/auth/cloud-platform", Expanded('"${ACCOUNT[@]}"')),
        *([("--spot",)] if phase.kind.interruptible else []),
        ("--labels", _labels(handover, phase)),
    ]
    started: list[tuple[str, ...]] = [(Expanded('"$RUN"'), "--zone", Expanded('"$ZONE"'), "--worker=all")]
    # The script gives the name of the run and the zone; the rest is the same for every run.
    started += [("--command", Expanded('"RUN=$RUN ZONE=$ZONE; ${LOG_IN}$(cat "$WORK/boot")"'))]
    limit = limit_seconds(handover, phase, wishes)
    return [
        needed if runtime is None else f'RUNTIME="${{RUNTIME:-{runtime}}}"',
        *boot_file(_on_host(handover, phase, wishes, limit)),
        *_ACCOUNT,
        'LOG_IN=""',
        *(_LOG_IN if is_elsewhere(handover, phase, wishes) else []),
        "begin",
        command("gcloud", "compute", "tpus", "queued-resources", "create", options=created),
        *_WAIT,
        # Ends some minutes after the limit even if a host hangs; runs in the background so that signals are handled at once.
        f"timeout --kill-after=60 {limit + 600} "
        + command("gcloud", "compute", "tpus", "tpu-vm", "ssh", options=started)
        + " &",
        'wait "$!"',
    ]


def _on_host(handover: Handover, phase: Phase, wishes: Wishes, limit: int) -> list[str]:
    """The script of a slice's hosts: sets the run limit and starts the command like all nodes."""
    delete = 'gcloud compute tpus queued-resources delete "$RUN" --zone "$ZONE" --force --quiet'
    environment = variables(handover, phase, wishes, resume=RESUME)
    worker = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/agent-worker-number"
    return [
        'export GPUPLAN_RUN="$RUN"',
        f'export GPUPLAN_NODE="$(curl -sS -H Metadata-Flavor:Google {worker})"',
        *exports(environment),
        f"sudo systemd-run --on-active={limit + 300} {delete} || exit 1",
        'BOX="$(mktemp -d)"',
        *here_document('"$BOX/run-on-node.sh"', script_lines(), mark="GPUPLAN_ON_NODE"),
        'bash "$BOX/run-on-node.sh" ' + words(wishes.command),
    ]
