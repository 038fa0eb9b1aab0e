"""Host memory for offloaded states and weights, over all nodes together: both are sharded over the nodes."""

from gpuplan.planner.model.job import MOMENT_BYTES, Training
from gpuplan.planner.workload.step_work import Work

GIB = float(1 << 30)
_FULL_PRECISIONS = ("fp32", "tf32")


def offloaded_gib(work: Work, training: Training) -> float:
    """GiB offloaded to hosts: optimizer states, and under `parameters` all weights; 0 without offloading.

    If the precision is `auto`, weights count at 16 bit, the least that they take. Memory that the user states is not
    offloaded.
    """
    if training.offload == "none" or work.fixed_state_gib is not None:
        return 0.0
    element = 4.0 if training.precision in _FULL_PRECISIONS else 2.0
    moments = MOMENT_BYTES[training.optimizer]
    if training.states == "pure_bf16":
        optimizer = moments if element > 2 else moments / 2
    else:
        optimizer = moments if element > 2 else moments + 4.0
    moved = work.trainable_parameters * optimizer
    if training.offload == "parameters":
        moved += work.trainable_parameters * element + work.frozen_parameter_bytes
    return moved / GIB
