"""The fastest layout that fits on every machine row, or the reason there is none."""

import numpy as np

from planner.estimate.answer import Answer
from planner.estimate.by_row import first_least
from planner.estimate.candidates import candidates_of
from planner.estimate.columns import gather
from planner.estimate.machines import Estimates, LayoutRequest, Machines
from planner.estimate.plane import plane_of
from planner.estimate.question import question_of
from planner.estimate.throughput import seconds
from planner.job import Training
from planner.workload.work import Work

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
    plane = plane_of(question, machines)
    chosen = candidates_of(question, plane)
    terms = seconds(work, training, gather(question, plane, chosen))
    total = np.sum(list(terms.values()), axis=0)
    winner, rows = first_least(total, plane.splits.row[chosen.split])
    answer = Answer(question, machines, plane)
    answer.win(chosen, terms, winner, rows)
    answer.lose(rows)
    return answer.estimates(goodput)
