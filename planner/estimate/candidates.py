"""Splits x (ZeRO stage, checkpointing, micro-batch), reduced to those that no cheaper choice dominates."""

from dataclasses import dataclass

import numpy as np

from planner.estimate.layouts import Splits
from planner.estimate.machines import Floats, Ints
from planner.estimate.memory import Footprint
from planner.estimate.question import Question
from planner.workload.work import Work

#: A micro-batch beyond this many tokens gains nothing in the matmuls; sharded weights are gathered once per
#: micro-batch and go on gaining.
ENOUGH_TOKENS = 8_192
ENOUGH_TOKENS_SHARDED = 65_536
#: Micro-batches per pipeline stage that a larger micro-batch must leave, or the bubble eats its gain.
MICRO_BATCHES_PER_STAGE = 4
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chosen combinations, sorted by split: `split` and `stage` index the arrays of splits and `stages`."""

    split: Ints
    stage: Ints
    checkpointing: Ints
    micro_batch: Floats
    micro_batches: Floats


def candidates_of(question: Question, splits: Splits, batch: Batch, found: Footprint, fitting: Floats) -> Candidates:
    """Every combination that fits and is not dominated.

    One is dominated if a lower stage or less recomputation allows as large a micro-batch, or one that is
    large enough: it then moves and computes no less. A requested micro-batch stands as it is.
    """
    asked, local = question.request.micro_batch, np.maximum(batch.local, 1.0)
    usable = np.where(batch.enough, local, 0.0)
    if asked:
        sizes = np.where((fitting >= asked) & (usable >= asked), float(asked), 0.0)
        ranked = sizes
    else:
        sizes = np.minimum(fitting, _wanted(question.work, splits, usable, ENOUGH_TOKENS_SHARDED))
        ranked = np.minimum(sizes, _wanted(question.work, splits, usable, ENOUGH_TOKENS))
    split, stage, checkpointing, element = _undominated(ranked)
    size = np.where(stage == len(found.stages) - 1, sizes.reshape(-1).take(element), ranked.reshape(-1).take(element))
    samples = local[split]
    count = np.ceil(samples / size - 1e-9)
    if not asked:
        size = np.ceil(samples / count - 1e-9)
    return Candidates(split=split, stage=stage, checkpointing=checkpointing, micro_batch=size, micro_batches=count)


def _wanted(work: Work, splits: Splits, local: Floats, tokens: int) -> Floats:
    """The largest micro-batch worth having: all samples of a replica, enough micro-batches for a pipeline, `tokens`."""
    piped = np.maximum(1.0, local // (MICRO_BATCHES_PER_STAGE * splits.pipeline))
    size = np.minimum(local, np.where(splits.pipeline > 1, piped, local))
    if work.units_per_sample <= 1:
        return size
    return np.minimum(size, np.ceil(tokens / work.units_per_sample * splits.context))


def _undominated(sizes: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """(split, stage, checkpointing, flat index) of the elements of (stages, 3, splits) above all with lower indices."""
    stages, kinds, splits = sizes.shape
    keep = np.empty((stages * kinds, splits), dtype=bool)
    above = [np.zeros(splits)] * kinds
    for stage in range(stages):
        before = np.zeros(splits)
        for kind in range(kinds):
            here = sizes[stage, kind]
            best = np.maximum(before, above[kind])
            np.greater(here, best, out=keep[stage * kinds + kind])
            above[kind] = before = np.maximum(best, here)
    split, rest = np.divmod(np.flatnonzero(keep.T), stages * kinds)
    stage_of, kind_of = np.divmod(rest, kinds)
    return split, stage_of, kind_of, rest * splits + split
