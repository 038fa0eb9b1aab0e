"""How large one checkpoint of a job is: what must be written to go on after a restart."""

from planner.estimate.states import MOMENT_BYTES
from planner.job import Training
from planner.workload.work import Work

#: Weights are kept in fp32 beside the optimizer's moments.
_WEIGHT_BYTES = 4.0
_GB_PER_GIB = 1.073741824


def checkpoint_gb(work: Work, training: Training) -> float:
    """GB (10^9 bytes) of one checkpoint: trained weights and optimizer state; for explicit jobs, all shardable states."""
    if work.fixed_state_gib is not None:
        return work.fixed_state_gib * _GB_PER_GIB
    return work.trainable_parameters * (_WEIGHT_BYTES + MOMENT_BYTES[training.optimizer]) / 1e9
