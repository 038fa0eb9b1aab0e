"""A script for Lambda's API by curl: https://docs.lambda.ai/api/cloud

A machine is billed until the API ends it: a shutdown does not. It cannot end itself, because it gets no key. Its end is
known by the exit status beside the checkpoints.
"""

from gpuplan.api.exports.boot_script import boot_lines
from gpuplan.api.exports.machine_lifecycle import RESUME, boot_file, user_data
from gpuplan.api.exports.neocloud_names import stated_region
from gpuplan.api.exports.neocloud_scripts import CALL, check, refuse_spot, script
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.shell_script import command

TOOL = "Lambda's API"
_LISTED = (
    "import json, sys\n"
    'for row in json.load(sys.stdin)["data"]:\n'
    '    if row.get("name") == sys.argv[1] and row.get("status") not in ("terminated", "terminating"):\n'
    '        print(row["id"])'
)
_REGION = (
    "import json, sys\n"
    'rows = json.load(sys.stdin)["data"].get(sys.argv[1], {}).get("regions_with_capacity_available", [])\n'
    'print(rows[0]["name"] if rows else "")'
)
_LAUNCH = (
    "import json, sys\n"
    "region, machine, key, name, path = sys.argv[1:]\n"
    'asked = {"region_name": region, "instance_type_name": machine, "ssh_key_names": [key], "name": name}\n'
    'print(json.dumps(asked | {"user_data": open(path).read()}))'
)
FUNCTIONS = [
    ': "${LAMBDA_API_KEY:?name a key of the account}" "${SSH_KEY_NAME:?name an SSH key of the account}"',
    'KEY="$LAMBDA_API_KEY" API="${GPUPLAN_LAMBDA_ENDPOINT:-https://cloud.lambda.ai/api/v1}"',
    *CALL,
    f"machine_ids() {{ call GET /instances | python3 -c '{_LISTED}' \"$RUN\"; }}",
    "machines_left() {",
    "  local ids",
    '  ids="$(machine_ids)" || return 1',
    '  if [ -z "$ids" ] || [[ "$(read_exit_status 2> /dev/null)" =~ ^[0-9]+$ ]]; then echo 0; else echo 1; fi',
    "}",
    "# shellcheck disable=SC2329",
    "end_one() {",
    '  printf \'{"instance_ids": ["%s"]}\' "$1" > "$WORK/ended"',
    '  call POST /instance-operations/terminate "$WORK/ended"',
    "}",
]


def lambda_api(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other providers, several machines and mounted checkpoints."""
    check(handover, phase, wishes, TOOL, "lambda")
    refuse_spot(phase, TOOL)
    machine = phase.instance_type
    start = [
        command(f"MACHINE={machine}"),
        f'REGION="${{REGION:-{stated_region(phase)}}}"',
        f'if [ -z "$REGION" ]; then REGION="$(call GET /instance-types | python3 -c \'{_REGION}\' "$MACHINE")"; fi',
        'if [ -z "$REGION" ]; then say "no region has capacity for $MACHINE now: try again later, or name REGION"; exit 1; fi',
        *boot_file(boot_lines(handover, phase, wishes, resume=RESUME)),
        *user_data(handover, phase, wishes, ["printf '%s\\n' NODE_RANK=0 MASTER_ADDR=127.0.0.1"]),
        f'python3 -c \'{_LAUNCH}\' "$REGION" "$MACHINE" "$SSH_KEY_NAME" "$RUN" "$WORK/user-data" > "$WORK/asked"',
        "begin",
        'call POST /instance-operations/launch "$WORK/asked" > /dev/null',
    ]
    notes = [
        "Keep it running (tmux, systemd-run): IF IT IS KILLED, THE MACHINE STAYS AND IS BILLED. Then: bash FILE --end RUN",
        "From your account: LAMBDA_API_KEY, SSH_KEY_NAME; REGION (else the plan's, or the first one with capacity)",
    ]
    return script(handover, phase, wishes, functions=FUNCTIONS, start=start, notes=notes)
