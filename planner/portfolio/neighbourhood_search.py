"""Large neighbourhood search: one or two dozen related jobs at a time are rescheduled optimally by HiGHS.

Ruin and recreate inserts jobs one after the other; this inserts them together, so it finds exchanges of many jobs at
once. Each job is offered the columns with a small excess at the prices: a few times the mean gap per job.
Neighbourhoods grow while HiGHS solves them quickly, and shrink when it does not.
"""

import time
from collections.abc import Callable

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import Instance, Ints
from gpuplan.planner.portfolio.ruin_and_recreate import Improver
from gpuplan.planner.portfolio.time_indexed_model import TimeIndexed

#: Seconds of HiGHS above which a neighbourhood is too large, and below which it is too small.
TOO_LONG_S, TOO_SHORT_S = 0.6, 0.15
#: Time limit of HiGHS in seconds.
LONGEST_S = 1.0
#: Limit in branch-and-bound nodes if time does not count, so that results are the same on every machine.
NODES = 50
#: The highest excess of offered columns, as multiples of the mean gap per job.
OFFERED = (1.0, 2.0, 5.0, 15.0)


class Neighbourhoods:
    """Exact rescheduling around one job at a time on the timetable of an `Improver`."""

    def __init__(self, instance: Instance, improver: Improver, clock: Callable[[], float] = time.perf_counter) -> None:
        """Starts with fifteen jobs."""
        self.instance, self.improver = instance, improver
        self.size, self._clock = 15, clock

    def step(self, bound_usd: float, stop: Callable[[], bool], *, timed: bool) -> bool:
        """Remove some related jobs and place them optimally; returns whether the plan improved.

        Unless `timed`, sizes do not change and nodes limit HiGHS.
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
        """About `size` jobs: a few jobs with better columns, and the jobs that occupy those."""
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
