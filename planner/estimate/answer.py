"""From winning candidates to `Estimates`: layout, memory, hours, MFU, and a reason for every row that lost."""

import numpy as np

from planner.estimate import bands
from planner.estimate.by_row import first_least
from planner.estimate.candidates import Candidates
from planner.estimate.chips import PRECISIONS
from planner.estimate.clusters import DOES_NOT_FIT, GIB, NO_LAYOUT, TOO_MANY
from planner.estimate.machines import Estimates, Floats, Ints, Machines
from planner.estimate.plane import Plane
from planner.estimate.question import Question
from planner.estimate.throughput import TERMS
from planner.workload.work import Work


class Answer:
    """Arrays of `Estimates` being filled: winners first, then what there is to say of the rest.

    `plane` is that of groups of rows, `group` the group of each row (-1: ruled out from the start).
    """

    def __init__(self, question: Question, machines: Machines, plane: Plane, group: Ints) -> None:
        """Nothing decided yet but what ruled rows out from the start."""
        self.question, self.machines, self.plane, self.group = question, machines, plane, group
        rows = len(machines)
        self.reason = question.clusters.reason.copy()
        self.terms = dict(zip(TERMS, np.full((len(TERMS), rows), np.inf), strict=True))
        self.bytes = np.full((4, rows), np.nan)
        self.whole = np.zeros((9, rows), dtype=np.int64)

    def win(self, chosen: Candidates, terms: dict[str, Floats], winner: Ints, rows: Ints) -> None:
        """Write the winning candidates into their rows."""
        for name, values in terms.items():
            self.terms[name][rows] = values[winner]
        kept, size = chosen.checkpointing[winner], chosen.micro_batch[winner]
        self._describe(rows, chosen.split[winner], chosen.stage[winner], kept, size)

    def _describe(self, rows: Ints, split: Ints, stage: Ints, kept: Ints, size: Floats) -> None:
        """Layout and memory of one candidate per row."""
        at, found, held = self.plane.splits, self.plane.found, self.plane.held[split]
        states, activations = found.states[stage, held], size * found.activations[kept, held]
        other = found.buffers[stage, held] + self.question.clusters.context_bytes[rows]
        self.bytes[:, rows] = states + activations + other, states, activations, other
        ranks = at.data[split] * at.context[split]
        asked = self.question.request.zero_stage
        stages = np.array(found.stages)[stage]
        self.whole[:5, rows] = [part[split] for part in (at.data, at.tensor, at.pipeline, at.context, at.expert)]
        self.whole[5, rows] = self.plane.interleave[split]
        self.whole[6, rows] = stages if asked is not None else np.where(ranks > 1, stages, 0)
        self.whole[7:, rows] = size, kept

    def lose(self, won: Ints) -> None:
        """Give every other row its reason and, where memory is it, the least that any split needs."""
        still = self.reason == 0
        still[won] = False
        if not still.any():
            return
        rows = np.flatnonzero(still)
        group_of_split, batch = self.plane.splits.row, self.plane.batch
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
        """Describe the split, stage and checkpointing that need least memory at the smallest micro-batch."""
        found = self.plane.found
        if not len(split):
            return
        held = self.plane.held[split]
        kept = np.argmin(found.activations[:, held], axis=0)
        stage = np.argmin(found.states[:, held] + found.buffers[:, held], axis=0)
        sizes = np.full(len(split), size)
        peak = found.peak(stage, kept, held, sizes)
        winner, groups = first_least(peak, self.plane.splits.row[split])
        rows = rows[np.isin(self.group[rows], groups)]
        best = winner[np.searchsorted(groups, self.group[rows])]
        self._describe(rows, split[best], stage[best], kept[best], sizes[best])

    def estimates(self, goodput: float) -> Estimates:
        """Everything that follows from time, memory and layout."""
        work, at = self.question.work, self.question.clusters
        step = np.sum(list(self.terms.values()), axis=0)
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
            hours_with_goodput=hours / goodput,
            log_sigma=bands.log_sigma(work, (~at.measured).astype(np.float64)),
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

    For models without transformer blocks, or whose decoder reads other tokens than its encoder, what the work
    itself counts. The same for adapters as for full training, which do 4 N: their MFU is the higher for it.
    """
    shape = work.shape
    if shape is None or shape.cross_attention_layers:
        return work.flops_per_unit
    tokens = 1.0 if work.units_per_sample > 1 else float(shape.sequence_length)
    width = shape.attention_heads * shape.head_size
    attention = (6.0 if shape.causal else 12.0) * shape.layers * width * shape.sequence_length
    return (6.0 * work.active_parameters + attention) * tokens
