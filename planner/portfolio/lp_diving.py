"""LP diving: a plan from the linear relaxation, which fixes the jobs with the highest values first, a few at a time.

The relaxation of the other jobs is then solved on the remaining capacity, and so on. Its prices reflect the capacity
that the placed jobs leave. Each round offers every open job the columns that still fit and are cheapest at the last
prices.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.lagrangian_prices import Answered, Prices, answer_to
from gpuplan.planner.portfolio.portfolio_instance import Floats, Instance, Ints
from gpuplan.planner.portfolio.time_indexed_model import TimeIndexed
from gpuplan.planner.portfolio.timetable import Timetable, fill

#: The share of the open jobs placed per round, and the least value in the relaxation of further jobs placed.
SHARE, SURE = 0.05, 0.97
#: Columns offered per open job and round.
OFFERED = 40
#: Up to this many open jobs are placed greedily; ruin and recreate improves them faster than more rounds.
LAST = 40


def dive(
    instance: Instance,
    table: Timetable,
    answered: Answered,
    x: Floats,
    stop: Callable[[], bool],
    *,
    after_round: Callable[[], None] = lambda: None,
) -> int:
    """Place the jobs in an empty timetable by the relaxation's solution `x` (a share per column); returns the rounds.

    Zeros in `x` mean an unknown solution. Once `stop` returns true, the open jobs are placed greedily at the last
    prices.
    """
    columns, reduced = instance.columns, answered.reduced_usd
    is_open, rounds = np.ones(instance.jobs, np.bool_), 0
    while is_open.sum() > LAST and not stop():
        if rounds or x.any():
            _settle(instance, table, x, is_open)
        jobs = np.flatnonzero(is_open)
        at = _offered(table, jobs, reduced)
        if not len(at):
            break
        model = TimeIndexed(
            instance, columns, at, jobs, left=table.left, budget_left=table.budget_left, every_slot=True
        )
        relaxed = model.relaxed(stop=stop, interior=True)
        if relaxed is None:
            break
        prices = Prices(capacity=relaxed.capacity, budget=relaxed.budget)
        reduced = answer_to(instance, columns, prices).reduced_usd
        x = np.zeros(len(columns))
        x[at] = relaxed.x
        rounds += 1
        after_round()
    rest = np.flatnonzero(table.column < 0)
    dearest_first = np.argsort(answered.least_usd[rest] - instance.penalty_usd[rest], kind="stable")
    fill(table, rest[dearest_first], answered.reduced_usd)
    return rounds


def _settle(instance: Instance, table: Timetable, x: Floats, is_open: NDArray[np.bool_]) -> None:
    """Place or leave out the open jobs with the highest values in the relaxation; they are no longer open."""
    columns = instance.columns
    placed = np.zeros(instance.jobs)
    np.maximum.at(placed, columns.job, x)
    absent = 1.0 - np.bincount(columns.job, weights=x, minlength=instance.jobs)
    surest = np.where(is_open, np.maximum(placed, absent), -1.0)
    count = max(int((surest >= SURE).sum()), int(np.ceil(SHARE * is_open.sum())))
    for job in np.argsort(-surest, kind="stable")[:count].tolist():
        if absent[job] >= placed[job]:
            is_open[job] = False
            continue
        first, last = table.block(job)
        column = first + int(np.argmax(x[first:last]))
        # A job that no longer fits stays open for the next round.
        if table.free(job)[column - first]:
            table.place(job, column)
            is_open[job] = False


def _offered(table: Timetable, jobs: Ints, reduced_usd: Floats) -> Ints:
    """The cheapest columns of each of these jobs that fit the remaining capacity."""
    parts = [np.zeros(0, np.int64)]
    for job in jobs.tolist():
        first, _ = table.block(job)
        fits = first + np.flatnonzero(table.free(job))
        if len(fits) > OFFERED:
            fits = np.sort(fits[np.argpartition(reduced_usd[fits], OFFERED)[:OFFERED]])
        parts.append(fits)
    return np.concatenate(parts)
