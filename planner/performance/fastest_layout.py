"""The fastest layout that fits on every machine row, or the reason why none does.

Groups of machine rows on which the same layouts fit: memory is computed once per group, although chips differ in speed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.accelerator_memory import room_bytes
from gpuplan.planner.performance.estimate_assembly import Answer
from gpuplan.planner.performance.estimator_request import Estimates, Ints, LayoutRequest, Machines, assembled
from gpuplan.planner.performance.layout_candidates import layout_candidates_of
from gpuplan.planner.performance.layout_columns import gather
from gpuplan.planner.performance.layout_question import Question, question_of
from gpuplan.planner.performance.memory_options import Candidates, candidates_of
from gpuplan.planner.performance.rowwise_minimum import combined_key, first_least
from gpuplan.planner.performance.step_time import seconds
from gpuplan.planner.workload.step_work import Work

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


FREE = LayoutRequest()
#: Rows estimated at once. A row has about 30 layouts of 40 columns, which limits a block to about 80 MiB.
ROWS_AT_ONCE = 8192


def estimate(
    work: Work,
    training: Training,
    machines: Machines,
    *,
    goodput: float | None,
    request: LayoutRequest = FREE,
) -> Estimates:
    """Time and memory of `work` on every row of `machines`, at the fastest layout that fits.

    `goodput` is the share of wall time spent on training; None models it. Fields that `request` sets are fixed, the others are chosen.
    `reason` states why a row cannot run the job. Raises `UnusableInput` for an unknown precision, optimizer or software
    class.
    """
    if len(machines) <= ROWS_AT_ONCE:
        return _estimate(work, training, machines, goodput, request)
    # Rows of equal node counts share their splits, so they stay together.
    order = np.argsort(machines.nodes, kind="stable")
    blocks = (order[first : first + ROWS_AT_ONCE] for first in range(0, len(order), ROWS_AT_ONCE))
    parts = ((rows, _estimate(work, training, machines.take(rows), goodput, request)) for rows in blocks)
    return assembled(len(machines), parts)


def _estimate(
    work: Work, training: Training, machines: Machines, goodput: float | None, request: LayoutRequest
) -> Estimates:
    question = question_of(work, training, machines, request)
    alike = alike_in_memory(question, machines)
    layout_candidates = layout_candidates_of(alike.question, machines.take(alike.row))
    chosen = candidates_of(alike.question, layout_candidates)
    answer = Answer(question, machines, layout_candidates, alike.of_row)
    won = np.zeros(len(machines), np.bool_)
    for timed, row in of_every_row(chosen, layout_candidates.splits.row, alike.of_row):
        terms = seconds(work, question.training, gather(question, layout_candidates, timed, row))
        winner, rows = first_least(reduce(np.add, terms.values()), row)
        answer.win(timed, terms, winner, rows)
        won[rows] = True
    answer.lose(won)
    return answer.estimates(goodput)


def step_seconds(work: Work, training: Training, machines: Machines, request: LayoutRequest) -> float:
    """Seconds of a step on the only row of `machines` as `estimate` states them; inf where the job cannot run."""
    question = question_of(work, training, machines, request)
    if question.clusters.reason[0]:
        return math.inf
    layout_candidates = layout_candidates_of(question, machines)
    chosen = candidates_of(question, layout_candidates)
    at = gather(question, layout_candidates, chosen, np.zeros(len(chosen.split), np.int64))
    return float(reduce(np.add, seconds(work, question.training, at).values()).min(initial=math.inf))


def reasons(work: Work, training: Training, machines: Machines, *, request: LayoutRequest = FREE) -> Ints:
    """The `reason` of every row as `estimate` states it, from memory alone: no layout is timed."""
    question = question_of(work, training, machines, request)
    alike = alike_in_memory(question, machines)
    layout_candidates = layout_candidates_of(alike.question, machines.take(alike.row))
    fitting = layout_candidates.splits.row[candidates_of(alike.question, layout_candidates).split]
    answer = Answer(question, machines, layout_candidates, alike.of_row)
    answer.lose(np.isin(alike.of_row, fitting))
    return answer.reason
