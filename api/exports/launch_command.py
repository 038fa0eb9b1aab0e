"""The launch command of every node, and the layout as environment variables.

torchrun starts one process per device. The training script reads the layout from the variables of `environment`.
"""

import re
import shlex
from collections.abc import Mapping

from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation, read_checkpoint_location
from gpuplan.catalog.parsing.quantities import hours, shown
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.serialization.rounded_figures import moment

#: PyTorch's own default for the rendezvous: https://docs.pytorch.org/docs/stable/elastic/run.html
PORT = 29500
#: Names of Python, which are dropped because torchrun starts Python itself.
_PYTHONS = ("python", "python3")
#: Longest command; longer ones belong in a script.
MOST_WORDS, LONGEST_COMMAND = 200, 4000
LEAST_LIMIT_HOURS = 1.0
#: https://github.com/distribution/reference: a host, a path, a tag and a digest.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_RESERVATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,254}")
#: Layout fields by the variable that carries them.
_LAYOUT = {
    "GPUPLAN_DATA_PARALLEL": "data",
    "GPUPLAN_TENSOR_PARALLEL": "tensor",
    "GPUPLAN_PIPELINE_PARALLEL": "pipeline",
    "GPUPLAN_CONTEXT_PARALLEL": "context",
    "GPUPLAN_EXPERT_PARALLEL": "expert",
    "GPUPLAN_PIPELINE_INTERLEAVE": "interleave",
    "GPUPLAN_ZERO_STAGE": "zero_stage",
    "GPUPLAN_MICRO_BATCH": "micro_batch",
    "GPUPLAN_ACTIVATION_CHECKPOINTING": "checkpointing",
}


def read_command(text: str) -> tuple[str, ...]:
    """The words of a command, quoted as in a shell; nothing in them is expanded. Raises `UnusableInput` at `command`."""
    if len(text) > LONGEST_COMMAND or not text.isprintable():
        message = f"{shown(text)} is not accepted; write one line of at most {LONGEST_COMMAND} printable characters"
        raise UnusableInput.at("command", message=message)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UnusableInput.at("command", message=f"{shown(text)} is not accepted: {error}".rstrip(".")) from None
    if not 0 < len(words) <= MOST_WORDS or not words[0]:
        message = f"{shown(text)} is not accepted; write a program and its arguments, such as 'python train.py'"
        raise UnusableInput.at("command", message=message)
    return words


def read_wishes(
    *,
    command: str,
    image: str | None = None,
    reservation: str | None = None,
    run_limit: str | None = None,
    checkpoints: str | None = None,
) -> Wishes:
    """Read the user's options of an export. Raises `UnusableInput` at the field."""
    if image is not None and not _IMAGE.fullmatch(image):
        message = f"{shown(image)} is not accepted; write a container image such as registry.example/team/train:1.0"
        raise UnusableInput.at("image", message=message)
    if reservation is not None and not _RESERVATION.fullmatch(reservation):
        message = (
            f"{shown(reservation)} is not accepted; write the id or name of the booking, such as cr-0123456789abcdef0"
        )
        raise UnusableInput.at("reservation", message=message)
    return Wishes(
        command=read_command(command),
        image=image,
        reservation=reservation,
        run_limit_hours=None if run_limit is None else _run_limit(run_limit),
        checkpoints=None if checkpoints is None else _checkpoints(checkpoints),
    )


def _run_limit(text: str) -> float:
    try:
        limit = hours(text)
    except ValueError as error:
        raise UnusableInput.at("run_limit", message=str(error)) from None
    if limit < LEAST_LIMIT_HOURS:
        message = f"{shown(text)} is not accepted; write at least 1 h: the last 15 minutes are for a last checkpoint"
        raise UnusableInput.at("run_limit", message=message)
    return limit


def _checkpoints(text: str) -> CheckpointLocation:
    try:
        return read_checkpoint_location(text)
    except ValueError as error:
        raise UnusableInput.at("checkpoints", message=str(error)) from None


def environment(handover: Handover, phase: Phase) -> dict[str, str]:
    """Environment variables of the plan for the training script; times are ISO 8601 in UTC, intervals in seconds."""
    values = {
        "GPUPLAN_PLAN": handover.plan_id,
        "GPUPLAN_JOB": handover.job,
        "GPUPLAN_PHASE": str(phase.number),
        "GPUPLAN_PHASES": str(len(handover.phases)),
        "GPUPLAN_PRECISION": phase.precision,
    }
    if not phase.stands_by:
        values["GPUPLAN_SHARE_BEFORE"] = f"{phase.share_before:.9g}"
        values["GPUPLAN_SHARE"] = f"{phase.share:.9g}"
    layout: Mapping[str, object] = phase.layout
    values |= {name: str(layout[field]) for name, field in _LAYOUT.items()}
    if phase.checkpoint_interval_hours is not None:
        values["GPUPLAN_CHECKPOINT_SECONDS"] = str(max(1, round(phase.checkpoint_interval_hours * 3600)))
    if phase.hands_over_at is not None:
        values["GPUPLAN_HAND_OVER_AT"] = moment(phase.hands_over_at)
    if phase.switch_by is not None:
        values["GPUPLAN_SWITCH_BY"] = moment(phase.switch_by)
    if phase.switch_share is not None:
        values["GPUPLAN_SWITCH_SHARE"] = f"{phase.switch_share:.9g}"
    return values


def launch(phase: Phase, wishes: Wishes, *, rank: str, address: str) -> list[str]:
    """The launcher's words on one node; `rank` and `address` are expressions of the export tool.

    A TPU host runs the command unchanged: processes find their slice themselves.
    """
    if phase.is_slice:
        return list(wishes.command)
    nodes = ["--nnodes", str(phase.nodes), "--node-rank", rank, "--master-addr", address, "--master-port", str(PORT)]
    alone = ["--standalone"]
    where = nodes if phase.nodes > 1 else alone
    return ["torchrun", *where, "--nproc-per-node", str(phase.devices), *_script(wishes.command)]


def _script(command: tuple[str, ...]) -> list[str]:
    """The command for torchrun: a script, a module, or a program other than Python."""
    program, *rest = command
    if program in _PYTHONS and rest and not rest[0].startswith("-"):
        return rest
    if program in _PYTHONS and len(rest) > 1 and rest[0] == "-m":
        return ["--module", *rest[1:]]
    return ["--no-python", *command]
