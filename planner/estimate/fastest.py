"""The fastest layout that fits on every machine row, or the reason there is none."""

import numpy as np

from planner.estimate import bands
from planner.estimate.candidates import Batch, Candidates, batches, candidates_of
from planner.estimate.chips import PRECISIONS
from planner.estimate.clusters import DOES_NOT_FIT, GIB, NO_LAYOUT, TOO_MANY, Clusters, clusters_of
from planner.estimate.columns import gather
from planner.estimate.layouts import Splits, limits_of, splits_of
from planner.estimate.machines import Estimates, Floats, Ints, LayoutRequest, Machines
from planner.estimate.memory import Footprint, footprint, largest_micro_batch
from planner.estimate.throughput import TERMS, seconds
from planner.job import Training
from planner.workload.work import Work

#: Chunks per device that an interleaved pipeline is given where the blocks divide (Narayanan 2021 uses 2-6).
INTERLEAVES = (2, 3, 4)
FREE = LayoutRequest()


def estimate(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    goodput: float,
    request: LayoutRequest = FREE,
) -> Estimates:
    """Time and memory of `work` on every row of `machines`, at the fastest layout that fits.

    `goodput` is the share of wall time that trains. What `request` names is kept, the rest chosen.
    Rows that cannot run the job say why in `reason`. Raises `UnusableInput` for an unknown
    precision, optimizer or software class.
    """
    asked = _with_training(request, training)
    clusters = clusters_of(machines, training)
    every = splits_of(limits_of(work), machines.devices, machines.nodes, clusters.domain, asked)
    splits = _usable(every, clusters.reason)
    batch = batches(work, splits)
    interleave = _interleave(work, splits, batch, asked)
    in_flight = _in_flight(splits, batch, interleave)
    found = footprint(work, training, clusters, splits, in_flight, asked)
    fitting = largest_micro_batch(found, clusters.capacity_bytes[splits.row])
    chosen = candidates_of(work, training, splits, batch, found, fitting, asked)
    at = gather(work, clusters, splits, interleave, batch, found, chosen)
    terms = seconds(work, training, at)
    total = np.sum(list(terms.values()), axis=0)
    winner, rows = _fastest(total, splits.row[chosen.split])
    answer = _Answer(work, machines, clusters, splits, batch, interleave, found)
    answer.win(chosen, terms, total, winner, rows)
    answer.lose(rows, asked)
    return answer.estimates(goodput)


def _with_training(request: LayoutRequest, training: Training) -> LayoutRequest:
    """The request completed by what the job itself fixes."""
    checkpointing = request.checkpointing
    if checkpointing is None and training.activation_checkpointing != "auto":
        checkpointing = training.activation_checkpointing
    stage = request.zero_stage
    if stage is None and training.offload == "parameters":
        stage = 3
    parts = {name: getattr(request, name) for name in ("data", "tensor", "pipeline", "context", "expert", "interleave")}
    size = request.micro_batch or training.micro_batch
    return LayoutRequest(**parts, zero_stage=stage, micro_batch=size, checkpointing=checkpointing)


def _usable(splits: Splits, reason: Ints) -> Splits:
    """The splits of rows that nothing rules out yet."""
    if not reason.any():
        return splits
    keep = np.flatnonzero(reason[splits.row] == 0)
    names = ("row", "data", "tensor", "pipeline", "context", "expert")
    return Splits(**{name: getattr(splits, name)[keep] for name in names})


def _interleave(work: Work, splits: Splits, batch: Batch, request: LayoutRequest) -> Floats:
    """Chunks per pipeline stage: as asked, else the most of `INTERLEAVES` that the blocks divide into."""
    chunks = np.ones(len(splits.row))
    if work.shape is None or splits.pipeline.max(initial=1) == 1:
        return chunks
    piped = splits.pipeline > 1
    if request.interleave is not None:
        return np.where(piped, float(request.interleave), 1.0)
    enough = piped & (batch.local >= splits.pipeline)
    for count in INTERLEAVES:
        chunks[enough & (work.shape.layers % (splits.pipeline * count) == 0)] = count
    return chunks


def _in_flight(splits: Splits, batch: Batch, interleave: Floats) -> Floats:
    """Micro-batches whose activations the first stage holds (Narayanan 2021; interleaving holds some more)."""
    held = np.minimum(splits.pipeline, np.maximum(1.0, batch.local))
    extra = 1.0 + (splits.pipeline - 1.0) / (splits.pipeline * interleave)
    return np.where(interleave > 1, held * extra, held)


def _fastest(total: Floats, row: Ints) -> tuple[Ints, Ints]:
    """(candidate, row) of the fastest candidate of every row that has one; the first of equals."""
    if not len(row):
        return row, row
    starts = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1])))
    rows = row[starts]
    least = np.minimum.reduceat(total, starts)
    sizes = np.diff(np.append(starts, len(row)))
    hits = np.flatnonzero(total == np.repeat(least, sizes))
    first = np.searchsorted(hits, starts)
    return hits[first], rows


class _Answer:
    """Arrays of `Estimates` being filled: winners first, then what there is to say of the rest."""

    def __init__(
        self,
        work: Work,
        machines: Machines,
        clusters: Clusters,
        splits: Splits,
        batch: Batch,
        interleave: Floats,
        found: Footprint,
    ) -> None:
        self.work, self.machines, self.clusters, self.splits = work, machines, clusters, splits
        self.batch, self.interleave, self.found = batch, interleave, found
        rows = len(machines)
        self.reason = clusters.reason.copy()
        self.step = np.full(rows, np.inf)
        self.terms = {name: np.full(rows, np.inf) for name in TERMS}
        self.bytes = np.full((4, rows), np.nan)
        self.whole = np.zeros((9, rows), dtype=np.int64)

    def win(self, chosen: Candidates, terms: dict[str, Floats], total: Floats, winner: Ints, rows: Ints) -> None:
        """Write the winning candidates."""
        self.step[rows] = total[winner]
        for name, values in terms.items():
            self.terms[name][rows] = values[winner]
        self._describe(
            rows, chosen.split[winner], chosen.stage[winner], chosen.checkpointing[winner], chosen.micro_batch[winner]
        )

    def _describe(self, rows: Ints, split: Ints, stage: Ints, kept: Ints, size: Floats) -> None:
        """Layout and memory of one candidate per row."""
        at, found = self.splits, self.found
        states, activations = found.states[stage, split], size * found.activations[kept, split]
        other = found.buffers[stage, split] + found.context[split]
        self.bytes[:, rows] = states + activations + other, states, activations, other
        ranks = at.data[split] * at.context[split]
        stages = np.where(ranks > 1, np.array(found.stages)[stage], 0)
        parts = (at.data, at.tensor, at.pipeline, at.context, at.expert)
        self.whole[:5, rows] = [part[split] for part in parts]
        self.whole[5:, rows] = self.interleave[split], stages, size, kept

    def lose(self, won: Ints, request: LayoutRequest) -> None:
        """Give every other row its reason and, where memory is it, the least that any split needs."""
        open_rows = self.reason == 0
        open_rows[won] = False
        if not open_rows.any():
            return
        has_split = np.zeros(len(open_rows), dtype=bool)
        has_split[self.splits.row] = True
        has_samples = np.zeros(len(open_rows), dtype=bool)
        size = request.micro_batch or 1
        usable = self.batch.enough & (np.maximum(self.batch.local, 1.0) >= size)
        has_samples[self.splits.row[usable]] = True
        self.reason[open_rows] = np.where(~has_split, NO_LAYOUT, np.where(has_samples, DOES_NOT_FIT, TOO_MANY))[
            open_rows
        ]
        tight = np.flatnonzero(usable & (self.reason[self.splits.row] == DOES_NOT_FIT))
        self._least(tight, float(size))

    def _least(self, split: Ints, size: float) -> None:
        """Describe the split, stage and checkpointing that need least memory at the smallest micro-batch."""
        found = self.found
        if not len(split):
            return
        kept = np.argmin(found.activations[:, split], axis=0)
        stage = np.argmin(found.states[:, split] + found.buffers[:, split], axis=0)
        sizes = np.full(len(split), size)
        winner, rows = _fastest(found.peak(stage, kept, split, sizes), self.splits.row[split])
        self._describe(rows, split[winner], stage[winner], kept[winner], sizes[winner])

    def estimates(self, goodput: float) -> Estimates:
        """Everything that follows from time, memory and layout."""
        work, machines, at = self.work, self.machines, self.clusters
        rate = work.units_per_step / self.step
        model_tflops = rate / at.gpus * model_flops_per_unit(work) / 1e12
        hours = work.steps * self.step / 3600
        peak, states, activations, other = self.bytes / GIB
        data, tensor, pipeline, context, expert, interleave, zero_stage, micro_batch, kept = self.whole
        several = (machines.nodes > 1).astype(np.float64)
        return Estimates(
            precisions=PRECISIONS,
            reason=self.reason,
            precision=at.precision,
            substituted=at.substituted,
            step_seconds=self.step,
            hours=hours,
            hours_with_goodput=hours / goodput,
            log_sigma=bands.log_sigma(work, several, (~at.measured).astype(np.float64)),
            mfu=model_tflops * 1e12 / at.peak,
            units_per_second=rate,
            tflops_per_accelerator=model_tflops,
            peak_gib=peak,
            capacity_gib=at.capacity_bytes / GIB,
            states_gib=states,
            activations_gib=activations,
            other_gib=other,
            data=data,
            tensor=tensor,
            pipeline=pipeline,
            context=context,
            expert=expert,
            interleave=interleave,
            zero_stage=zero_stage,
            micro_batch=micro_batch,
            checkpointing=kept,
            terms=self.terms,
        )


def model_flops_per_unit(work: Work) -> float:
    """FLOPs that MFU counts: 6 x active parameters + 6 L h s per token of causal attention (12 if not causal).

    For models without transformer blocks, what the work itself counts. The same for adapters as for
    full training, so that MFU stays comparable.
    """
    shape = work.shape
    if shape is None:
        return work.flops_per_unit
    tokens = 1.0 if work.units_per_sample > 1 else float(shape.sequence_length)
    width = shape.attention_heads * shape.head_size
    attention = (6.0 if shape.causal else 12.0) * shape.layers * width * shape.sequence_length
    return (6.0 * work.active_parameters + attention) * tokens
