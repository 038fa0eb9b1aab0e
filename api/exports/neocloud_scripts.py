"""What the scripts for neoclouds share: one machine, checkpoints in a bucket, calls with a key, and ending a run by name."""

from gpuplan.api.exports.file_comments import again, commented, heading
from gpuplan.api.exports.machine_lifecycle import SHARED, credentials, exit_status, settings
from gpuplan.api.exports.node_script import is_mounted
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes, seller
from gpuplan.api.exports.tool_names import run_name
from gpuplan.api.exports.unsupported_features import booked, need_cloud, refuse
from gpuplan.catalog.runtime.errors import UnusableInput

#: `call METHOD PATH [FILE]`: the key goes through a pipe, because other users of a machine can read the words of a command.
CALL = [
    "call() {",
    "  local -a body=()",
    '  if [ "$#" -gt 2 ]; then body=(--header "Content-Type: application/json" --data "@$3"); fi',
    '  printf \'header = "Authorization: Bearer %s"\\n\' "$KEY" |',
    '    curl --config - --silent --show-error --fail-with-body --max-time 60 --request "$1" ${body[@]+"${body[@]}"} "$API$2"',
    "}",
]
#: A machine may be listed only some seconds after it was asked for, and is listed until it has ended.
TEARDOWN = [
    "# shellcheck disable=SC2329",
    "teardown() {",
    "  local ids id",
    "  for _ in 1 2 3 4 5; do",
    "    sleep 15",
    '    ids="$(machine_ids)" || continue',
    '    if [ -z "$ids" ]; then return 0; fi',
    '    for id in $ids; do end_one "$id" > /dev/null || true; done',
    "  done",
    "  return 1",
    "}",
    'by_hand() { echo "  bash $0 --end $RUN"; }',
]
#: `bash FILE --end RUN` ends the machines of a run whose script was killed.
END = ['if [ "${1:-}" = --end ]; then RUN="${2:?name the run}"; teardown; exit; fi']


def check(handover: Handover, phase: Phase, wishes: Wishes, tool: str, provider: str) -> None:
    """Refuse other providers, several machines, prices that the interface does not take, and checkpoints that need a mount."""
    need_cloud(phase, tool, provider)
    booked(phase, wishes)
    if phase.nodes > 1:
        reason = f"{phase.nodes} machines, and this script starts one: no interface joins several as the plan assumes"
        raise refuse(phase, f"{reason}; export it to skypilot or dstack, or plan again with constraints.max_nodes: 1")
    if is_mounted(handover, wishes):
        message = f"is a file system that machines of {seller(provider)} do not mount; write s3://, gs:// or abfs://"
        raise UnusableInput.at("checkpoints", message=message)


def refuse_spot(phase: Phase, tool: str) -> None:
    """Refuse interruptible machines where the interface cannot ask for them."""
    if phase.kind.interruptible:
        raise refuse(phase, f"{tool} has no word for {phase.kind.name}; export it to dstack")


def script(
    handover: Handover, phase: Phase, wishes: Wishes, *, functions: list[str], start: list[str], notes: list[str]
) -> str:
    """The whole file: comments, settings, the functions of the provider and the shared ones, and the start."""
    lines = [
        *settings(handover, phase, wishes, run_name(handover, phase)),
        *functions,
        *TEARDOWN,
        *exit_status(handover, wishes),
        *SHARED,
        *END,
        *credentials(handover, phase, wishes),
        *start,
        "watch_run",
    ]
    comments = [
        *heading(handover, phase, wishes),
        *again(phase),
        "Start: bash FILE. It runs until the run ends and then ends the machine; on a signal it does so at once.",
        *notes,
        "Needs python3 here, and the command line of the bucket's cloud to read the exit status of the run",
    ]
    return "#!/bin/bash\n" + commented(comments) + "\n".join(lines) + "\n"
