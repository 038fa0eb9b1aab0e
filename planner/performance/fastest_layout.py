"""The fastest layout that fits on every machine row, or the reason why none does."""

import math
from functools import reduce

import numpy as np

from gpuplan.planner.model.job import Training
from gpuplan.planner.performance.estimate_assembly import Answer
from gpuplan.planner.performance.estimator_request import Estimates, Ints, LayoutRequest, Machines, assembled
from gpuplan.planner.performance.layout_candidates import layout_candidates_of
from gpuplan.planner.performance.layout_columns import gather
from gpuplan.planner.performance.layout_question import question_of
from gpuplan.planner.performance.memory_equivalent_clusters import alike_in_memory, of_every_row
from gpuplan.planner.performance.memory_options import candidates_of
from gpuplan.planner.performance.rowwise_minimum import first_least
from gpuplan.planner.performance.step_time import seconds
from gpuplan.planner.workload.step_work import Work

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
