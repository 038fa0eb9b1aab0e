"""Groups of machine rows on which the same layouts fit: memory is computed once per group, although chips differ in speed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpuplan.planner.performance.accelerator_memory import room_bytes
from gpuplan.planner.performance.estimator_request import Ints, Machines
from gpuplan.planner.performance.layout_question import Question
from gpuplan.planner.performance.memory_options import Candidates
from gpuplan.planner.performance.rowwise_minimum import combined_key

#: Pairs of row and candidate timed at once: so many that numpy's overhead per call is small, so few that their 60 columns
#: stay in the cache. For many pairs, timing takes two thirds of the time that it takes at once.
PAIRS_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Groups of rows: `row` is the first row of each group, `question` the input for these rows, `of_row` the group of
    every row (-1 for excluded rows).
    """

    question: Question
    row: Ints
    of_row: Ints


def alike_in_memory(question: Question, machines: Machines) -> Alike:
    """The rows not yet excluded, grouped by all properties that decide which layouts fit."""
    clusters = question.clusters
    if len(machines) == 1 and not clusters.reason[0]:
        return Alike(question=question, row=np.zeros(1, np.int64), of_row=np.zeros(1, np.int64))
    usable = np.flatnonzero(clusters.reason == 0)
    element_bytes = clusters.element_bytes.astype(np.int64)
    shape = combined_key(machines.devices, machines.nodes, clusters.domain, element_bytes)[usable]
    room = room_bytes(question)[usable]
    order = np.lexsort((shape, room))
    shape, room = shape[order], room[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (shape[1:] != shape[:-1]) | (room[1:] != room[:-1])
    of_row = np.full(len(machines), -1)
    of_row[usable[order]] = np.cumsum(begins) - 1
    row = usable[order[begins]]
    return Alike(question=replace(question, clusters=clusters.take(row)), row=row, of_row=of_row)


def of_every_row(chosen: Candidates, group_of_split: Ints, of_row: Ints) -> Iterator[tuple[Candidates, Ints]]:
    """The candidates of every row's group, sorted by row, and the row of each candidate: whole rows in equal blocks."""
    rows = np.flatnonzero(of_row >= 0)
    count = np.bincount(group_of_split[chosen.split], minlength=int(of_row.max(initial=-1)) + 1)
    length = count[of_row[rows]]
    end = np.cumsum(length)
    # Per row one constant converts the index of its pairs into that of its group's candidates.
    apart = (np.cumsum(count) - count)[of_row[rows]] - (end - length)
    total = int(length.sum())
    blocks = max(1, round(total / PAIRS_AT_ONCE))
    block = (end - 1) * blocks // max(1, total)
    for some in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(block)) + 1):
        row = np.repeat(rows[some], length[some])
        pair = np.arange(len(row)) + (end - length)[some[:1]]
        yield chosen.take(pair + np.repeat(apart[some], length[some])), row
