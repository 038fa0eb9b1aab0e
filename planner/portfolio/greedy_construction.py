"""A first plan within seconds: each job in turn takes its cheapest option at the current prices of scarce capacity.

The order matters. Jobs are sorted by regret (the difference between their best and next best pool at the prices) per
possible start; those with the highest value are placed first.
"""

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import Columns, Floats, Instance, Ints
from gpuplan.planner.portfolio.timetable import Timetable


def fill(timetable: Timetable, order: Ints, score_usd: Floats) -> None:
    """Place these jobs in this order, each in its free column with the lowest `score_usd`, or leave it out.

    A job is left out if no column is free, or if every free one costs more than leaving it out.
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

    Regret is the loss without a job's best configuration, at most the loss of leaving the job out. Room is the number
    of starts of its best configuration.
    """
    key = np.zeros(instance.jobs)
    for job in range(instance.jobs):
        first, last = int(columns.first[job]), int(columns.first[job + 1])
        if first == last:
            continue
        score, kind = score_usd[first:last], columns.configuration[first:last]
        best = int(np.argmin(score))
        others = score[kind != kind[best]]
        second_best_usd = min(float(instance.penalty_usd[job]), float(others.min(initial=np.inf)))
        key[job] = max(0.0, second_best_usd - float(score[best])) / float((kind == kind[best]).sum())
    return np.argsort(-key, kind="stable")
