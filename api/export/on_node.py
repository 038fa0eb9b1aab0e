"""What every node of a run starts, in each format: `run-on-node.sh`, and the variables that it reads."""

from importlib.resources import files

from api.checkpoint_location import CheckpointLocation
from api.export.handover import Handover, Phase, Wishes
from api.export.launcher import environment
from api.export.names import run_name
from api.export.run_limit import limit_seconds

#: The script as it stands in the package.
SCRIPT = files("api.export").joinpath("run-on-node.sh").read_text(encoding="utf-8")
#: Stands where a place for checkpoints is missing; the script, and every script that starts machines, refuses it.
PLACEHOLDER = "SET_DATA_CHECKPOINTS"
#: Seconds before the run limit at which the run is asked for a last checkpoint: 600 to write it, 300 to upload it.
GRACE_SECONDS, SAVE_SECONDS = 900, 600


def script_lines() -> list[str]:
    """The script without its comments: EC2 takes few bytes."""
    return [line for line in SCRIPT.splitlines() if line.strip() and not line.lstrip().startswith("# ")]


def place(handover: Handover, wishes: Wishes) -> CheckpointLocation | None:
    """Where checkpoints are kept: what the export says, else what the job says; None where neither does."""
    return wishes.checkpoints or handover.checkpoints


def place_text(handover: Handover, wishes: Wishes) -> str:
    """The same as text, or the placeholder that refuses to run."""
    found = place(handover, wishes)
    return PLACEHOLDER if found is None else found.text


def directory(handover: Handover, phase: Phase, wishes: Wishes) -> str:
    """Where the training script finds and writes checkpoints on its node."""
    found = place(handover, wishes)
    if found is not None and found.kind == "mount":
        return found.text
    return f"/tmp/gpuplan/{run_name(handover, phase)}"  # noqa: S108


def is_mounted(handover: Handover, wishes: Wishes) -> bool:
    """Whether every machine has to mount the place by itself."""
    found = place(handover, wishes)
    return found is not None and found.kind == "mount"


def variables(handover: Handover, phase: Phase, wishes: Wishes, *, resume: str) -> dict[str, str]:
    """What the script and the training script read; `resume` is how a person goes on after the run limit."""
    found = place(handover, wishes)
    said = environment(handover, phase) | {
        "GPUPLAN_CHECKPOINTS": place_text(handover, wishes),
        "GPUPLAN_CHECKPOINT_DIR": directory(handover, phase, wishes),
        "GPUPLAN_NODES": str(phase.nodes),
        "GPUPLAN_LIMIT_SECONDS": str(limit_seconds(handover, phase, wishes)),
        "GPUPLAN_RESUME": resume,
    }
    if found is not None and found.kind == "mount" and phase.provider != "local":
        said["GPUPLAN_MOUNT_IS_NEEDED"] = "yes"
    return said
