"""Splits x (ZeRO stage, checkpointing, micro-batch), reduced to those that no cheaper choice dominates."""

from dataclasses import dataclass

import numpy as np

from planner.estimate.layouts import Splits
from planner.estimate.machines import Floats, Ints, LayoutRequest
from planner.estimate.memory import Footprint
from planner.job import Training
from planner.workload.work import Work

#: A micro-batch beyond this many tokens gains nothing in the matmuls; sharded weights are gathered once per
#: micro-batch and go on gaining.
ENOUGH_TOKENS = 16_384
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


def batches(work: Work, splits: Splits) -> Batch:
    """The batch of each split; `enough` is False where there are more replicas than samples.

    Work of which only totals are known divides over any number of devices.
    """
    if work.fixed_state_gib is not None:
        local = 1.0 / splits.data
        ones = np.ones(len(splits.row))
        return Batch(local=local, scale=ones, enough=ones > 0)
    share = work.samples_per_step / splits.data
    local = np.maximum(1.0, np.ceil(share / (1.0 + BATCH_ROUNDING) - 1e-9))
    ratio = share / local
    scale = np.where(np.abs(ratio - 1.0) <= BATCH_ROUNDING + 1e-9, ratio, 1.0)
    return Batch(local=local, scale=scale, enough=share >= 1.0 - BATCH_ROUNDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chosen combinations, sorted by split: `split` and `stage` index the arrays of splits and `stages`."""

    split: Ints
    stage: Ints
    checkpointing: Ints
    micro_batch: Floats
    micro_batches: Floats


def wanted_micro_batch(work: Work, splits: Splits, batch: Batch, stages: tuple[int, ...]) -> Floats:
    """The largest micro-batch worth having, (stages, splits)."""
    whole = np.maximum(1.0, batch.local)
    piped = np.where(splits.pipeline > 1, np.maximum(1.0, whole // (MICRO_BATCHES_PER_STAGE * splits.pipeline)), whole)
    if work.units_per_sample <= 1:
        return np.stack([piped for _ in stages])
    ways = splits.context / work.units_per_sample
    enough = [ENOUGH_TOKENS_SHARDED if stage >= 3 else ENOUGH_TOKENS for stage in stages]
    return np.stack([np.minimum(piped, np.ceil(tokens * ways)) for tokens in enough])


def candidates_of(
    work: Work,
    training: Training,
    splits: Splits,
    batch: Batch,
    found: Footprint,
    fitting: Floats,
    request: LayoutRequest,
) -> Candidates:
    """Every combination that fits and is not dominated.

    One is dominated if a lower stage or less recomputation allows as large a micro-batch: it then
    moves and computes no less. A requested micro-batch stands as it is.
    """
    asked = request.micro_batch or training.micro_batch
    if asked:
        sizes = np.where((fitting >= asked) & (np.maximum(batch.local, 1.0) >= asked), float(asked), 0.0)
    else:
        sizes = np.minimum(fitting, wanted_micro_batch(work, splits, batch, found.stages)[:, None, :])
    sizes[:, :, ~batch.enough] = 0.0
    best = np.maximum.accumulate(np.maximum.accumulate(sizes, axis=0), axis=1)
    better = np.zeros_like(sizes)
    better[1:] = best[:-1]
    np.maximum(better[:, 1:], best[:, :-1], out=better[:, 1:])
    split, stage, checkpointing = np.nonzero((sizes > better).transpose(2, 0, 1))
    size = sizes[stage, checkpointing, split]
    local = batch.local[split]
    count = np.ceil(local / size - 1e-9)
    if not asked:
        size = np.maximum(1.0, np.ceil(local / count - 1e-9))
    return Candidates(split=split, stage=stage, checkpointing=checkpointing, micro_batch=size, micro_batches=count)
