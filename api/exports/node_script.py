"""The script of every node in all formats, `run-on-node.sh`, and its variables."""

from importlib.resources import files

from gpuplan.api.exports.launch_command import environment
from gpuplan.api.exports.plan_handover import Handover, Phase, Wishes
from gpuplan.api.exports.run_limit import limit_seconds
from gpuplan.api.exports.tool_names import run_name
from gpuplan.catalog.parsing.checkpoint_location import CheckpointLocation

#: The script in the package.
SCRIPT = files("gpuplan.api.exports").joinpath("run-on-node.sh").read_text(encoding="utf-8")
#: Placeholder of a missing checkpoint location; all scripts refuse it.
PLACEHOLDER = "SET_DATA_CHECKPOINTS"
#: Seconds before the run limit at which a last checkpoint is requested: 600 to write it, 300 to upload it.
GRACE_SECONDS, SAVE_SECONDS = 900, 600


def script_lines() -> list[str]:
    """The script without comments, because EC2 limits user data."""
    return [line for line in SCRIPT.splitlines() if line.strip() and not line.lstrip().startswith("# ")]


def place(handover: Handover, wishes: Wishes) -> CheckpointLocation | None:
    """The checkpoint location: the export's, else the job's, else None."""
    return wishes.checkpoints or handover.checkpoints


def place_text(handover: Handover, wishes: Wishes) -> str:
    """The same as text, or the placeholder that refuses to run."""
    location = place(handover, wishes)
    return PLACEHOLDER if location is None else location.text


def directory(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """The directory of checkpoints on a node."""
    location = place(handover, wishes)
    if location is not None and location.kind == "mount":
        return location.text
    return f"/tmp/gpuplan/{run_name(handover, phase)}"  # noqa: S108


def is_mounted(handover: Handover, wishes: Wishes) -> bool:
    """Whether every machine must mount the location."""
    location = place(handover, wishes)
    return location is not None and location.kind == "mount"


def variables(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> dict[str, str]:
    """Variables of the node script and the training script; `resume` is the command to continue after the run limit."""
    location = place(handover, wishes)
    values = environment(handover, phase) | {
        "GPUPLAN_CHECKPOINTS": place_text(handover, wishes),
        "GPUPLAN_CHECKPOINT_DIR": directory(handover, phase, wishes),
        "GPUPLAN_NODES": str(phase.nodes),
        "GPUPLAN_LIMIT_SECONDS": str(limit_seconds(handover, phase, wishes)),
        "GPUPLAN_RESUME": resume,
    }
    if location is not None and location.kind == "mount" and phase.provider != "local":
        values["GPUPLAN_MOUNT_IS_NEEDED"] = "yes"
    return values
