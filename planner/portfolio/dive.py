"""A plan from the linear relaxation, a few jobs at a time: those that it places most surely are placed for good.

What is left of the pools is then given to the relaxation of the other jobs, and so on. Its prices know what room the
placed jobs have left, which the prices of the whole do not; and a job that has become certain was never guessed at.
Each round offers every open job the columns that are cheapest at the last round's prices and still fit.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.optimise.time_indexed import TimeIndexed
from planner.portfolio.construct import fill
from planner.portfolio.instance import Floats, Instance, Ints
from planner.portfolio.prices import Answered, Prices, answer_to
from planner.portfolio.timetable import Timetable

#: The share of the open jobs that is placed in each round, and how sure the relaxation is of what is placed beside.
SHARE, SURE = 0.05, 0.97
#: Each open job is offered so many columns in a round.
OFFERED = 40
#: So few open jobs are placed greedily: ruin and recreate mends them sooner than more rounds would.
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
    """Place the jobs in an empty timetable, led by the relaxation's solution `x`, a share of each column; rounds done.

    All zeros in `x` mean that it is not known. Once `stop` says yes, the open jobs are placed greedily at the last prices.
    """
    columns, reduced = instance.columns, answered.reduced_usd
    opened, rounds = np.ones(instance.jobs, np.bool_), 0
    while opened.sum() > LAST and not stop():
        if rounds or x.any():
            _settle(instance, table, x, opened)
        jobs = np.flatnonzero(opened)
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


def _settle(instance: Instance, table: Timetable, x: Floats, opened: NDArray[np.bool_]) -> None:
    """Place the surest of the open jobs, or leave them out where the relaxation does; no longer open then."""
    columns = instance.columns
    placed = np.zeros(instance.jobs)
    np.maximum.at(placed, columns.job, x)
    absent = 1.0 - np.bincount(columns.job, weights=x, minlength=instance.jobs)
    surest = np.where(opened, np.maximum(placed, absent), -1.0)
    many = max(int((surest >= SURE).sum()), int(np.ceil(SHARE * opened.sum())))
    for job in np.argsort(-surest, kind="stable")[:many].tolist():
        if absent[job] >= placed[job]:
            opened[job] = False
            continue
        first, last = table.block(job)
        column = first + int(np.argmax(x[first:last]))
        # What no longer fits beside those placed before it stays open, and finds its place in the next round.
        if table.free(job)[column - first]:
            table.place(job, column)
            opened[job] = False


def _offered(table: Timetable, jobs: Ints, reduced_usd: Floats) -> Ints:
    """Of each of these jobs the cheapest columns that fit what is left."""
    parts = [np.zeros(0, np.int64)]
    for job in jobs.tolist():
        first, _ = table.block(job)
        fits = first + np.flatnonzero(table.free(job))
        if len(fits) > OFFERED:
            fits = np.sort(fits[np.argpartition(reduced_usd[fits], OFFERED)[:OFFERED]])
        parts.append(fits)
    return np.concatenate(parts)
