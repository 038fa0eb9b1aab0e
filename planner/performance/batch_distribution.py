"""How the samples of a step are distributed over the replicas of a layout."""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats, Ints
from gpuplan.planner.performance.layout_splits import Splits
from gpuplan.planner.workload.step_work import Work

#: The batch of a step may be rounded by this share to whole samples per replica.
BATCH_ROUNDING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The samples of a step per replica, for each split.

    `local` is the whole number of samples per replica. `scale` converts their time into the time of the job's step: 1,
    or samples / (local x data) where the batch is rounded by at most 5 %.
    """

    local: Floats
    scale: Floats
    enough: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def take(self, split: Ints) -> "Batch":
        """The batches of the splits at these indices."""
        return Batch(local=self.local.take(split), scale=self.scale.take(split), enough=self.enough.take(split))


def batches(work: Work, splits: Splits) -> Batch:
    """The batch of each split; `enough` is False where there are more replicas than samples.

    Work with known totals only divides over any number of devices.
    """
    if work.fixed_state_gib is not None:
        ones = np.ones(len(splits.row))
        return Batch(local=1.0 / splits.data, scale=ones, enough=ones > 0)
    share = work.samples_per_step / splits.data
    nearest = np.maximum(1.0, np.rint(share))
    rounded = np.abs(share / nearest - 1.0) <= BATCH_ROUNDING + 1e-9
    local = np.where(rounded, nearest, np.maximum(1.0, np.ceil(share)))
    scale = np.where(rounded, share / local, 1.0)
    return Batch(local=local, scale=scale, enough=share >= 1.0 - BATCH_ROUNDING)
