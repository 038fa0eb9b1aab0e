"""What a job that does not fit could change: the least change of training, or the longest sequence, with which it fits."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.job import OFFLOADED, Preset, Training, Transformer, Workload

#: Whether the job with another workload or training fits on the machines that were asked about.
Fits = Callable[[Workload, Training], bool]
#: Shorter sequences than this are not proposed.
_SHORTEST = 512
#: Changes of training by field, in the order in which they are tried: those that change no result, then the optimizer's
#: states, then what is trained. Each line is tried as a whole.
_CHANGES: tuple[dict[str, str], ...] = (
    {"cross_entropy": "linear"},
    {"activation_checkpointing": OFFLOADED},
    {"cross_entropy": "linear", "activation_checkpointing": OFFLOADED},
    {"offload": "optimizer"},
    {"optimizer": "adamw_8bit"},
    {"optimizer": "adamw_8bit", "cross_entropy": "linear", "activation_checkpointing": OFFLOADED},
    {"method": "lora"},
    {"method": "qlora"},
    {"method": "qlora", "cross_entropy": "linear", "activation_checkpointing": OFFLOADED},
    {
        "method": "qlora",
        "optimizer": "adamw_8bit",
        "cross_entropy": "linear",
        "activation_checkpointing": OFFLOADED,
    },
)


def remedies_of(workload: Workload, training: Training, sequence_length: int, fits: Fits) -> list[str]:
    """One sentence if some change makes the job fit, else none; `sequence_length` is 0 where it cannot be shortened."""
    proposals = [*_change(workload, training, fits), *_shorter(workload, training, sequence_length, fits)]
    return [f"it would fit with {', or with '.join(proposals)}"] if proposals else []


def eager_does_not_fit(workload: Workload, training: Training, fits: Fits) -> list[str]:
    """A sentence if the job fits with fused software, which is assumed, but not as Hugging Face's stack runs it."""
    if training.software != "auto":
        return []
    try:
        if fits(workload, replace(training, software="eager")):
            return []
    except UnusableInput:
        return []
    return ["it fits with training.software: fused, but not with eager software (as Hugging Face's own): state yours"]


def _change(workload: Workload, training: Training, fits: Fits) -> Iterator[str]:
    """The first change of training with which the job fits, as fields with values."""
    for change in _CHANGES:
        if not _applies(change, training):
            continue
        changed = replace(training, **change)  # type: ignore[arg-type]
        if _can_and_fits(workload, changed, fits):
            yield " and ".join(f"training.{field}: {value}" for field, value in change.items())
            return


def _applies(change: dict[str, str], training: Training) -> bool:
    """Whether a change alters every field that it names, and none that the user has settled otherwise."""
    settled = {
        "activation_checkpointing": training.activation_checkpointing in {"auto", "full"},
        "cross_entropy": training.cross_entropy != "linear" and not training.chunked_cross_entropy,
        "optimizer": training.optimizer in {"adam", "adamw"},
        "offload": training.offload == "none",
        "method": training.method == "full" or (training.method == "lora" and change.get("method") == "qlora"),
    }
    return all(settled[field] for field in change)


def _shorter(workload: Workload, training: Training, length: int, fits: Fits) -> Iterator[str]:
    """The longest of the half, the quarter and so on of the sequence with which the job fits."""
    if not isinstance(workload, Preset | Transformer):
        return
    while (length := length // 2) >= _SHORTEST:
        if _can_and_fits(replace(workload, sequence_length=length), training, fits):
            yield f"workload.sequence_length: {length}"
            return


def _can_and_fits(workload: Workload, training: Training, fits: Fits) -> bool:
    """Whether the changed job is accepted and fits: not every model or accelerator takes every change."""
    try:
        return fits(workload, training)
    except UnusableInput:
        return False
