"""A script for the command line of Nebius: https://docs.nebius.com/cli

The boot disk is managed, so it goes with the machine. A machine that shuts itself down costs no more than its disk.
"""

from gpuplan.api.exports.boot_script import boot_lines
from gpuplan.api.exports.machine_lifecycle import RESUME, boot_file, user_data
from gpuplan.api.exports.neocloud_names import nebius_preset
from gpuplan.api.exports.neocloud_scripts import check, script
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.shell_script import Expanded, command

TOOL = "the command line of Nebius"
_LISTED = (
    "import json, sys\n"
    'for row in json.load(sys.stdin).get("items", []):\n'
    '    if row["metadata"]["name"] == sys.argv[1] and row.get("status", {}).get("state", "") not in sys.argv[2:]:\n'
    '        print(row["metadata"]["id"])'
)
_SUBNET = 'import json, sys; print(json.load(sys.stdin)["items"][0]["metadata"]["id"])'
_LIST = 'nebius compute instance list --parent-id "$NEBIUS_PROJECT_ID" --page-size 999 --format json'
FUNCTIONS = [
    ': "${NEBIUS_PROJECT_ID:?name the id of a project in the region}"',
    f'named() {{ {_LIST} | python3 -c \'{_LISTED}\' "$RUN" "$@"; }}',
    "machine_ids() { named DELETING; }",
    "machines_left() {",
    "  local ids",
    '  ids="$(named DELETING STOPPED STOPPING ERROR)" || return 1',
    '  if [ -z "$ids" ]; then echo 0; else echo 1; fi',
    "}",
    "# shellcheck disable=SC2329",
    'end_one() { nebius compute instance delete --id "$1"; }',
]
#: https://docs.nebius.com/compute/storage/boot-disk-images
IMAGE_FAMILY = "ubuntu24.04-cuda12"


def nebius_cli(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other providers, several machines and mounted checkpoints."""
    check(handover, phase, wishes, TOOL, "nebius")
    platform, preset = nebius_preset(phase)
    network = (
        '[{\\"name\\":\\"eth0\\",\\"subnet_id\\":\\"$SUBNET_ID\\",\\"ip_address\\":{},\\"public_ip_address\\":{}}]'
    )
    options: list[tuple[str, ...]] = [
        ("--parent-id", Expanded('"$NEBIUS_PROJECT_ID"'), "--name", Expanded('"$RUN"')),
        ("--resources-platform", platform, "--resources-preset", preset),
        ("--boot-disk-attach-mode", "read_write", "--boot-disk-managed-disk-name", Expanded('"$RUN"')),
        ("--boot-disk-managed-disk-type", "network_ssd"),
        ("--boot-disk-managed-disk-size-gibibytes", Expanded('"${DISK_GIB:-500}"')),
        (
            "--boot-disk-managed-disk-source-image-family-image-family",
            Expanded(f'"${{IMAGE_FAMILY:-{IMAGE_FAMILY}}}"'),
        ),
        ("--recovery-policy", "fail"),
        *(
            (("--preemptible-on-preemption", "stop", "--preemptible-priority", "3"),)
            if phase.kind.interruptible
            else ()
        ),
        ("--network-interfaces", Expanded(f'"{network}"')),
        ("--cloud-init-user-data", Expanded('"$(cat "$WORK/user-data")"')),
        ("--format", "json"),
    ]
    subnets = 'nebius vpc subnet list --parent-id "$NEBIUS_PROJECT_ID" --format json'
    start = [
        f"SUBNET_ID=\"${{SUBNET_ID:-$({subnets} | python3 -c '{_SUBNET}')}}\"",
        *boot_file(boot_lines(handover, phase, wishes, resume=RESUME)),
        *user_data(handover, phase, wishes, ["printf '%s\\n' NODE_RANK=0 MASTER_ADDR=127.0.0.1"]),
        "begin",
        command("nebius", "compute", "instance", "create", options=options) + " > /dev/null",
    ]
    notes = [
        "Keep it running (tmux, systemd-run). If it is killed, the machine still shuts down and only its disk is billed;",
        "then delete both: bash FILE --end RUN",
        f"From your account: NEBIUS_PROJECT_ID (a project in {phase.region}); SUBNET_ID (else the project's first),",
        f"IMAGE_FAMILY with Docker and the driver (else {IMAGE_FAMILY}), DISK_GIB (else 500)",
    ]
    return script(handover, phase, wishes, functions=FUNCTIONS, start=start, notes=notes)
