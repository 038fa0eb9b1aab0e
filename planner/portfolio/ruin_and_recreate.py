"""Ruin and recreate: remove a few related jobs from the timetable and insert them in another way.

After Schrimpf et al. (2000) and the string removals of Christiaens and Vanden Berghe (2020), guided by the prices of
the relaxation. The cost of a plan minus the bound is the sum of the jobs' excesses (the cost of a job at the prices
above its least) and of idle capacity with a price. So a job is drawn by its excess, then a better column for it, and
some jobs that occupy that column's capacity are removed. Jobs are inserted greedily at the prices, in random order, and
sometimes skip their best column (a blink). Simulated annealing decides whether the new plan replaces the current one.
"""

import math

import numpy as np

from gpuplan.planner.portfolio.lagrangian_prices import Answered
from gpuplan.planner.portfolio.portfolio_instance import Columns, Floats, Instance, Ints
from gpuplan.planner.portfolio.timetable import Timetable

#: Share of insertions that skip the best column, so that the same ruin does not always give the same plan.
BLINK = 0.03
#: Columns per job to draw from, by excess, and the mean rank of the drawn one.
WISHES, MEAN_WISH = 60, 8.0
#: Most jobs removed to make room in one step.
MOST_IN_THE_WAY = 12


class Improver:
    """Ruin and recreate on one timetable; the best plan so far in `best` (a column per job) and `best_usd`."""

    def __init__(self, instance: Instance, columns: Columns, timetable: Timetable, seed: int) -> None:
        """Starts from the plan in `timetable`, with its own random number generator."""
        self.instance, self.columns, self.timetable = instance, columns, timetable
        self.rng = np.random.default_rng(seed)
        self.best, self.best_usd = timetable.column.copy(), timetable.cost_usd
        self._movable = np.diff(columns.first) > 0
        # The most that placing a job can save over leaving it out: with its cheapest column.
        least = instance.penalty_usd.copy()
        np.minimum.at(least, columns.job, columns.cost_usd)
        self._most_saved_usd = instance.penalty_usd - least
        # Larger jobs are harder to place later.
        self._size = np.zeros(instance.jobs)
        if len(instance.job):
            np.maximum.at(self._size, instance.job, (instance.units * instance.duration[:, None]).max(axis=1))

    def guide(self, answered: Answered) -> None:
        """Use these reduced costs from now on."""
        columns = self.columns
        self.reduced_usd = answered.reduced_usd
        self.excess_usd = answered.reduced_usd - answered.least_usd[columns.job]
        self._left_out_usd = self.instance.penalty_usd - answered.least_usd
        order = np.lexsort((self.excess_usd, columns.job))
        self._wishes = [
            order[first : min(last, first + WISHES)]
            for first, last in zip(columns.first[:-1].tolist(), columns.first[1:].tolist(), strict=True)
        ]

    def excess(self) -> Floats:
        """The excess of each job in the current plan: its cost at the prices above its least."""
        column = self.timetable.column
        return np.where(column >= 0, self.excess_usd[column], self._left_out_usd)

    def step(self, temperature_usd: float) -> bool:
        """One ruin and one recreate; returns whether the best plan improved."""
        table = self.timetable
        before_usd = table.cost_usd
        gone = self.related(int(self.rng.integers(2, MOST_IN_THE_WAY)))
        before = table.state(gone)
        most_usd = before_usd - temperature_usd * math.log(max(1e-300, self.rng.random()))
        self.take_out(gone)
        if self._recreate(gone, most_usd):
            better = table.cost_usd < self.best_usd - 1e-6
            self.keep()
            return better
        table.restore(before)
        return False

    def take_out(self, jobs: Ints) -> None:
        """Remove these jobs from the timetable."""
        for job in jobs.tolist():
            if self.timetable.column[job] >= 0:
                self.timetable.remove(job)

    def keep(self) -> None:
        """Make the timetable the best plan if it is better."""
        if self.timetable.cost_usd < self.best_usd - 1e-6:
            self.best, self.best_usd = self.timetable.column.copy(), self.timetable.cost_usd

    def related(self, count: int) -> Ints:
        """A job with a better column, up to `many` jobs that occupy it, and sometimes a random one."""
        rng = self.rng
        weight = np.where(self._movable, self.excess(), 0.0)
        weight = np.cumsum(weight + np.where(self._movable, 1e-3 * weight.mean() + 1e-9, 0.0))
        center = self._drawn(weight)
        wishes = self._wishes[center]
        wish = int(wishes[min(len(wishes) - 1, int(rng.exponential(MEAN_WISH)))])
        gone = [np.array([center]), self.in_the_way(center, wish, count)]
        if rng.random() < 0.5:
            gone.append(np.array([self._drawn(weight)]))
        return np.unique(np.concatenate(gone))

    def in_the_way(self, job: int, wish: int, count: int) -> Ints:
        """Up to `many` other jobs that use one of the pools of the column `wish` in some of its slots."""
        instance, columns, rng = self.instance, self.columns, self.rng
        pools = [int(pool) for pool in instance.pool[columns.configuration[wish]] if pool < instance.pools]
        if not pools or count < 1:
            return np.zeros(0, np.int64)
        pool = pools[int(rng.integers(len(pools)))]
        start, end = self.timetable.start, self.timetable.end
        overlapping = self.timetable.uses[pool] & (start < columns.end[wish]) & (end > columns.start[wish])
        overlapping[job] = False
        others = np.flatnonzero(overlapping)
        if len(others) <= count:
            return others
        if rng.random() < 0.5:
            return np.asarray(rng.choice(others, count, replace=False), np.int64)
        middle = int(rng.integers(columns.start[wish], columns.end[wish]))
        far = np.maximum(0, np.maximum(start[others] - middle, middle - end[others]))
        return others[np.argsort(far + 3.0 * rng.random(len(others)))[:count]]

    def _drawn(self, cumulated: Floats) -> int:
        return int(np.searchsorted(cumulated, self.rng.random() * float(cumulated[-1])))

    def _recreate(self, gone: Ints, most_usd: float) -> bool:
        """Insert these jobs one by one; returns whether the plan costs at most `most_usd`, and stops once it cannot."""
        rng, table, cost = self.rng, self.timetable, self.columns.cost_usd
        how = rng.random()
        if how < 0.35:
            order = rng.permutation(gone)
        elif how < 0.6:
            order = gone[np.argsort(-self._size[gone] * rng.uniform(0.6, 1.4, len(gone)))]
        else:
            order = gone[np.argsort(-self._left_out_usd[gone] * rng.uniform(0.5, 1.5, len(gone)))]
        share = float(rng.choice((0.0, 0.6, 1.0, 1.0, 1.3)))
        penalty, save = self.instance.penalty_usd, self._most_saved_usd
        to_save = float(save[gone].sum())
        for job in order.tolist():
            if table.cost_usd - to_save > most_usd:
                return False
            to_save -= save[job]
            free = table.free(job)
            if not free.any():
                continue
            first, last = table.block(job)
            mine, reduced = cost[first:last], self.reduced_usd[first:last]
            score = np.where(free, reduced if share == 1.0 else mine + share * (reduced - mine), np.inf)
            if rng.random() < 0.5:
                score = score + 5e-3 * mine * rng.random(len(score))
            at = int(np.argmin(score))
            if rng.random() < BLINK:
                score[at] = np.inf
                at = int(np.argmin(score))
                if not np.isfinite(score[at]):
                    continue
            if mine[at] <= penalty[job]:
                table.place(job, first + at)
        return table.cost_usd <= most_usd
