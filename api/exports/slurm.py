"""A batch script for Slurm: https://slurm.schedmd.com/sbatch.html

Slurm does not rent machines: the partition must have nodes of the plan's type, owned or started in the cloud by the
cluster. The machine is named in comments; counts are in Slurm's fields.
"""

from gpuplan.api.exports.file_comments import commented, heading
from gpuplan.api.exports.launch_command import launch
from gpuplan.api.exports.node_script import GRACE_SECONDS, SCRIPT, variables
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.shell_script import Expanded, command, exports, here_variable, words
from gpuplan.api.exports.tool_names import run_name
from gpuplan.api.exports.unsupported_features import need_no_slice, need_nothing
from gpuplan.planner.serialization.rounded_figures import moment

#: Stacks whose devices Slurm counts as GPUs.
GPUS = ("cuda", "rocm")


def slurm(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The phase as a batch script. Raises `UnusableInput` for TPU slices."""
    need_no_slice(phase, "Slurm")
    need_nothing(wishes, "slurm", "Slurm runs the command in the environment of its nodes")
    head = [
        *heading(handover, phase, wishes),
        f"Submit to a partition of {phase.instance_type} nodes: {_submit(phase)}",
    ]
    head += ["Stop: scancel JOB. Resume from the newest checkpoint: submit it again"]
    lines = [
        "set -euo pipefail",
        *exports(variables(handover, phase, wishes, resume=_submit(phase))),
        # A job that is requeued keeps its number.
        'export GPUPLAN_RUN="slurm-$SLURM_JOB_ID"',
        *here_variable("RUN_ON_NODE", SCRIPT.splitlines()),
    ]
    if phase.nodes > 1:
        lines += [
            # Not `head`: it closes the pipe early, which fails under pipefail for a long list.
            'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
            'export HEAD="${NODES[0]}"',
        ]
    return (
        "\n".join(["#!/bin/bash", *_directives(handover, phase, wishes), ""])
        + commented(head)
        + "\n".join([*lines, *_srun(phase, wishes)])
        + "\n"
    )


def _directives(handover: Handover, phase: Phase, wishes: Wishes) -> list[str]:
    """The #SBATCH options; values have only letters, digits and dashes."""
    days, minutes = divmod(limit_seconds(handover, phase, wishes) // 60, 24 * 60)
    options = [
        f"--job-name={run_name(handover, phase)}",
        f"--comment={handover.plan_id}-phase-{phase.number}",
        f"--nodes={phase.nodes}",
        "--ntasks-per-node=1",
        # Slurm does not count Trainium and Gaudi as GPUs; an exclusive node includes its devices.
        *([f"--gpus-per-node={phase.devices}"] if phase.accelerator.stack in GPUS else []),
        "--exclusive",
        f"--time={days}-{minutes // 60:02}:{minutes % 60:02}:00",
        f"--signal=USR1@{GRACE_SECONDS}",
        "--requeue" if phase.kind.interruptible else "--no-requeue",
    ]
    return [f"#SBATCH {option}" for option in options]


def _submit(phase: Phase) -> str:
    """The submit command; the shell converts times to the cluster's time zone."""
    if phase.number == 1 or phase.stands_by:
        return "sbatch --partition=NAME FILE"
    return f'sbatch --partition=NAME --begin="$(date -d {moment(phase.starts_at)} +%Y-%m-%dT%H:%M:%S)" FILE'


def _srun(phase: Phase, wishes: Wishes) -> list[str]:
    # Slurm sends USR1 to all processes before the end: only the script handles it and requests a checkpoint.
    start = (Expanded('bash -c "$RUN_ON_NODE"'), "gpuplan")
    if phase.nodes == 1:
        return [command("srun", *start, *launch(phase, wishes, rank="", address=""))]
    # Only the task that srun starts on a node knows the node's rank.
    inside = words([*start, *launch(phase, wishes, rank=Expanded('"$SLURM_NODEID"'), address=Expanded('"$HEAD"'))])
    return [command("srun", "bash", "-c", f"exec {inside}")]
