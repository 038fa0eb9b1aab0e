"""A script for RunPod's REST API v2 by curl: https://docs.runpod.io/api-reference-v2/pods/create-a-pod

A pod is the container itself, and would start again if its command ended. So it deletes itself with the key that RunPod
gives to every pod, at the run limit at the latest.
"""

import json

from gpuplan.api.exports.container_stacks import image
from gpuplan.api.exports.launch_command import launch
from gpuplan.api.exports.machine_lifecycle import RESUME, is_elsewhere
from gpuplan.api.exports.neocloud_names import runpod_gpu, stated_region
from gpuplan.api.exports.neocloud_scripts import CALL, check, refuse_spot, script
from gpuplan.api.exports.node_script import script_lines, variables
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import here_document, words
from gpuplan.catalog.parsing.json_object import JsonObject

TOOL = "RunPod's API"
#: What the pod runs; the script is in a variable, because the words of `args` are split.
ARGS = "bash -c 'bash <(printenv GPUPLAN_START)'"
DISK_GB = 200
_LISTED = (
    "import json, sys\n"
    'for row in json.load(sys.stdin)["pods"]:\n'
    '    if row.get("name") == sys.argv[1] and row.get("status") != "TERMINATED":\n'
    '        print(row["id"])'
)
_STATUS = 'import json, sys; print(int(json.load(sys.stdin).get("status") in ("PROVISIONING", "STARTING", "RUNNING")))'
_ID = 'import json, sys; print(json.load(sys.stdin)["id"])'
_ASKED = (
    "import json, sys\n"
    "name, path, disk, credentials = sys.argv[1:]\n"
    "asked = json.load(open(path))\n"
    "lines = open(credentials).read().splitlines() if credentials else []\n"
    'asked["env"] |= dict(line.split("=", 1) for line in lines if "=" in line) | {"GPUPLAN_RUN": name}\n'
    'print(json.dumps(asked | {"name": name, "disk": int(disk)}))'
)
FUNCTIONS = [
    ': "${RUNPOD_API_KEY:?name a key of the account that may create pods}"',
    'KEY="$RUNPOD_API_KEY" API="${GPUPLAN_RUNPOD_ENDPOINT:-https://api.runpod.io}" POD=""',
    *CALL,
    "# A list may have several pages, so the pod that was started is asked about by its id.",
    "machine_ids() {",
    f"  call GET /v2/pods | python3 -c '{_LISTED}' \"$RUN\"",
    "}",
    "machines_left() {",
    "  local pod ids",
    f'  if pod="$(call GET "/v2/pods/$POD" 2> /dev/null)"; then python3 -c \'{_STATUS}\' <<< "$pod"; return; fi',
    '  ids="$(machine_ids)" || return 1',
    '  if [ -z "$ids" ]; then echo 0; else echo 1; fi',
    "}",
    "# shellcheck disable=SC2329",
    'end_one() { call DELETE "/v2/pods/$1"; }',
]


def runpod_api(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script. Raises `UnusableInput` for other providers, several machines and mounted checkpoints."""
    check(handover, phase, wishes, TOOL, "runpod")
    refuse_spot(phase, TOOL)
    request = json.dumps(_request(handover, phase, wishes), indent=1)
    given = '"$CREDENTIALS_FILE"' if is_elsewhere(handover, phase, wishes) else '""'
    start = [
        *here_document('"$WORK/pod"', request.splitlines()),
        f'python3 -c \'{_ASKED}\' "$RUN" "$WORK/pod" "${{DISK_GB:-{DISK_GB}}}" {given} > "$WORK/asked"',
        "begin",
        f'POD="$(call POST /v2/pods "$WORK/asked" | python3 -c \'{_ID}\')"',
    ]
    notes = [
        "Keep it running (tmux, systemd-run). If it is killed, the pod still deletes itself; else: bash FILE --end RUN",
        f"From your account: RUNPOD_API_KEY, DISK_GB (else {DISK_GB})",
    ]
    return script(handover, phase, wishes, functions=FUNCTIONS, start=start, notes=notes)


def _request(handover: Handover, phase: Phase, wishes: Wishes) -> JsonObject:
    """The request for a pod, without its name, disk and credentials."""
    gpu, count, cloud = runpod_gpu(phase)
    region = stated_region(phase)
    start = "\n".join(_start(handover, phase, wishes)) + "\n"
    environment = variables(handover, phase, wishes, resume=RESUME) | {"GPUPLAN_NODE": "0", "GPUPLAN_START": start}
    return {
        "image": image(phase, wishes),
        "args": ARGS,
        "gpu": {"id": gpu, "count": count},
        "cloud": cloud,
        "env": environment,
    } | ({"dataCenterIds": [region]} if region and cloud == "SECURE" else {})


def _start(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """What the pod runs. `runpodctl` is in every pod: https://docs.runpod.io/runpodctl/overview"""
    return [
        'BOX="$(mktemp -d)"',
        "end_machine() {",
        '  runpodctl remove pod "$RUNPOD_POD_ID" || runpodctl pod delete "$RUNPOD_POD_ID"',
        "  sleep infinity",
        "}",
        f"(sleep {limit_seconds(handover, phase, wishes)} && end_machine) > /dev/null 2>&1 &",
        *here_document('"$BOX/run-on-node.sh"', script_lines(), mark="GPUPLAN_ON_NODE"),
        'bash "$BOX/run-on-node.sh" ' + words(launch(phase, wishes, rank="0", address="127.0.0.1")),
        "end_machine",
    ]
