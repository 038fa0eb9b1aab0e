"""Better plans by ruin and recreate: take a few related jobs out of the timetable, put them back another way.

After Schrimpf et al. (2000) and the string removals of Christiaens and Vanden Berghe (2020): who goes is chosen
around one job in time and pools, the way back is greedy in a random order with an occasional blink, and a plan is
kept if it is better than the present one by simulated annealing. Scores add a random share of the dual prices to
the cost, so that capacity that others want badly is left to them.
"""

import math

import numpy as np

from planner.portfolio.instance import Columns, Floats, Instance, Ints
from planner.portfolio.timetable import Timetable

#: A job skips its best place this often, so that the same ruin does not always lead back to the same plan.
BLINK = 0.02


class Improver:
    """Ruin and recreate on one timetable; the best plan so far in `best` (a column per job) and `best_usd`."""

    def __init__(self, instance: Instance, columns: Columns, timetable: Timetable, seed: int) -> None:
        """From the plan in `timetable`, with its own generator of random numbers."""
        self.instance, self.columns, self.timetable = instance, columns, timetable
        self.rng = np.random.default_rng(seed)
        self.best, self.best_usd = timetable.column.copy(), timetable.cost_usd
        self._reduced = columns.cost_usd
        has = np.diff(columns.first) > 0
        self._movable = np.flatnonzero(has)
        self._least = np.zeros(instance.jobs)
        if len(self._movable):
            self._least[has] = np.minimum.reduceat(columns.cost_usd, columns.first[:-1][has])
        self._pools = [
            {int(p) for p in np.unique(instance.pool[columns.configuration[a:b]]) if p < instance.pools}
            for a, b in zip(columns.first[:-1].tolist(), columns.first[1:].tolist(), strict=True)
        ]
        width = max(1, instance.pools)
        self._touches = np.zeros((instance.jobs, width), np.bool_)
        for job, pools in enumerate(self._pools):
            self._touches[job, list(pools)] = True
        self._opens = np.zeros(instance.jobs, np.int64)
        self._closes = np.zeros(instance.jobs, np.int64)
        for job in self._movable.tolist():
            a, b = timetable.block(job)
            self._opens[job], self._closes[job] = columns.start[a:b].min(), columns.end[a:b].max()
        # Larger jobs are harder to place last.
        size = (instance.units * instance.duration[:, None]).max(axis=1) if len(instance.job) else np.zeros(0)
        self._size = np.zeros(instance.jobs)
        np.maximum.at(self._size, instance.job, size)

    def guide(self, reduced_usd: Floats) -> None:
        """Use these reduced costs of the columns as the scarce prices from now on."""
        self._reduced = reduced_usd

    def step(self, temperature_usd: float) -> bool:
        """One ruin and one recreate; whether the best plan got better."""
        table, rng = self.timetable, self.rng
        before_usd = table.cost_usd
        gone = self.related(int(rng.integers(3, 15)))
        before = table.column[gone]
        for job, column in zip(gone.tolist(), before.tolist(), strict=True):
            if column >= 0:
                table.remove(job)
        self._recreate(gone)
        if table.cost_usd <= before_usd - temperature_usd * math.log(max(1e-300, rng.random())):
            better = table.cost_usd < self.best_usd - 1e-6
            self.keep()
            return better
        for job in gone.tolist():
            if table.column[job] >= 0:
                table.remove(job)
        for job, column in zip(gone.tolist(), before.tolist(), strict=True):
            if column >= 0:
                table.place(job, column)
        return False

    def keep(self) -> None:
        """Take the timetable as it stands for the best plan, if it is better."""
        if self.timetable.cost_usd < self.best_usd - 1e-6:
            self.best, self.best_usd = self.timetable.column.copy(), self.timetable.cost_usd

    def related(self, many: int) -> Ints:
        """Up to `many` jobs whose pools and dates meet those of one that pays more than its least, that one first."""
        rng, columns = self.rng, self.columns
        movable = self._movable
        paid = np.where(self.timetable.column >= 0, columns.cost_usd[self.timetable.column], self.instance.penalty_usd)
        over = paid[movable] - self._least[movable]
        if rng.random() < 0.7 and (total := float(over.sum())) > 0:
            center = int(movable[np.searchsorted(np.cumsum(over), rng.random() * total)])
        else:
            center = int(movable[rng.integers(len(movable))])
        wanted = self._touches[center]
        if rng.random() < 0.5 and wanted.any():
            pools = np.flatnonzero(wanted)
            wanted = np.zeros_like(wanted)
            wanted[pools[rng.integers(len(pools))]] = True
        near = self._touches[:, wanted].any(axis=1)
        near &= (self._opens < self._closes[center]) & (self._closes > self._opens[center])
        near[center] = False
        others = np.flatnonzero(near)
        if len(others) > many - 1:
            others = rng.choice(others, many - 1, replace=False)
        return np.concatenate(([center], others))

    def _recreate(self, gone: Ints) -> None:
        rng, table, cost = self.rng, self.timetable, self.columns.cost_usd
        how = rng.random()
        if how < 0.3:
            order = rng.permutation(gone)
        elif how < 0.6:
            order = gone[np.argsort(-self._size[gone] * rng.uniform(0.7, 1.3, len(gone)))]
        else:
            loss = self.instance.penalty_usd[gone] if how < 0.7 else self._regret(gone)
            order = gone[np.argsort(-loss * rng.uniform(0.7, 1.3, len(gone)))]
        share = float(rng.choice((0.0, 0.3, 0.6, 1.0)))
        leans = rng.choice((0.0, 1.0, -1.0, 2.0), len(gone)).tolist()
        penalty = self.instance.penalty_usd
        for job, lean in zip(order.tolist(), leans, strict=True):
            free = table.free(job)
            if not free.any():
                continue
            first, last = table.block(job)
            mine = cost[first:last]
            score = mine if share == 0 else mine + share * (self._reduced[first:last] - mine)
            score = np.where(free, score, np.inf)
            if lean == 2.0:
                score = score + 1e-3 * rng.random(len(score))
            elif lean:
                score = score + lean * 1e-5 * self.columns.start[first:last]
            at = int(np.argmin(score))
            if rng.random() < BLINK:
                score[at] = np.inf
                if not np.isfinite(score).any():
                    continue
                at = int(np.argmin(score))
            if mine[at] <= penalty[job]:
                table.place(job, first + at)

    def _regret(self, gone: Ints) -> Floats:
        """What each job loses by its reduced costs if it gets nothing it likes: mean over its columns less the least."""
        loss = np.zeros(len(gone))
        for i, job in enumerate(gone.tolist()):
            first, last = self.timetable.block(job)
            loss[i] = float(self._reduced[first:last].mean() - self._reduced[first:last].min())
        return loss
