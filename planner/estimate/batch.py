"""How the samples of a step fall on the replicas of a layout."""

from dataclasses import dataclass

import numpy as np

from planner.estimate.layouts import Splits
from planner.estimate.machines import Floats, Ints
from planner.workload.work import Work

#: The batch of a step may be rounded by this share to whole samples per replica.
BATCH_ROUNDING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """How a step's samples fall on the replicas of each split.

    `local` whole samples per replica; `scale` converts the time of those into the time of the
    job's own step: 1, or samples / (local x data) where the batch is rounded by at most 5 %.
    """

    local: Floats
    scale: Floats
    enough: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def take(self, split: Ints) -> "Batch":
        """The batch of each of `split`."""
        return Batch(local=self.local.take(split), scale=self.scale.take(split), enough=self.enough.take(split))


def batches(work: Work, splits: Splits) -> Batch:
    """The batch of each split; `enough` is False where there are more replicas than samples.

    Work of which only totals are known divides over any number of devices.
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
