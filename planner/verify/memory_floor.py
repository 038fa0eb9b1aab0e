"""Lower bound on the bytes of training state that all accelerators of a plan hold together, under any layout.

Every weight lies on some accelerator at its precision, frozen ones too, and so do gradients and optimizer states of
trained weights, except those that `offload` moves to host memory. This is a sum over parameters, independent of
parallelism, sharding and experts.
"""

from typing import NamedTuple

from gpuplan.planner.model.job import Training
from gpuplan.planner.verify.estimator_port import Work

GIB = float(1 << 30)
#: Bytes of a frozen weight: 16 bit, or the requested training precision. NF4 takes 4 bit and 0.127 bit of constants
#: (Dettmers 2023, QLoRA, section 3), the least of all quantisations.
_FULL, _HALF, _NF4 = 4.0, 2.0, 4.127 / 8
_FULL_PRECISIONS = ("fp32", "tf32")
#: Bytes of moments per trained parameter: two of fp32 (Kingma 2015; You 2020), one (Chen 2023; momentum; Adagrad),
#: one byte each of 8-bit optimizers (Dettmers 2022), one value per row and column (Shazeer 2018).
_MOMENTS = (
    (8.0, ("adamw", "adam", "lamb")),
    (4.0, ("lion", "lars", "sgd", "momentum", "rmsprop", "adagrad", "muon")),
    (2.0, ("adamw_8bit", "adam_8bit")),
    (1.0, ("lion_8bit",)),
    (0.1, ("adafactor",)),
)


class StatesFloor(NamedTuple):
    """Bytes in the memory of all accelerators together, and in that of all hosts together."""

    devices: float
    hosts: float


def states_floor(work: Work, training: Training, precision: str) -> StatesFloor:
    """The least bytes of state of a run that trains `work` at this precision."""
    if work.fixed_state_gib is not None:
        return StatesFloor(work.fixed_state_gib * GIB, 0.0)
    element = _FULL if precision in _FULL_PRECISIONS else _HALF
    trained = work.trainable_parameters
    weights = trained * element + _frozen(work, training)
    gradients, optimizer = trained * element, trained * _optimizer_bytes(training, element)
    # Embedding tables are fp32 and stay on the devices under every offload (reference implementation of DLRM).
    tables = _FULL * work.table_parameters
    if training.offload == "parameters":
        return StatesFloor(tables, weights + optimizer)
    if training.offload == "optimizer":
        return StatesFloor(tables + weights, optimizer)
    return StatesFloor(tables + weights + gradients + optimizer, 0.0)


def offloaded_gib(work: Work, training: Training) -> float:
    """GiB that all hosts hold together, at 16 bit where the accelerator chooses the precision."""
    return states_floor(work, training, "bf16" if training.precision == "auto" else training.precision).hosts / GIB


def _frozen(work: Work, training: Training) -> float:
    if training.method == "full":
        return 0.0
    element = _FULL if training.precision in _FULL_PRECISIONS else _HALF
    base = max(0.0, work.parameters - work.trainable_parameters - work.table_parameters)
    return base * (_NF4 if training.method == "qlora" else element)


def _optimizer_bytes(training: Training, element: float) -> float:
    """Bytes per trained parameter of moments and of the fp32 master copy of mixed precision."""
    moments = next(size for size, names in _MOMENTS if training.optimizer in names)
    if training.states == "pure_bf16":
        return moments if element > _HALF else moments / 2
    return moments if element > _HALF else moments + 4.0
