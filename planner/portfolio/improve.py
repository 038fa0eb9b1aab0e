"""Better plans by ruin and recreate: take a few related jobs out of the timetable, put them back another way.

After Schrimpf et al. (2000) and the string removals of Christiaens and Vanden Berghe (2020), led by the prices of the
relaxation. A plan costs more than the bound by what each job pays above its least at the prices (its excess), and by
capacity that has a price and stands idle. So a job is drawn by its excess, then one of the columns that it would
rather have, and out go some of those that stand in the way there. The way back is greedy at the prices, in a random
order with an occasional blink, and a plan is kept if it is better than the present one by simulated annealing.
"""

import math

import numpy as np

from planner.portfolio.instance import Columns, Floats, Instance, Ints
from planner.portfolio.prices import Answered
from planner.portfolio.timetable import Timetable

#: A job skips its best place this often, so that the same ruin does not always lead back to the same plan.
BLINK = 0.03
#: Of each job so many columns are wished for, by excess, and the mean rank of the one drawn.
WISHES, MEAN_WISH = 60, 8.0
#: At most so many jobs make room in one step.
MOST_IN_THE_WAY = 12


class Improver:
    """Ruin and recreate on one timetable; the best plan so far in `best` (a column per job) and `best_usd`."""

    def __init__(self, instance: Instance, columns: Columns, timetable: Timetable, seed: int) -> None:
        """From the plan in `timetable`, with its own generator of random numbers."""
        self.instance, self.columns, self.timetable = instance, columns, timetable
        self.rng = np.random.default_rng(seed)
        self.best, self.best_usd = timetable.column.copy(), timetable.cost_usd
        self._movable = np.diff(columns.first) > 0
        # What a job costs less than leaving it out, at the most: its cheapest column, wherever that is.
        least = instance.penalty_usd.copy()
        np.minimum.at(least, columns.job, columns.cost_usd)
        self._most_saved_usd = instance.penalty_usd - least
        # Larger jobs are harder to place last.
        self._size = np.zeros(instance.jobs)
        if len(instance.job):
            np.maximum.at(self._size, instance.job, (instance.units * instance.duration[:, None]).max(axis=1))

    def guide(self, answered: Answered) -> None:
        """Let these reduced costs say what is scarce from now on."""
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
        """What each job pays above its least at the prices, as the plan stands."""
        column = self.timetable.column
        return np.where(column >= 0, self.excess_usd[column], self._left_out_usd)

    def step(self, temperature_usd: float) -> bool:
        """One ruin and one recreate; whether the best plan got better."""
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
        """These jobs leave the timetable."""
        for job in jobs.tolist():
            if self.timetable.column[job] >= 0:
                self.timetable.remove(job)

    def put_back(self, jobs: Ints, column: Ints) -> None:
        """These jobs, none of them placed, take a column each (-1: none)."""
        for job, each in zip(jobs.tolist(), column.tolist(), strict=True):
            if each >= 0:
                self.timetable.place(job, each)

    def keep(self) -> None:
        """Take the timetable as it stands for the best plan, if it is better."""
        if self.timetable.cost_usd < self.best_usd - 1e-6:
            self.best, self.best_usd = self.timetable.column.copy(), self.timetable.cost_usd

    def related(self, many: int) -> Ints:
        """A job that would rather be elsewhere, up to `many` of those that are in its way, and now and then a third."""
        rng = self.rng
        weight = np.where(self._movable, self.excess(), 0.0)
        weight = np.cumsum(weight + np.where(self._movable, 1e-3 * weight.mean() + 1e-9, 0.0))
        center = self._drawn(weight)
        wishes = self._wishes[center]
        wish = int(wishes[min(len(wishes) - 1, int(rng.exponential(MEAN_WISH)))])
        gone = [np.array([center]), self.in_the_way(center, wish, many)]
        if rng.random() < 0.5:
            gone.append(np.array([self._drawn(weight)]))
        return np.unique(np.concatenate(gone))

    def in_the_way(self, job: int, wish: int, many: int) -> Ints:
        """Up to `many` other jobs that use one of the pools of the column `wish` in some of its slots."""
        instance, columns, rng = self.instance, self.columns, self.rng
        pools = [int(pool) for pool in instance.pool[columns.configuration[wish]] if pool < instance.pools]
        if not pools or many < 1:
            return np.zeros(0, np.int64)
        pool = pools[int(rng.integers(len(pools)))]
        start, end = self.timetable.start, self.timetable.end
        there = self.timetable.uses[pool] & (start < columns.end[wish]) & (end > columns.start[wish])
        there[job] = False
        others = np.flatnonzero(there)
        if len(others) <= many:
            return others
        if rng.random() < 0.5:
            return np.asarray(rng.choice(others, many, replace=False), np.int64)
        middle = int(rng.integers(columns.start[wish], columns.end[wish]))
        far = np.maximum(0, np.maximum(start[others] - middle, middle - end[others]))
        return others[np.argsort(far + 3.0 * rng.random(len(others)))[:many]]

    def _drawn(self, cumulated: Floats) -> int:
        return int(np.searchsorted(cumulated, self.rng.random() * float(cumulated[-1])))

    def _recreate(self, gone: Ints, most_usd: float) -> bool:
        """Put these jobs back one by one; whether the plan costs at most `most_usd` then. Ends as soon as it cannot."""
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
