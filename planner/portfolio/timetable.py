"""A partial plan: the remaining capacity and budget, and the free columns of a job.

The columns of a job form one block, so a look-up is a dozen numpy calls on small arrays: count the slots within the
job's dates in which a configuration does not fit, and choose the cheapest start that crosses none of them.

A first plan within seconds: each job in turn takes its cheapest option at the current prices of scarce capacity.

The order matters. Jobs are sorted by regret (the difference between their best and next best pool at the prices) per
possible start; those with the highest value are placed first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, ROUNDING, Columns, Floats, Instance, Ints, Plan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """One job's columns: `pools` and `units` (uses) of its configurations; where a column starts and ends in the counts."""

    first: int
    last: int
    opens: int
    closes: int
    pools: tuple[Ints, ...]
    units: tuple[Floats, ...]
    start_at: Ints
    end_at: Ints


class Timetable:
    """The column of each job (`column`, -1: none), the capacity `left` (R + 1, T) and `budget_left`.

    `start` and `end` (0, 0 without a column) and `uses` (R, J), whether a job uses a pool, follow from the columns.
    """

    def __init__(self, instance: Instance, columns: Columns) -> None:
        """Starts without placed jobs."""
        self.instance, self.columns = instance, columns
        self.left = instance.capacity.copy()
        self.column = np.full(instance.jobs, LEFT_OUT, np.int64)
        self.budget_left = instance.budget_usd
        self.cost_usd = float(instance.penalty_usd.sum())
        self._tight = np.isfinite(instance.budget_usd)
        self.start, self.end = np.zeros((2, instance.jobs), np.int64)
        self.uses = np.zeros((instance.pools, instance.jobs), np.bool_)
        self._blocks = [_block(instance, columns, j) for j in range(instance.jobs)]
        self._uses = _uses(instance, columns)

    def free(self, job: int) -> NDArray[np.bool_]:
        """Which of the job's columns fit, not counting the job itself."""
        block = self._blocks[job]
        if block.first == block.last:
            return np.zeros(0, np.bool_)
        part = self.left[:, block.opens : block.closes]
        short = part[block.pools[0]] < block.units[0]
        for pools, units in zip(block.pools[1:], block.units[1:], strict=True):
            short |= part[pools] < units
        cumulated = np.zeros((short.shape[0], short.shape[1] + 1), np.int32)
        np.cumsum(short, axis=1, out=cumulated[:, 1:])
        flat = cumulated.reshape(-1)
        fits: NDArray[np.bool_] = flat[block.end_at] == flat[block.start_at]
        if self._tight:
            fits &= self.columns.cost_usd[block.first : block.last] <= self.budget_left + ROUNDING
        return fits

    def place(self, job: int, column: int) -> None:
        """Place an unplaced job."""
        self._take(job, column, 1.0)
        self.column[job] = column
        self.start[job], self.end[job] = self._uses.start[column], self._uses.end[column]

    def remove(self, job: int) -> None:
        """Remove a placed job."""
        self._take(job, int(self.column[job]), -1.0)
        self.column[job], self.start[job], self.end[job] = LEFT_OUT, 0, 0

    def _take(self, job: int, column: int, sign: float) -> None:
        configuration, start, end = self._uses.configuration[column], self._uses.start[column], self._uses.end[column]
        for pool, units in self._uses.of[configuration]:
            self.left[pool, start:end] -= sign * units
            self.uses[pool, job] = sign > 0
        cost = self._uses.cost[column]
        self.budget_left -= sign * cost
        self.cost_usd += sign * (cost - self._uses.penalty[job])

    def state(self, jobs: Ints) -> "State":
        """Everything that placing and removing these jobs can change."""
        return State(
            jobs=jobs,
            column=self.column[jobs],
            start=self.start[jobs],
            end=self.end[jobs],
            uses=self.uses[:, jobs],
            left=self.left.copy(),
            budget_left=self.budget_left,
            cost_usd=self.cost_usd,
        )

    def restore(self, state: "State") -> None:
        """Restore `state`; only its jobs may have changed since."""
        self.column[state.jobs], self.start[state.jobs], self.end[state.jobs] = state.column, state.start, state.end
        self.uses[:, state.jobs], self.left = state.uses, state.left
        self.budget_left, self.cost_usd = state.budget_left, state.cost_usd

    def block(self, job: int) -> tuple[int, int]:
        """The range of the job's columns, the end excluded."""
        return self._blocks[job].first, self._blocks[job].last

    def load(self, column: Ints) -> None:
        """Replace the timetable by the columns of a plan."""
        self.left = self.instance.capacity.copy()
        self.column[:], self.start[:], self.end[:], self.uses[:] = LEFT_OUT, 0, 0, False
        self.budget_left, self.cost_usd = self.instance.budget_usd, float(self.instance.penalty_usd.sum())
        for job in np.flatnonzero(column >= 0).tolist():
            self.place(job, int(column[job]))

    def plan(self) -> Plan:
        """The current plan."""
        return as_plan(self.instance, self.columns, self.column)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """A saved state of some jobs; saving and restoring is faster than moving jobs."""

    jobs: Ints
    column: Ints
    start: Ints
    end: Ints
    uses: NDArray[np.bool_]
    left: Floats
    budget_left: float
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Uses:
    """The same figures as Python lists, for one element at a time."""

    configuration: list[int]
    start: list[int]
    end: list[int]
    cost: list[float]
    penalty: list[float]
    of: list[list[tuple[int, float]]]


def _uses(instance: Instance, columns: Columns) -> _Uses:
    rows = zip(instance.pool.tolist(), instance.units.tolist(), strict=True)
    return _Uses(
        configuration=columns.configuration.tolist(),
        start=columns.start.tolist(),
        end=columns.end.tolist(),
        cost=columns.cost_usd.tolist(),
        penalty=instance.penalty_usd.tolist(),
        of=[
            [(pool, units) for pool, units in zip(*row, strict=True) if pool < instance.pools and units > 0]
            for row in rows
        ],
    )


def _block(instance: Instance, columns: Columns, job: int) -> _Block:
    first, last = int(columns.first[job]), int(columns.first[job + 1])
    if first == last:
        empty = np.zeros(0, np.int64)
        return _Block(first=first, last=last, opens=0, closes=0, pools=(), units=(), start_at=empty, end_at=empty)
    mine = columns.configuration[first:last]
    kinds, row = np.unique(mine, return_inverse=True)
    opens, closes = int(columns.start[first:last].min()), int(columns.end[first:last].max())
    width = closes - opens + 1
    used = [u for u in range(instance.pool.shape[1]) if u == 0 or (instance.units[kinds, u] > 0).any()]
    return _Block(
        first=first,
        last=last,
        opens=opens,
        closes=closes,
        pools=tuple(instance.pool[kinds, u] for u in used),
        units=tuple(instance.units[kinds, u][:, None] - ROUNDING for u in used),
        start_at=row.reshape(-1) * width + (columns.start[first:last] - opens),
        end_at=row.reshape(-1) * width + (columns.end[first:last] - opens),
    )


def as_plan(instance: Instance, columns: Columns, column: Ints) -> Plan:
    """The columns as a plan; its cost is summed again."""
    runs = column >= 0
    at = np.where(runs, column, 0)
    empty = len(columns) == 0
    cost = np.zeros(instance.jobs) if empty else columns.cost_usd[at]
    return Plan(
        configuration=np.where(runs, LEFT_OUT if empty else columns.configuration[at], LEFT_OUT).astype(np.int64),
        start=np.where(runs, -1 if empty else columns.start[at], -1).astype(np.int64),
        cost_usd=float(np.where(runs, cost, instance.penalty_usd).sum()),
    )


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
