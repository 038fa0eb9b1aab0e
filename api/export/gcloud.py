"""A script for gcloud: https://cloud.google.com/sdk/gcloud/reference/compute/instances/create

All machines start by one command; each knows its rank by the end of its name and finds the first by name. A TPU slice
is a queued resource: https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create
"""

from functools import cache

from api.export.boot import GCP_IMAGE, boot_lines, usual_image
from api.export.handover import Handover, Phase, Wishes
from api.export.lifecycle import RESUME, SHARED, boot_file, credentials, exit_status, is_elsewhere, settings, user_data
from api.export.machines import machine_and_cards
from api.export.names import labels, run_name
from api.export.notes import again, commented, heading
from api.export.on_node import script_lines, variables
from api.export.refusal import BOOKED, booked, need_cloud, need_nothing, refuse
from api.export.run_limit import limit_seconds
from api.export.shell import Expanded, command, exports, here_document, words
from api.export.tpu import RUNTIMES, accelerator_type
from catalog.data_tables import data_table
from catalog.errors import UnusableInput

TOOL = "gcloud"
#: https://cloud.google.com/compute/docs/instances/limit-vm-runtime
MOST_RUN_DAYS = 120
#: How long a slice is waited for: a day.
WAIT_SECONDS = 86_400
#: The lines KEY=VALUE of a file as exports, each value quoted.
_LOG_IN = [
    'while IFS="=" read -r key value; do LOG_IN+="export $key=$(printf %q "$value"); "; done < "$CREDENTIALS_FILE"',
]
_ACCOUNT = ["ACCOUNT=()", 'if [ -n "${SERVICE_ACCOUNT:-}" ]; then ACCOUNT=(--service-account "$SERVICE_ACCOUNT"); fi']
_OF_RUN = 'gcloud compute instances list --zones "$ZONE" --format="value(name)" --filter="labels.gpuplan-run=$RUN'
#: What is asked about the machines of one run, and how they are deleted. In a trap a bare `return` would have the status
#: from before it.
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
#: The same of a slice, which is there or not as a whole.
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
#: A slice that is refused, or not had in time, never becomes active.
_WAIT = [
    "while",
    '  STATE="$(gcloud compute tpus queued-resources describe "$RUN" --zone "$ZONE" --format=\'value(state.state)\')"',
    '  [ "$STATE" != ACTIVE ]',
    "do",
    '  case "$STATE" in FAILED | SUSPENDED) say "the slice is $STATE" && exit 1 ;; esac',
    "  pause 30",
    "done",
]
#: Fabrics that need networks of their own: https://cloud.google.com/compute/docs/gpus/gpudirect
PLAIN_FABRICS = ("gVNIC", "tcp", "")
#: The rank is what the short host name ends in.
RANK = ('HOST="${HOSTNAME%%.*}"', 'NODE_RANK="${HOST##*-}"')


def gcloud(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other clouds, and for what is booked but not named."""
    need_cloud(phase, TOOL, "gcp")
    lines = _slice(handover, phase, wishes) if phase.is_slice else _machines(handover, phase, wishes)
    notes = [
        *heading(handover, phase, wishes),
        *again(phase),
        *fabric(phase),
        *_newer(phase),
        "Start: bash FILE. It stays until the run ends and then deletes every machine; on a signal it deletes them at once.",
        *_unwatched(phase),
        "From your account: SERVICE_ACCOUNT (else the default one), which has to be let at the checkpoints",
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
    """What ends the machines if the script is killed."""
    keep = "Keep it running (tmux, systemd-run). Should it be killed,"
    if phase.is_slice:
        allowed = "which its service account has to be allowed (roles/tpu.admin)"
        return [f"{keep} a host deletes the slice at the run limit, {allowed}"]
    return [f"{keep} each machine still stops when its part of the run does"]


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


def max_run_seconds(handover: Handover, phase: Phase, wishes: Wishes) -> int:
    """The run limit as Compute Engine takes it. Raises `UnusableInput` for more than it takes."""
    found = limit_seconds(handover, phase, wishes)
    if found > MOST_RUN_DAYS * 86_400:
        message = f"{found / 3600:g} h is more than the {MOST_RUN_DAYS} days that Google Cloud takes; give less"
        raise UnusableInput.at("run_limit", message=message)
    return found


def scheduling(phase: Phase, reservation: str | None, limit: int) -> list[tuple[str, ...]]:
    """The options that say how the machines are paid for, and that they are deleted at the run limit in seconds.

    Machines of a booking are deleted when it ends, and take no limit beside that.
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
    return [f'ZONE="${{ZONE:?the price holds in all of {phase.region}: name a zone of it that has the machines}}"']


def _machines(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    name = run_name(handover, phase)
    machine, cards = machine_and_cards(phase)
    boot = [*RANK, f"MASTER_ADDR={name}-0", *boot_lines(handover, phase, wishes, resume=RESUME)]
    limit = max_run_seconds(handover, phase, wishes)
    options: list[tuple[str, ...]] = [
        (Expanded('"${NAMES[@]}"'),),
        ("--zone", Expanded('"$ZONE"')),
        ("--machine-type", machine),
        *([("--accelerator", f"type={cards.resource},count={cards.count}")] if cards else []),
        *_image(phase),
        ("--boot-disk-size=200GB", "--maintenance-policy=TERMINATE"),
        *scheduling(phase, booked(phase, wishes), limit),
        ("--labels", _labels(handover, phase)),
        ("--scopes=cloud-platform", Expanded('"${ACCOUNT[@]}"')),
        ("--metadata-from-file", Expanded('"startup-script=$WORK/user-data"')),
    ]
    return [
        *([] if usual_image(phase) else [_needed(phase)]),
        *boot_file(boot),
        *user_data(handover, phase, wishes, []),
        *_ACCOUNT,
        "NAMES=()",
        f'for ((node = 0; node < {phase.nodes}; node++)); do NAMES+=("{name}-$node"); done',
        "begin",
        command("gcloud", "compute", "instances", "create", options=options),
        "watch_run",
    ]


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
    need_nothing(wishes, "a TPU slice", "its hosts run the command as it stands")
    if phase.kind.name in BOOKED or phase.kind.max_run_hours is not None:
        raise refuse(phase, f"gcloud has no word for {phase.kind.name} of a TPU slice")
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
        # It ends some minutes after the limit even if a host hangs; in the background, so that a signal is heard at once.
        f"timeout --kill-after=60 {limit + 600} "
        + command("gcloud", "compute", "tpus", "tpu-vm", "ssh", options=started)
        + " &",
        'wait "$!"',
    ]


def _on_host(handover: Handover, phase: Phase, wishes: Wishes, limit: int) -> list[str]:
    """What each host of a slice runs: it arms the run limit and starts the command as every node does."""
    delete = 'gcloud compute tpus queued-resources delete "$RUN" --zone "$ZONE" --force --quiet'
    said = variables(handover, phase, wishes, resume=RESUME)
    worker = "http://metadata.google.internal/computeMetadata/v1/instance/attributes/agent-worker-number"
    return [
        'export GPUPLAN_RUN="$RUN"',
        f'export GPUPLAN_NODE="$(curl -sS -H Metadata-Flavor:Google {worker})"',
        *exports(said),
        f"sudo systemd-run --on-active={limit + 300} {delete} || exit 1",
        'BOX="$(mktemp -d)"',
        *here_document('"$BOX/run-on-node.sh"', script_lines(), mark="GPUPLAN_ON_NODE"),
        'bash "$BOX/run-on-node.sh" ' + words(wishes.command),
    ]
