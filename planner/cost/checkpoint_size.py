"""Size of one checkpoint of a job: the state needed to continue after a restart."""

from gpuplan.planner.model.job import MOMENT_BYTES, Training
from gpuplan.planner.workload.step_work import Work

#: Checkpoints store weights in fp32.
_WEIGHT_BYTES = 4.0
_GB_PER_GIB = 1.073741824


def checkpoint_gb(work: Work, training: Training) -> float:
    """GB (10^9 bytes) of one checkpoint: trained weights and optimizer state; for explicit jobs, all shardable states."""
    if work.fixed_state_gib is not None:
        return work.fixed_state_gib * _GB_PER_GIB
    return work.trainable_parameters * (_WEIGHT_BYTES + MOMENT_BYTES[training.optimizer]) / 1e9
