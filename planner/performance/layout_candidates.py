"""The (machine row, split) pairs to time.

Memory depends on the shape of a cluster, not on its chips, so it is computed once per distinct shape and compared with
the capacity of each row. A pair is dropped if it does not fit under any ZeRO stage and checkpointing.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.accelerator_memory import Footprint, footprint, room_bytes
from gpuplan.planner.performance.estimator_request import Floats, Ints, Machines
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.layout_splits import Splits, limits_of, splits_of
from gpuplan.planner.performance.rowwise_minimum import combined_key, first_least, row_starts
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


#: Chunks per device of an interleaved pipeline, each of at least one block (Narayanan 2021 uses 2-6; Llama 3's 126 blocks
#: on 16 stages make 8). Chunks need not be of equal size: the fullest stage sets the pace (`stage_share`).
INTERLEAVES = (2, 3, 4, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCandidates:
    """Splits with their batch, interleaving and memory; `splits.row` indexes the machines.

    `footprint` is computed per cluster shape; `footprint_index` is the element of each split in it.
    """

    splits: Splits
    batch: Batch
    interleave: Floats
    footprint_index: Ints
    footprint: Footprint


def layout_candidates_of(question: Question, machines: Machines) -> LayoutCandidates:
    """For every row not yet excluded: the splits that fit or, if none fits, the split that needs the least memory.

    Raises `UnusableInput` for an unknown optimizer.
    """
    shapes, shape_of_row = _shapes(question, machines)
    devices, nodes, domain, element_bytes = shapes
    splits = splits_of(limits_of(question.work), devices, nodes, domain, question.request)
    batch = batches(question.work, splits)
    interleave = _interleave(question, splits, batch)
    in_flight = _in_flight(splits, batch, interleave)
    shape_footprint = footprint(question, splits, element_bytes[splits.row].astype(np.float64), in_flight)
    row, split = _pairs(splits.row, shape_of_row, question.clusters.reason == 0)
    everything = np.arange(len(splits.row))
    whole = LayoutCandidates(
        splits=splits,
        batch=batch,
        interleave=interleave,
        footprint_index=everything,
        footprint=shape_footprint,
    )
    selected = _fitting(question, whole, row, split)
    row, split = row[selected], split[selected]
    return LayoutCandidates(
        splits=splits.of_rows(row, split),
        batch=batch.take(split),
        interleave=interleave.take(split),
        footprint_index=split,
        footprint=shape_footprint,
    )


def _shapes(question: Question, machines: Machines) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
    """Distinct (devices, nodes, domain, element bytes), and the index of each row's tuple among them."""
    clusters = question.clusters
    columns = (machines.devices, machines.nodes, clusters.domain, clusters.element_bytes.astype(np.int64))
    if len(machines) == 1:
        return columns, np.zeros(1, np.int64)
    _, first, shape_of_row = np.unique(combined_key(*columns), return_index=True, return_inverse=True)
    devices, nodes, domain, element_bytes = (column[first] for column in columns)
    return (devices, nodes, domain, element_bytes), shape_of_row


def _pairs(
    shape_of_split: Ints, shape_of_row: Ints, usable: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[Ints, Ints]:
    """Every usable row with every split of its shape: (row, split), sorted by row."""
    rows = np.flatnonzero(usable)
    shape = shape_of_row[rows]
    count = np.bincount(shape_of_split, minlength=int(shape_of_row.max(initial=0)) + 1)
    first = np.cumsum(count) - count
    length = count[shape]
    row = np.repeat(rows, length)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    return row, np.repeat(first[shape], length) + offset


def _fitting(question: Question, layout_candidates: LayoutCandidates, row: Ints, split: Ints) -> Ints:
    """Indices of the pairs that fit and, for rows where none fits, of the pair that needs the least memory."""
    if not len(row):
        return row
    request, memory = question.request, layout_candidates.footprint
    size = float(request.micro_batch or 1)
    usable = layout_candidates.batch.enough & (np.maximum(layout_candidates.batch.local, 1.0) >= size)
    fixed = (memory.states + memory.buffers).min(axis=0)
    least = np.where(usable, fixed + size * memory.activations.min(axis=0), np.inf)[split]
    selected = least <= room_bytes(question)[row]
    starts = row_starts(row)
    dead = ~np.logical_or.reduceat(selected, starts)
    if dead.any():
        lost = np.flatnonzero(np.repeat(dead, np.diff(np.append(starts, len(row)))))
        selected[lost[first_least(least[lost], row[lost])[0]]] = True
    return np.flatnonzero(selected)


def _interleave(question: Question, splits: Splits, batch: Batch) -> Floats:
    """Chunks per pipeline stage: as requested, else the largest of `INTERLEAVES` for which there are enough blocks."""
    chunks = np.ones(len(splits.row))
    piped = splits.pipeline > 1
    asked = question.request.interleave
    if asked is not None:
        return np.where(piped, float(asked), 1.0)
    enough = piped & (batch.local >= splits.pipeline)
    for count in INTERLEAVES:
        chunks[enough & (splits.pipeline * count <= question.layers)] = count
    return chunks


def _in_flight(splits: Splits, batch: Batch, interleave: Floats) -> Floats:
    """Micro-batches whose activations the first stage holds (Narayanan 2021); interleaving adds to them."""
    micro_batches = np.minimum(splits.pipeline, np.maximum(1.0, batch.local))
    extra = 1.0 + (splits.pipeline - 1.0) / (splits.pipeline * interleave)
    return np.where(interleave > 1, micro_batches * extra, micro_batches)
