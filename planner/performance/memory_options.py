"""The (ZeRO stage, checkpointing, micro-batch) choices of every split that no other choice dominates."""

from dataclasses import dataclass, fields

import numpy as np

from gpuplan.planner.performance.accelerator_memory import largest_micro_batch, room_bytes
from gpuplan.planner.performance.estimator_request import Floats, Ints
from gpuplan.planner.performance.layout_candidates import LayoutCandidates
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.layout_splits import Splits

#: Tokens beyond which a larger micro-batch does not speed up matmuls. Sharded weights are gathered once per
#: micro-batch, so there a larger one still saves traffic.
ENOUGH_TOKENS = 8_192
ENOUGH_TOKENS_SHARDED = 65_536
#: Least number of micro-batches per pipeline stage; with fewer, the bubble costs more than a larger micro-batch saves.
MICRO_BATCHES_PER_STAGE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Selected combinations, sorted by split; `split` and `stage` index the arrays of splits and `stages`."""

    split: Ints
    stage: Ints
    checkpointing: Ints
    micro_batch: Floats
    micro_batches: Floats

    def take(self, which: Ints) -> "Candidates":
        """The combinations at these indices."""
        return Candidates(**{name: getattr(self, name).take(which) for name in _COLUMNS})


_COLUMNS = tuple(field.name for field in fields(Candidates))


def candidates_of(question: Question, layout_candidates: LayoutCandidates) -> Candidates:
    """Every combination that fits and is not dominated.

    A combination is dominated if a lower stage or less recomputation allows an equally large micro-batch, or one that is
    large enough: the other then moves and computes no more. Most splits reach the wanted micro-batch at the lowest stage
    without recomputation, so all combinations are evaluated for the other splits only. A requested micro-batch is fixed.
    """
    local = np.maximum(layout_candidates.batch.local, 1.0)
    usable = np.where(layout_candidates.batch.enough, local, 0.0)
    room = room_bytes(question)[layout_candidates.splits.row]
    wanted = _wanted(question, layout_candidates.splits, usable, ENOUGH_TOKENS)
    easy = (_at_lowest(layout_candidates, room) >= wanted) & (wanted >= 1)
    hard = np.flatnonzero(~easy)
    sizes = largest_micro_batch(layout_candidates.footprint, layout_candidates.footprint_index[hard], room[hard])
    split, stage, checkpointing, size = _of_hard(question, layout_candidates, hard, sizes, usable)
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


def _at_lowest(layout_candidates: LayoutCandidates, room: Floats) -> Floats:
    """Samples that fit at the lowest stage without recomputation."""
    footprint, index = layout_candidates.footprint, layout_candidates.footprint_index
    samples_per_byte = 1.0 / np.maximum(footprint.activations[0], 1e-9)
    samples: Floats = np.floor((room - (footprint.states[0] + footprint.buffers[0])[index]) * samples_per_byte[index])
    return samples


def _of_hard(
    question: Question, layout_candidates: LayoutCandidates, hard: Ints, fitting: Floats, usable: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """(index into `hard`, stage, checkpointing, micro-batch) of the undominated combinations of the splits at `hard`."""
    splits = layout_candidates.splits.of_rows(layout_candidates.splits.row[hard], hard)
    wanted = _wanted(question, splits, usable[hard], ENOUGH_TOKENS)
    asked = question.request.micro_batch
    ranked = np.where(fitting >= wanted, wanted, 0.0) if asked else np.minimum(fitting, wanted)
    split, stage, checkpointing, element = _undominated(ranked)
    wanted_sharded = _wanted(question, splits, usable[hard], ENOUGH_TOKENS_SHARDED)[split]
    sharded = np.array(layout_candidates.footprint.stages)[stage] >= 3
    size = np.minimum(fitting.reshape(-1).take(element), np.where(sharded, wanted_sharded, wanted[split]))
    return split, stage, checkpointing, size


def _wanted(question: Question, splits: Splits, local: Floats, tokens: int) -> Floats:
    """The largest useful micro-batch: as requested, else a replica's samples, limited by the pipeline and by `tokens`."""
    asked, work = question.request.micro_batch, question.work
    if asked:
        return np.where(local >= asked, float(asked), 0.0)
    # The floor of a quotient of whole numbers is exact, and several times faster in numpy than `//`.
    piped = np.maximum(1.0, np.floor(local / (MICRO_BATCHES_PER_STAGE * splits.pipeline)))
    size = np.minimum(local, np.where(splits.pipeline > 1, piped, local))
    if work.units_per_sample <= 1:
        return size
    return np.minimum(size, np.ceil(tokens / work.units_per_sample * splits.context))


def _undominated(sizes: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """(split, stage, checkpointing, flat index) of the undominated elements of `sizes`, (stages, 3, splits).

    An element is undominated if it exceeds all elements of its split with stage and checkpointing at most its own.
    """
    stages, kinds, splits = sizes.shape
    is_undominated = np.empty((splits, stages * kinds), dtype=bool)
    above = [np.zeros(splits)] * kinds
    for stage in range(stages):
        before = np.zeros(splits)
        for kind in range(kinds):
            size = sizes[stage, kind]
            best = np.maximum(before, above[kind])
            np.greater(size, best, out=is_undominated[:, stage * kinds + kind])
            above[kind] = before = np.maximum(best, size)
    split, rest = np.divmod(np.flatnonzero(is_undominated), stages * kinds)
    stage_of, kind_of = np.divmod(rest, kinds)
    return split, stage_of, kind_of, rest * splits + split
