"""The fastest layout that fits on every machine row, or the reason there is none."""

from dataclasses import replace

import numpy as np

from planner.estimate.answer import Answer, first_least
from planner.estimate.candidates import Batch, batches, candidates_of, comfortable
from planner.estimate.columns import Plane, gather
from planner.estimate.layouts import Splits, limits_of, splits_of
from planner.estimate.machines import Estimates, Floats, LayoutRequest, Machines
from planner.estimate.memory import footprint, largest_micro_batch
from planner.estimate.question import Question, question_of
from planner.estimate.throughput import seconds
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
    question = question_of(work, training, machines, request)
    plane = _plane(question, machines)
    capacity = question.clusters.capacity_bytes[plane.splits.row]
    fitting = largest_micro_batch(plane.found, capacity)
    chosen = candidates_of(question, plane.splits, plane.batch, plane.found, fitting)
    terms = seconds(work, training, gather(question, plane, chosen))
    total = np.sum(list(terms.values()), axis=0)
    winner, rows = first_least(total, plane.splits.row[chosen.split])
    answer = Answer(question, machines, plane)
    answer.win(chosen, terms, winner, rows)
    answer.lose(rows)
    return answer.estimates(goodput)


def _plane(question: Question, machines: Machines) -> Plane:
    """The splits worth timing: of rows that nothing rules out, and no further split than memory asks for."""
    clusters = question.clusters
    splits = splits_of(limits_of(question.work), machines.devices, machines.nodes, clusters.domain, question.request)
    if clusters.reason.any():
        splits = splits.take(np.flatnonzero(clusters.reason[splits.row] == 0))
    if splits.tensor.size and (splits.tensor * splits.pipeline).max() > 1:
        splits = splits.take(_comfortable(question, splits))
    batch = batches(question.work, splits)
    interleave = _interleave(question, splits, batch)
    found = footprint(question, splits, _in_flight(splits, batch, interleave))
    return Plane(splits=splits, batch=batch, interleave=interleave, found=found)


def _comfortable(question: Question, splits: Splits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Indices of the splits to keep, judged at the lowest ZeRO stage that is allowed."""
    stage = question.request.zero_stage if question.request.zero_stage is not None else 1
    lowest = replace(question, request=replace(question.request, zero_stage=stage))
    batch = batches(question.work, splits)
    in_flight = _in_flight(splits, batch, np.ones(len(splits.row)))
    found = footprint(lowest, splits, in_flight)
    fitting = largest_micro_batch(found, question.clusters.capacity_bytes[splits.row])
    return comfortable(question, splits, batch, fitting)


def _interleave(question: Question, splits: Splits, batch: Batch) -> Floats:
    """Chunks per pipeline stage: as asked, else the most of `INTERLEAVES` that the blocks divide into."""
    chunks = np.ones(len(splits.row))
    if splits.pipeline.max(initial=1) == 1:
        return chunks
    piped = splits.pipeline > 1
    asked = question.request.interleave
    if asked is not None:
        return np.where(piped, float(asked), 1.0)
    enough = piped & (batch.local >= splits.pipeline)
    for count in INTERLEAVES:
        chunks[enough & (question.layers % (splits.pipeline * count) == 0)] = count
    return chunks


def _in_flight(splits: Splits, batch: Batch, interleave: Floats) -> Floats:
    """Micro-batches whose activations the first stage holds (Narayanan 2021; interleaving holds some more)."""
    held = np.minimum(splits.pipeline, np.maximum(1.0, batch.local))
    extra = 1.0 + (splits.pipeline - 1.0) / (splits.pipeline * interleave)
    return np.where(interleave > 1, held * extra, held)
