"""Better plans by exact neighbourhoods: a dozen or two of related jobs at a time, placed anew at least cost by HiGHS.

Where ruin and recreate puts jobs back one after the other, this puts them back together, so it finds exchanges of
many jobs at once. Each job is offered the columns whose excess at the prices is small: a few times the mean gap of a
job; a plan that is better by more than that somewhere is dearer elsewhere. Sizes follow the time that they take: up
while HiGHS proves them quickly, down when it does not.
"""

import time
from collections.abc import Callable

import numpy as np

from planner.optimise.time_indexed import TimeIndexed
from planner.portfolio.improve import Improver
from planner.portfolio.instance import Instance, Ints

#: A neighbourhood that takes HiGHS longer than the first is too large, shorter than the second too small (seconds).
TOO_LONG_S, TOO_SHORT_S = 0.6, 0.15
#: HiGHS is stopped after this long.
LONGEST_S = 1.0
#: Where time does not decide, a neighbourhood ends after so many branch-and-bound nodes, the same on every machine.
NODES = 50
#: Columns on offer have an excess of at most one of these multiples of the mean gap of a job.
OFFERED = (1.0, 2.0, 5.0, 15.0)


class Neighbourhoods:
    """Exact re-planning around one job at a time, on the timetable of an `Improver`."""

    def __init__(self, instance: Instance, improver: Improver, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begins at fifteen jobs."""
        self.instance, self.improver = instance, improver
        self.size, self._clock = 15, clock

    def step(self, bound_usd: float, stop: Callable[[], bool], *, timed: bool) -> bool:
        """Free some related jobs and place them at least cost; whether the plan got better.

        Unless `timed`, sizes stay as they are and nodes are counted instead.
        """
        improver, table = self.improver, self.improver.timetable
        before, cost = table.column.copy(), table.cost_usd
        gone = self._around()
        mean = max(1e-9, cost - bound_usd) / self.instance.jobs
        most = mean * float(improver.rng.choice(OFFERED))
        improver.take_out(gone)
        began = self._clock()
        model = TimeIndexed(
            self.instance,
            improver.columns,
            self._offered(gone, before, most),
            gone,
            left=table.left,
            budget_left=table.budget_left,
        )
        solved = model.best(
            before,
            stop=lambda: stop() or (timed and self._clock() - began > LONGEST_S),
            relative_gap=1e-5,
            nodes=None if timed else NODES,
        )
        if timed:
            self._resize(self._clock() - began)
        improver.put_back(gone, (before if solved.column is None else solved.column)[gone])
        if table.cost_usd < cost - 1e-6:
            improver.keep()
            return True
        improver.take_out(gone)
        improver.put_back(gone, before[gone])
        return False

    def _around(self) -> Ints:
        """About `size` jobs: those in the way of a few that would rather be elsewhere, drawn one after another nearby."""
        gone = self.improver.related(self.size)
        for _ in range(4):
            if len(gone) >= self.size:
                break
            gone = np.union1d(gone, self.improver.related(self.size - len(gone)))
        return gone

    def _offered(self, gone: Ints, before: Ints, most_usd: float) -> Ints:
        table, excess = self.improver.timetable, self.improver.excess_usd
        parts = []
        for job in gone.tolist():
            first, last = table.block(job)
            offered = table.free(job) & (excess[first:last] <= most_usd)
            if before[job] >= 0:
                offered[before[job] - first] = True
            parts.append(first + np.flatnonzero(offered))
        return np.concatenate(parts).astype(np.int64)

    def _resize(self, took_s: float) -> None:
        if took_s > TOO_LONG_S:
            self.size = max(5, int(self.size * 0.85))
        elif took_s < TOO_SHORT_S:
            self.size = min(self.size + 1, 80)
