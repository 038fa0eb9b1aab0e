"""A script with a plain `docker run`, for machines that no other format starts: run on each machine by hand.

It ends its container on every exit, and the run ends at its limit. Whoever started the machine ends it.
"""

from gpuplan.api.exports.boot_script import container_lines
from gpuplan.api.exports.file_comments import again, commented, heading
from gpuplan.api.exports.node_script import GRACE_SECONDS, PLACEHOLDER, place_text
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import command
from gpuplan.api.exports.tool_names import run_name
from gpuplan.api.exports.unsupported_features import booked, need_no_slice


def docker(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a script for one machine. Raises `UnusableInput` for TPU slices."""
    need_no_slice(phase, "Docker alone")
    booked(phase, wishes)
    name = run_name(handover, phase)
    *before, run = container_lines(handover, phase, wishes, resume="bash FILE")
    several = [
        ': "${RUN:?name the run, the same on every machine}" "${NODE_RANK:?number the machines from 0}"',
        ': "${MASTER_ADDR:?name the address of machine 0 that the others reach}"',
    ]
    lines = [
        "set -euo pipefail",
        *(several if phase.nodes > 1 else [f'RUN="${{RUN:-{name}-$(date +%s)}}" NODE_RANK=0']),
        command(f"CHECKPOINTS={place_text(handover, wishes)}"),
        f'if [ "$CHECKPOINTS" = {PLACEHOLDER} ]; then',
        '  echo "gpuplan: there is no checkpoint location: export again with --checkpoints s3://bucket/path" >&2',
        "  exit 78",
        "fi",
        'BOX="$(mktemp -d)"',
        'if [ -n "${CREDENTIALS_FILE:-}" ]; then cp "$CREDENTIALS_FILE" "$BOX/credentials"; fi',
        'LIMIT=""',
        "# shellcheck disable=SC2329",
        "end_container() {",
        '  kill "$LIMIT" 2> /dev/null || true',
        f"  docker stop --time {GRACE_SECONDS} gpuplan > /dev/null 2>&1 || true",
        "  docker rm --force gpuplan > /dev/null 2>&1 || true",
        '  rm -rf "$BOX"',
        '  echo "gpuplan: the container has ended; END THIS MACHINE if you need it no more, it is billed until then" >&2',
        "}",
        "trap end_container EXIT",
        "trap 'exit 130' INT",
        "trap 'exit 143' TERM",
        "trap 'exit 129' HUP",
        f"(sleep {limit_seconds(handover, phase, wishes)} && docker stop gpuplan) > /dev/null 2>&1 &",
        'LIMIT="$!"',
        *before,
        f"{run} &",
        'status=0; wait "$!" || status="$?"',
        'exit "$status"',
    ]
    machines = (
        "this machine"
        if phase.nodes == 1
        else f"each of the {phase.nodes} machines, with RUN, NODE_RANK and MASTER_ADDR"
    )
    notes = [
        *heading(handover, phase, wishes),
        *again(phase),
        f"Start: bash FILE on {machines}. Docker and the driver of {phase.accelerator.name} are needed.",
        "Stop: Ctrl-C; the run gets time for a last checkpoint. This ends the container and NOT the machine.",
        "CREDENTIALS_FILE: lines KEY=VALUE that let rclone write to the bucket, if the machine has no identity there",
    ]
    return "#!/bin/bash\n" + commented(notes) + "\n".join(lines) + "\n"
