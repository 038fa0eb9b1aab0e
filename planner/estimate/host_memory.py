"""What training offloads to the memory of the hosts, all of them together: states and weights are sharded over the nodes."""

from planner.estimate.states import MOMENT_BYTES
from planner.job import Training
from planner.workload.work import Work

GIB = float(1 << 30)
_FULL_PRECISIONS = ("fp32", "tf32")


def offloaded_gib(work: Work, training: Training) -> float:
    """GiB that leave the accelerators: optimizer states, and under `parameters` all weights; 0 where nothing does.

    At 16 bit where the precision is left to the accelerator, which is the least that they take. Stated memory stays where
    the user says that it is.
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
