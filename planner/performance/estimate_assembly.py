"""Builds `Estimates` from the fastest layout of each row, with a reason for every row that has none."""

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.performance import prediction_bands
from gpuplan.planner.performance.accelerator_constants import PRECISIONS
from gpuplan.planner.performance.cluster_rates import DOES_NOT_FIT, GIB, NO_LAYOUT, TOO_MANY
from gpuplan.planner.performance.estimator_request import Estimates, Floats, Ints, Machines
from gpuplan.planner.performance.goodput import goodput_of
from gpuplan.planner.performance.layout_candidates import LayoutCandidates
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.memory_options import Candidates
from gpuplan.planner.performance.rowwise_minimum import first_least
from gpuplan.planner.performance.step_time import TERMS
from gpuplan.planner.workload.step_work import Work


class Answer:
    """Collects the arrays of `Estimates`: first the rows with a fastest layout, then the reasons of the other rows.

    `layout_candidates` are those of groups of rows; `group` is the group of each row (-1: excluded before layouts).
    """

    def __init__(
        self, question: Question, machines: Machines, layout_candidates: LayoutCandidates, group: Ints
    ) -> None:
        """Start with the reasons that exclude rows before layouts are tried."""
        self.question, self.machines, self.layout_candidates, self.group = question, machines, layout_candidates, group
        rows = len(machines)
        self.reason = question.clusters.reason.copy()
        self.terms = dict(zip(TERMS, np.full((len(TERMS), rows), np.inf), strict=True))
        self.bytes = np.full((4, rows), np.nan)
        self.whole = np.zeros((9, rows), dtype=np.int64)

    def win(self, chosen: Candidates, terms: dict[str, Floats], winner: Ints, rows: Ints) -> None:
        """Write the fastest candidates into their rows."""
        for name, values in terms.items():
            self.terms[name][rows] = values.take(winner)
        best = chosen.take(winner)
        self._describe(rows, best.split, best.stage, best.checkpointing, best.micro_batch)

    def _describe(self, rows: Ints, split: Ints, stage: Ints, checkpointing: Ints, size: Floats) -> None:
        """Write layout and memory of one candidate per row."""
        at, footprint, index = (
            self.layout_candidates.splits,
            self.layout_candidates.footprint,
            self.layout_candidates.footprint_index.take(split),
        )
        states, activations = footprint.states[stage, index], size * footprint.activations[checkpointing, index]
        other = footprint.buffers[stage, index] + self.question.clusters.context_bytes[rows]
        for column, size_bytes in zip(
            self.bytes, (states + activations + other, states, activations, other), strict=True
        ):
            column[rows] = size_bytes
        ways = [part.take(split) for part in (at.data, at.tensor, at.pipeline, at.context, at.expert)]
        ranks = ways[0] * ways[3]
        asked = self.question.request.zero_stage
        stages = np.array(footprint.stages).take(stage)
        stages = stages if asked is not None else np.where(ranks > 1, stages, 0)
        interleave = self.layout_candidates.interleave.take(split)
        for column, value in zip(self.whole, (*ways, interleave, stages, size, checkpointing), strict=True):
            column[rows] = value

    def lose(self, won: NDArray[np.bool_]) -> None:
        """Give every other row its reason and, if that is memory, the least memory that any split needs."""
        still = (self.reason == 0) & ~won
        if not still.any():
            return
        rows = np.flatnonzero(still)
        group_of_split, batch = self.layout_candidates.splits.row, self.layout_candidates.batch
        size = float(self.question.request.micro_batch or 1)
        usable = batch.enough & (np.maximum(batch.local, 1.0) >= size)
        lost, divides, samples = np.zeros((3, int(self.group.max()) + 1), np.bool_)
        lost[self.group[rows]] = True
        divides[group_of_split] = True
        samples[group_of_split[usable]] = True
        why = np.where(~divides, NO_LAYOUT, np.where(samples, DOES_NOT_FIT, TOO_MANY))
        self.reason[rows] = why[self.group[rows]]
        self._least(rows, np.flatnonzero(usable & lost[group_of_split]), size)

    def _least(self, rows: Ints, split: Ints, size: float) -> None:
        """Describe the split, stage and checkpointing that need the least memory at the smallest micro-batch."""
        footprint = self.layout_candidates.footprint
        if not len(split):
            return
        index = self.layout_candidates.footprint_index[split]
        checkpointing = np.argmin(footprint.activations[:, index], axis=0)
        stage = np.argmin(footprint.states[:, index] + footprint.buffers[:, index], axis=0)
        sizes = np.full(len(split), size)
        peak = footprint.peak(stage, checkpointing, index, sizes)
        winner, groups = first_least(peak, self.layout_candidates.splits.row[split])
        best_of_group = np.full(int(self.group.max()) + 1, -1)
        best_of_group[groups] = winner
        best = best_of_group[self.group[rows]]
        rows, best = rows[best >= 0], best[best >= 0]
        self._describe(rows, split[best], stage[best], checkpointing[best], sizes[best])

    def estimates(self, goodput: float | None) -> Estimates:
        """The finished `Estimates`, with the figures that follow from time, memory and layout."""
        work, at = self.question.work, self.question.clusters
        step = reduce(np.add, self.terms.values())
        rate = work.units_per_step / step
        flops = rate / at.gpus * model_flops_per_unit(work)
        hours = work.steps * step / 3600
        peak, states, activations, other = self.bytes / GIB
        parts = ("data", "tensor", "pipeline", "context", "expert", "interleave", "zero_stage", "micro_batch")
        return Estimates(
            precisions=PRECISIONS,
            reason=self.reason,
            precision=at.precision,
            substituted=at.substituted,
            step_seconds=step,
            hours=hours,
            hours_with_goodput=hours / goodput_of(goodput, at.gpus),
            log_sigma=prediction_bands.log_sigma(work, (~at.measured).astype(np.float64)),
            mfu=flops / at.peak,
            units_per_second=rate,
            tflops_per_accelerator=flops / 1e12,
            peak_gib=peak,
            capacity_gib=at.capacity_bytes / GIB,
            states_gib=states,
            activations_gib=activations,
            other_gib=other,
            checkpointing=self.whole[8],
            terms=self.terms,
            **dict(zip(parts, self.whole, strict=False)),
        )


def model_flops_per_unit(work: Work) -> float:
    """FLOPs that MFU counts: 6 x active parameters + 6 L h s per token of causal attention (12 if not causal).

    For models without transformer blocks, with frozen parameters (adapters compute 4 N), or with a decoder that reads
    other tokens than its encoder: the FLOPs counted in the work.
    """
    shape = work.shape
    if shape is None or shape.cross_attention_layers or work.frozen_parameter_bytes > 0:
        return work.flops_per_unit
    tokens = 1.0 if work.units_per_sample > 1 else float(shape.sequence_length)
    width = shape.attention_heads * shape.head_size
    attention = (6.0 if shape.causal else 12.0) * shape.layers * width * shape.sequence_length
    return (6.0 * work.active_parameters + attention) * tokens
