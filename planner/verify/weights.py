"""Bytes that all accelerators of a plan hold together at the very least, whatever the layout.

However a model is laid out, each of its weights lies on some accelerator, at the precision it is held in, frozen ones too;
and so do the gradients and optimizer states of those that are trained, but for what `offload` moves to the memory of the
hosts. Nothing here knows of parallelism, sharding or experts: it is a sum over parameters.
"""

from typing import NamedTuple

from planner.job import Training
from planner.verify.estimates import Work

GIB = float(1 << 30)
#: Bytes of a frozen weight: 16 bit, or what the user asks to train in; NF4 takes 4 bit and 0.127 bit of constants (Dettmers
#: 2023, QLoRA, section 3), and nothing of a quantised model takes less.
_FULL, _HALF, _NF4 = 4.0, 2.0, 4.127 / 8
_FULL_PRECISIONS = ("fp32", "tf32")
#: Moments per trained parameter in bytes: two of fp32 (Kingma 2015; You 2020), one (Chen 2023; momentum; Adagrad), one byte
#: each of 8-bit optimizers (Dettmers 2022), one value per row and column (Shazeer 2018).
_MOMENTS = (
    (8.0, ("adamw", "adam", "lamb")),
    (4.0, ("lion", "lars", "sgd", "momentum", "rmsprop", "adagrad", "muon")),
    (2.0, ("adamw_8bit", "adam_8bit")),
    (1.0, ("lion_8bit",)),
    (0.1, ("adafactor",)),
)


class Held(NamedTuple):
    """Bytes in the memory of all accelerators together, and of all hosts together."""

    devices: float
    hosts: float


def held(work: Work, training: Training, precision: str) -> Held:
    """What a plan that trains `work` at this precision holds at the least."""
    if work.fixed_state_gib is not None:
        return Held(work.fixed_state_gib * GIB, 0.0)
    element = _FULL if precision in _FULL_PRECISIONS else _HALF
    trained = work.trainable_parameters
    weights = trained * element + _frozen(work, training)
    gradients, optimizer = trained * element, trained * _optimizer_bytes(training, element)
    # Embedding tables in fp32, on the devices whatever is offloaded (the reference of DLRM).
    tables = _FULL * work.table_parameters
    if training.offload == "parameters":
        return Held(tables, weights + optimizer)
    if training.offload == "optimizer":
        return Held(tables + weights, optimizer)
    return Held(tables + weights + gradients + optimizer, 0.0)


def _frozen(work: Work, training: Training) -> float:
    if training.method == "full":
        return 0.0
    each = _FULL if training.precision in _FULL_PRECISIONS else _HALF
    base = max(0.0, work.parameters - work.trainable_parameters - work.table_parameters)
    return base * (_NF4 if training.method == "qlora" else each)


def _optimizer_bytes(training: Training, element: float) -> float:
    """Moments, and the fp32 master copy of mixed precision, per trained parameter."""
    moments = next(size for size, names in _MOMENTS if training.optimizer in names)
    if training.states == "pure_bf16":
        return moments if element > _HALF else moments / 2
    return moments if element > _HALF else moments + 4.0
