"""The fastest layout that fits on every machine row, or the reason there is none."""

import numpy as np

from planner.estimate.alike import alike_in_memory, of_every_row
from planner.estimate.answer import Answer
from planner.estimate.by_row import first_least
from planner.estimate.candidates import candidates_of
from planner.estimate.columns import gather
from planner.estimate.machines import Estimates, LayoutRequest, Machines, assembled
from planner.estimate.plane import plane_of
from planner.estimate.question import question_of
from planner.estimate.throughput import seconds
from planner.job import Training
from planner.workload.work import Work

FREE = LayoutRequest()
#: Rows estimated at once. A row has some 30 layouts of 40 columns, so a block takes about 80 MiB whatever is asked.
ROWS_AT_ONCE = 8192


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
    if len(machines) <= ROWS_AT_ONCE:
        return _estimate(work, training, machines, goodput, request)
    # Rows of equal node counts share their splits, so they stay together.
    order = np.argsort(machines.nodes, kind="stable")
    blocks = (order[first : first + ROWS_AT_ONCE] for first in range(0, len(order), ROWS_AT_ONCE))
    parts = ((rows, _estimate(work, training, machines.take(rows), goodput, request)) for rows in blocks)
    return assembled(len(machines), parts)


def _estimate(work: Work, training: Training, machines: Machines, goodput: float, request: LayoutRequest) -> Estimates:
    question = question_of(work, training, machines, request)
    alike = alike_in_memory(question, machines)
    plane = plane_of(alike.question, machines.take(alike.row))
    chosen, row = of_every_row(candidates_of(alike.question, plane), plane.splits.row, alike.of_row)
    terms = seconds(work, training, gather(question, plane, chosen, row))
    total = np.sum(list(terms.values()), axis=0)
    winner, rows = first_least(total, row)
    answer = Answer(question, machines, plane, alike.of_row)
    answer.win(chosen, terms, winner, rows)
    answer.lose(rows)
    return answer.estimates(goodput)
