"""Splits x (ZeRO stage, checkpointing, micro-batch), reduced to those that no cheaper choice dominates."""

from dataclasses import dataclass, fields

import numpy as np

from planner.estimate.layouts import Splits
from planner.estimate.machines import Floats, Ints
from planner.estimate.memory import largest_micro_batch, room_bytes
from planner.estimate.plane import Plane
from planner.estimate.question import Question

#: A micro-batch beyond this many tokens gains nothing in the matmuls; sharded weights are gathered once per
#: micro-batch and go on gaining.
ENOUGH_TOKENS = 8_192
ENOUGH_TOKENS_SHARDED = 65_536
#: Micro-batches per pipeline stage that a larger micro-batch must leave, or the bubble eats its gain.
MICRO_BATCHES_PER_STAGE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chosen combinations, sorted by split: `split` and `stage` index the arrays of splits and `stages`."""

    split: Ints
    stage: Ints
    checkpointing: Ints
    micro_batch: Floats
    micro_batches: Floats

    def take(self, which: Ints) -> "Candidates":
        """Some of them."""
        return Candidates(**{each.name: getattr(self, each.name).take(which) for each in fields(Candidates)})


def candidates_of(question: Question, plane: Plane) -> Candidates:
    """Every combination that fits and is not dominated.

    One is dominated if a lower stage or less recomputation allows as large a micro-batch, or one that is
    large enough: it then moves and computes no less. Most splits reach that at the lowest stage without
    recomputation, so the rest alone is looked at in full. A requested micro-batch stands as it is.
    """
    local = np.maximum(plane.batch.local, 1.0)
    usable = np.where(plane.batch.enough, local, 0.0)
    room = room_bytes(question)[plane.splits.row]
    wanted = _wanted(question, plane.splits, usable, ENOUGH_TOKENS)
    easy = (_at_lowest(plane, room) >= wanted) & (wanted >= 1)
    hard = np.flatnonzero(~easy)
    sizes = largest_micro_batch(plane.found, plane.held[hard], room[hard])
    split, stage, checkpointing, size = _of_hard(question, plane, hard, sizes, usable)
    plain = np.flatnonzero(easy)
    none = np.zeros(len(plain), dtype=np.int64)
    order = np.argsort(np.concatenate((plain, hard[split])), kind="stable")
    split = np.concatenate((plain, hard[split]))[order]
    size = np.concatenate((wanted[plain], size))[order]
    count = np.ceil(local[split] / size - 1e-9)
    return Candidates(
        split=split,
        stage=np.concatenate((none, stage))[order],
        checkpointing=np.concatenate((none, checkpointing))[order],
        micro_batch=size if question.request.micro_batch else np.ceil(local[split] / count - 1e-9),
        micro_batches=count,
    )


def _at_lowest(plane: Plane, room: Floats) -> Floats:
    """Samples that fit at the lowest stage without recomputation."""
    found = plane.found
    each = 1.0 / np.maximum(found.activations[0], 1e-9)
    samples: Floats = np.floor((room - (found.states[0] + found.buffers[0])[plane.held]) * each[plane.held])
    return samples


def _of_hard(
    question: Question, plane: Plane, hard: Ints, fitting: Floats, usable: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """(index into `hard`, stage, checkpointing, micro-batch) of what is not dominated among the splits at `hard`."""
    splits = plane.splits.of_rows(plane.splits.row[hard], hard)
    wanted = _wanted(question, splits, usable[hard], ENOUGH_TOKENS)
    asked = question.request.micro_batch
    ranked = np.where(fitting >= wanted, wanted, 0.0) if asked else np.minimum(fitting, wanted)
    split, stage, checkpointing, element = _undominated(ranked)
    more = _wanted(question, splits, usable[hard], ENOUGH_TOKENS_SHARDED)[split]
    sharded = np.array(plane.found.stages)[stage] >= 3
    size = np.minimum(fitting.reshape(-1).take(element), np.where(sharded, more, wanted[split]))
    return split, stage, checkpointing, size


def _wanted(question: Question, splits: Splits, local: Floats, tokens: int) -> Floats:
    """The largest micro-batch worth having: as asked, or a replica's samples, leaving a pipeline enough, up to `tokens`."""
    asked, work = question.request.micro_batch, question.work
    if asked:
        return np.where(local >= asked, float(asked), 0.0)
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
