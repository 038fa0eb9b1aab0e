"""Better plans by exact neighbourhoods: a dozen or two of related jobs at a time, placed anew at least cost by HiGHS.

Where ruin and recreate puts jobs back one after the other, this puts them back together, so it finds exchanges of
many jobs at once. Sizes follow the time that they take: up while HiGHS proves them quickly, down when it does not.
"""

import time
from collections.abc import Callable

import numpy as np

from planner.optimise.portfolio import solve
from planner.portfolio.improve import Improver
from planner.portfolio.instance import Instance, Ints

#: A neighbourhood that takes HiGHS longer than the first is too large, shorter than the second too small (seconds).
TOO_LONG_S, TOO_SHORT_S = 1.5, 0.4
#: Where time does not decide, a neighbourhood ends after so many branch-and-bound nodes, the same on every machine.
NODES = 200


class Neighbourhoods:
    """Exact re-planning around one job at a time, on the timetable of an `Improver`."""

    def __init__(self, instance: Instance, improver: Improver, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begins at ten jobs."""
        self.instance, self.improver = instance, improver
        self.size, self._clock = 10, clock

    def step(self, time_limit_s: float | None) -> bool:
        """Free some related jobs and place them at least cost; whether the plan got better.

        With no `time_limit_s` sizes stay as they are and nodes are counted instead.
        """
        improver, table = self.improver, self.improver.timetable
        before, cost = table.column.copy(), table.cost_usd
        gone = np.sort(improver.related(self.size))
        for job in gone.tolist():
            if table.column[job] >= 0:
                table.remove(job)
        at = np.concatenate([table.block(job)[0] + np.flatnonzero(table.free(job)) for job in gone.tolist()])
        began = self._clock()
        solved = solve(
            self.instance,
            improver.columns,
            at.astype(np.int64),
            gone,
            left=table.left,
            budget_left=table.budget_left,
            start=before,
            time_limit_s=60.0 if time_limit_s is None else min(2 * TOO_LONG_S, time_limit_s),
            relative_gap=1e-4,
            nodes=NODES if time_limit_s is None else None,
        )
        if time_limit_s is not None:
            self._resize(self._clock() - began, len(gone))
        self._put(gone, before if solved.column is None else solved.column)
        if table.cost_usd < cost - 1e-6:
            improver.keep()
            return True
        for job in gone.tolist():
            if table.column[job] >= 0:
                table.remove(job)
        self._put(gone, before)
        return False

    def _put(self, jobs: Ints, column: Ints) -> None:
        for job in jobs.tolist():
            if column[job] >= 0:
                self.improver.timetable.place(job, int(column[job]))

    def _resize(self, took_s: float, jobs: int) -> None:
        if took_s > TOO_LONG_S:
            self.size = max(5, int(self.size * 0.8))
        elif took_s < TOO_SHORT_S and jobs >= self.size:
            self.size += 1
