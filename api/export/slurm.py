"""A batch script for Slurm: https://slurm.schedmd.com/sbatch.html

Slurm does not rent machines: the partition has to have nodes of the plan's type, own ones or those that the cluster
starts in the cloud. So the machine stands in the comments, and the counts in Slurm's own fields.
"""

from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import launch
from api.export.names import run_name
from api.export.notes import commented, heading
from api.export.on_node import GRACE_SECONDS, SCRIPT, variables
from api.export.refusal import need_no_slice, need_nothing
from api.export.run_limit import limit_seconds
from api.export.shell import Expanded, command, exports, here_variable, words
from planner.document_figures import moment

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
    head += ["End it: scancel JOB. To go on from the newest checkpoint: submit it again"]
    lines = [
        "set -euo pipefail",
        *exports(variables(handover, phase, wishes, resume=_submit(phase))),
        # A job that is requeued keeps its number.
        'export GPUPLAN_RUN="slurm-$SLURM_JOB_ID"',
        *here_variable("RUN_ON_NODE", SCRIPT.splitlines()),
    ]
    if phase.nodes > 1:
        lines += [
            # Not through `head`, which closes the pipe early and so fails a long list under pipefail.
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
    """Options as sbatch reads them; every value is of letters, digits and dashes alone."""
    days, minutes = divmod(limit_seconds(handover, phase, wishes) // 60, 24 * 60)
    options = [
        f"--job-name={run_name(handover, phase)}",
        f"--comment={handover.plan_id}-phase-{phase.number}",
        f"--nodes={phase.nodes}",
        "--ntasks-per-node=1",
        # Trainium and Gaudi are no GPUs to Slurm; whoever has the node alone has its devices.
        *([f"--gpus-per-node={phase.devices}"] if phase.accelerator.stack in GPUS else []),
        "--exclusive",
        f"--time={days}-{minutes // 60:02}:{minutes % 60:02}:00",
        f"--signal=USR1@{GRACE_SECONDS}",
        "--requeue" if phase.kind.interruptible else "--no-requeue",
    ]
    return [f"#SBATCH {option}" for option in options]


def _submit(phase: Phase) -> str:
    """Slurm takes times in the cluster's own zone, so the shell converts them."""
    if phase.number == 1 or phase.stands_by:
        return "sbatch --partition=NAME FILE"
    return f'sbatch --partition=NAME --begin="$(date -d {moment(phase.starts_at)} +%Y-%m-%dT%H:%M:%S)" FILE'


def _srun(phase: Phase, wishes: Wishes) -> list[str]:
    # Slurm sends USR1 to every process before the end: only the script hears it, and asks the run for a checkpoint.
    start = (Expanded('bash -c "$RUN_ON_NODE"'), "gpuplan")
    if phase.nodes == 1:
        return [command("srun", *start, *launch(phase, wishes, rank="", address=""))]
    # Each node's own rank is known only to the task that srun starts there.
    inside = words([*start, *launch(phase, wishes, rank=Expanded('"$SLURM_NODEID"'), address=Expanded('"$HEAD"'))])
    return [command("srun", "bash", "-c", f"exec {inside}")]
