"""The (machine row, split) pairs worth timing.

Memory depends on the shape of a cluster, not on its chips, so it is worked out once per distinct shape and
compared with what each row has. A pair is dropped when the row lacks the memory under every ZeRO stage
and checkpointing.
"""

from dataclasses import dataclass

import numpy as np

from planner.estimate.batch import Batch, batches
from planner.estimate.by_row import first_least
from planner.estimate.layouts import Splits, limits_of, splits_of
from planner.estimate.machines import Floats, Ints, Machines
from planner.estimate.memory import Footprint, footprint, room_bytes
from planner.estimate.question import Question

#: Chunks per device that an interleaved pipeline is given where the blocks divide (Narayanan 2021 uses 2-6).
INTERLEAVES = (2, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Splits with how the batch falls on them and what they hold; `splits.row` indexes the machines.

    `found` is per cluster shape: `held` says where in it each split stands.
    """

    splits: Splits
    batch: Batch
    interleave: Floats
    held: Ints
    found: Footprint


def plane_of(question: Question, machines: Machines) -> Plane:
    """The plane of `question`: for every row that nothing rules out, the splits that fit, or the least of those too big.

    Raises `UnusableInput` for an unknown optimizer.
    """
    shapes, shape_of_row = _shapes(question, machines)
    devices, nodes, domain, element_bytes = shapes
    splits = splits_of(limits_of(question.work), devices, nodes, domain, question.request)
    batch = batches(question.work, splits)
    interleave = _interleave(question, splits, batch)
    in_flight = _in_flight(splits, batch, interleave)
    found = footprint(question, splits, element_bytes[splits.row].astype(np.float64), in_flight)
    row, split = _pairs(splits.row, shape_of_row, question.clusters.reason == 0)
    everything = np.arange(len(splits.row))
    whole = Plane(splits=splits, batch=batch, interleave=interleave, held=everything, found=found)
    keep = _fitting(question, whole, row, split)
    row, split = row[keep], split[keep]
    return Plane(
        splits=splits.of_rows(row, split),
        batch=batch.take(split),
        interleave=interleave.take(split),
        held=split,
        found=found,
    )


def _shapes(question: Question, machines: Machines) -> tuple[tuple[Ints, Ints, Ints, Ints], Ints]:
    """Distinct (devices, nodes, domain, element bytes), and which of them each row is."""
    clusters = question.clusters
    columns = (machines.devices, machines.nodes, clusters.domain, clusters.element_bytes.astype(np.int64))
    key = np.zeros(len(machines), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, shape_of_row = np.unique(key, return_index=True, return_inverse=True)
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


def _fitting(question: Question, plane: Plane, row: Ints, split: Ints) -> Ints:
    """Indices of the pairs to keep: those that fit, and of a row where none does the one that needs least."""
    if not len(row):
        return row
    request, found = question.request, plane.found
    size = float(request.micro_batch or 1)
    usable = plane.batch.enough & (np.maximum(plane.batch.local, 1.0) >= size)
    fixed = (found.states + found.buffers).min(axis=0)
    least = np.where(usable, fixed + size * found.activations.min(axis=0), np.inf)[split]
    keep = least <= room_bytes(question)[row]
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    dead = ~np.logical_or.reduceat(keep, starts)
    if dead.any():
        lost = np.flatnonzero(np.repeat(dead, np.diff(np.append(starts, len(row)))))
        keep[lost[first_least(least[lost], row[lost])[0]]] = True
    return np.flatnonzero(keep)


def _interleave(question: Question, splits: Splits, batch: Batch) -> Floats:
    """Chunks per pipeline stage: as asked, else the most of `INTERLEAVES` that the blocks divide into."""
    chunks = np.ones(len(splits.row))
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
