"""A first plan within seconds: each job in turn takes what is cheapest for it at the prices of scarcity.

Who chooses first matters. Jobs come by what they stand to lose, the gap between their best and their next best
pool at the prices (regret), per slot of room that their dates leave them; those with most to lose first.
"""

import numpy as np

from planner.portfolio.instance import Columns, Floats, Instance, Ints
from planner.portfolio.timetable import Timetable


def fill(timetable: Timetable, order: Ints, score_usd: Floats) -> None:
    """Place these unplaced jobs in this order, each in its free column of least `score_usd`, or leave it out.

    A job is left out where none is free or each free one costs more than leaving it out does.
    """
    penalty, cost = timetable.instance.penalty_usd, timetable.columns.cost_usd
    for job in order.tolist():
        free = timetable.free(job)
        if not free.any():
            continue
        first, last = timetable.block(job)
        column = first + int(np.argmin(np.where(free, score_usd[first:last], np.inf)))
        if cost[column] <= penalty[job]:
            timetable.place(job, column)


def by_regret(instance: Instance, columns: Columns, score_usd: Floats) -> Ints:
    """Jobs by regret over room, the most urgent first.

    Regret is the loss if a job's best configuration is gone, capped by that of leaving it out; room is how many
    starts its best configuration has.
    """
    key = np.zeros(instance.jobs)
    for job in range(instance.jobs):
        first, last = int(columns.first[job]), int(columns.first[job + 1])
        if first == last:
            continue
        score, kind = score_usd[first:last], columns.configuration[first:last]
        best = int(np.argmin(score))
        others = score[kind != kind[best]]
        fallback = min(float(instance.penalty_usd[job]), float(others.min(initial=np.inf)))
        key[job] = max(0.0, fallback - float(score[best])) / float((kind == kind[best]).sum())
    return np.argsort(-key, kind="stable")
