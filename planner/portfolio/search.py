"""The any-time search: a plan at once, then better plans and better bounds until the gap is closed or time is up.

    1. each job in turn takes what is cheapest                              (construct)
    2. prices rise on what is short; every few steps the jobs choose anew   (prices, construct)
    3. ruin and recreate, guided by the prices                              (improve)
    4. exact neighbourhoods of related jobs                                 (neighbourhood)
    5. the whole model, less the columns that the bound excludes, in HiGHS  (planner.optimise.portfolio)
The bound is the better of the dual of the prices and what HiGHS proves. A column whose reduced cost lies above its
job's least by more than the gap is in no better plan, and is left out of step 5.

With an iteration limit the result rests on the seed alone; with a time limit it says how many iterations were done.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.optimise.portfolio import Solved, solve
from planner.portfolio.check import violations
from planner.portfolio.construct import by_regret, fill
from planner.portfolio.improve import Improver
from planner.portfolio.instance import Floats, Instance, Ints, Plan
from planner.portfolio.neighbourhood import Neighbourhoods
from planner.portfolio.prices import Ascent, Prices
from planner.portfolio.timetable import Timetable, as_plan

#: A plan within this share of the bound is proven: HiGHS' own tolerances are of this size.
PROVEN = 1e-6
#: Shares of the time limit at which prices and ruin and recreate end, where HiGHS can take the whole model or not.
PRICES_UNTIL = {True: 0.15, False: 0.3}
IMPROVE_UNTIL = {True: 0.35, False: 0.85}
NEIGHBOURHOODS_UNTIL = {True: 0.4, False: 1.0}
#: Models of more columns than this do not leave HiGHS' root relaxation in a minute.
MOST_COLUMNS_WHOLE = 40_000
#: Prices stop when steps have become this short, or after so many.
SHORTEST_STEP, MOST_STEPS = 2e-5, 1500
#: Annealing begins at this share of a job's mean cost and ends at a hundredth of it.
TEMPERATURE, COOLING = 0.05, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a search stands: seconds since it began, best cost and bound in USD, the gap between as a share.

    `jobs_planned` of `jobs` run in the best plan so far.
    """

    elapsed_s: float
    cost_usd: float
    bound_usd: float
    gap: float
    stage: str
    jobs_planned: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The best plan, its proof, and the work done: `iterations` by stage. `prices` are what capacity is worth."""

    plan: Plan
    bound_usd: float
    gap: float
    proven: bool
    elapsed_s: float
    first_plan_s: float
    iterations: dict[str, int]
    prices: Prices


def gap(cost_usd: float, bound_usd: float) -> float:
    """What is left to prove, as a share of the cost."""
    return max(0.0, cost_usd - bound_usd) / max(abs(cost_usd), 1e-9)


class WrongPlanError(RuntimeError):
    """The search made a plan that breaks a rule. A defect, never a user's fault."""


def search(
    instance: Instance,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    iterations: int | None = None,
    report: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Found:
    """The best plan found and the proven gap. `time_limit_s` or `iterations` (of ruin and recreate) must be given.

    `report` is told of every step; `cancelled` is asked at least every second, and once it says yes the search ends
    with what it has.

    Raises `WrongPlanError` if the plan does not pass the independent check.
    """
    if time_limit_s is None and iterations is None:
        raise ValueError("a time limit or an iteration limit is needed")
    limits = _Limits(seed=seed, time_limit_s=time_limit_s, iterations=iterations)
    return _Search(instance, limits, report, cancelled, clock).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    seed: int
    time_limit_s: float | None
    iterations: int | None


class _Search:
    def __init__(
        self,
        instance: Instance,
        limits: _Limits,
        report: Callable[[Progress], None] | None,
        cancelled: Callable[[], bool] | None,
        clock: Callable[[], float],
    ) -> None:
        self._cancelled = cancelled
        self._clock, self._began = clock, clock()
        self._limit, self._most, self._report = limits.time_limit_s, limits.iterations, report
        self.instance, self.columns = instance, instance.columns
        self.table = Timetable(instance, self.columns)
        self.seed = limits.seed
        self.best, self.best_usd, self.bound_usd = self.table.column.copy(), self.table.cost_usd, 0.0
        self.done = {"prices": 0, "ruin and recreate": 0, "neighbourhoods": 0, "whole model": 0}
        self.first_plan_s = 0.0

    def run(self) -> Found:
        self._construct()
        if len(self.columns) and not self._proven():
            self._raise_prices()
            improver = self._improve()
            self._neighbourhoods(improver)
            self._whole_model()
        plan = as_plan(self.instance, self.columns, self.best)
        if wrong := violations(self.instance, plan):
            raise WrongPlanError("; ".join(wrong[:3]))
        bound = min(self.bound_usd, plan.cost_usd)
        self._tell("done")
        return Found(
            plan=plan,
            bound_usd=bound,
            gap=gap(plan.cost_usd, bound),
            proven=self._proven(),
            elapsed_s=self._elapsed(),
            first_plan_s=self.first_plan_s,
            iterations=dict(self.done),
            prices=self.ascent.prices,
        )

    def _construct(self) -> None:
        self.ascent = Ascent(self.instance, self.columns)
        self._bound(self.ascent.best.bound_usd)
        self._fill(self.ascent.best.reduced_usd)
        self.first_plan_s = self._elapsed()
        self._tell("first plan")

    def _raise_prices(self) -> None:
        every = 20 if self.instance.jobs <= 200 else 60
        few = len(self.columns) <= MOST_COLUMNS_WHOLE
        for number in range(1, MOST_STEPS + 1):
            self.ascent.step(self.best_usd)
            self._bound(self.ascent.best.bound_usd)
            self.done["prices"] += 1
            if number % every == 0:
                self._fill(self.ascent.best.reduced_usd)
                self._tell("prices")
            if self._proven() or self.ascent.shortness < SHORTEST_STEP or self._share() > PRICES_UNTIL[few]:
                return

    def _improve(self) -> Improver:
        self.table.load(self.best)
        improver = Improver(self.instance, self.columns, self.table, self.seed)
        improver.guide(self.ascent.best.reduced_usd)
        begin, end = self._share(), IMPROVE_UNTIL[self._whole()]
        number = 0
        while not self._proven() and (self._most is None or number < self._most):
            share = self._share()
            if share >= end:
                break
            passed = (share - begin) / (end - begin) if self._limit else 0.0
            if self._most is not None:
                passed = max(passed, number / self._most)
            mean = improver.best_usd / self.instance.jobs
            improver.step(TEMPERATURE * mean * COOLING**passed)
            number += 1
            if number % 200 == 0:
                self._take(improver.best, improver.best_usd, "ruin and recreate")
        self.done["ruin and recreate"] = number
        self._take(improver.best, improver.best_usd, "ruin and recreate")
        return improver

    def _neighbourhoods(self, improver: Improver) -> None:
        self.table.load(self.best)
        around = Neighbourhoods(self.instance, improver, self._clock)
        end, number = NEIGHBOURHOODS_UNTIL[self._whole()], 0
        most = None if self._most is None else self._most // 200
        while not self._proven() and self._share() < end and (most is None or number < most):
            around.step(None if self._limit is None else max(0.05, self._limit * end - self._elapsed()))
            number += 1
            self._take(improver.best, improver.best_usd, "neighbourhoods")
        self.done["neighbourhoods"] = number

    def _whole_model(self) -> None:
        if self._proven() or not self._whole() or self._share() >= 1.0:
            return
        at = self._kept()
        left_s = None if self._limit is None else self._limit - self._elapsed()
        if left_s is not None and left_s < 0.05:
            return
        solved = self._solve(at, left_s)
        self.done["whole model"] = 1
        self._bound(min(solved.bound_usd, self.best_usd))
        if solved.column is not None:
            self.table.load(solved.column)
            self._take(self.table.column, self.table.cost_usd, "whole model")
        self._tell("whole model")

    def _solve(self, at: Ints, left_s: float | None) -> Solved:
        # HiGHS looks at its clock between rounds of cuts: a tenth is kept back for the round under way.
        return solve(
            self.instance,
            self.columns,
            at,
            np.arange(self.instance.jobs),
            left=self.instance.capacity,
            budget_left=self.instance.budget_usd,
            start=self.best,
            time_limit_s=3600.0 if left_s is None else 0.9 * left_s,
            relative_gap=PROVEN / 2,
            nodes=None if self._most is None else self._most,
        )

    def _kept(self) -> Ints:
        """Columns that could be part of a better plan."""
        best = self.ascent.best
        excess = best.reduced_usd - best.least_usd[self.columns.job]
        keep = excess <= self.best_usd - best.bound_usd + 1e-6
        keep[self.best[self.best >= 0]] = True
        return np.flatnonzero(keep)

    def _whole(self) -> bool:
        """Whether HiGHS can be given all that is left of the model."""
        return len(self._kept()) <= MOST_COLUMNS_WHOLE

    def _fill(self, score_usd: Floats) -> None:
        """A plan at these reduced costs, from an empty timetable."""
        self.table.load(np.full(self.instance.jobs, -1, np.int64))
        fill(self.table, by_regret(self.instance, self.columns, score_usd), score_usd)
        self._better(self.table.column, self.table.cost_usd)

    def _take(self, column: Ints, cost_usd: float, stage: str) -> None:
        self._better(column, cost_usd)
        self._tell(stage)

    def _better(self, column: Ints, cost_usd: float) -> None:
        """Take these columns if they cost less, their cost summed afresh: a timetable's own drifts by rounding."""
        if cost_usd < self.best_usd - 1e-6:
            self.best = column.copy()
            self.best_usd = min(self.best_usd, as_plan(self.instance, self.columns, column).cost_usd)

    def _bound(self, bound_usd: float) -> None:
        self.bound_usd = max(self.bound_usd, bound_usd)

    def _proven(self) -> bool:
        return gap(self.best_usd, self.bound_usd) <= PROVEN

    def _elapsed(self) -> float:
        return self._clock() - self._began

    def _share(self) -> float:
        """How much of the time limit is used up; 0 where there is none, infinite once the search is cancelled."""
        if self._cancelled is not None and self._cancelled():
            return math.inf
        return 0.0 if self._limit is None else self._elapsed() / max(self._limit, 1e-9)

    def _tell(self, stage: str) -> None:
        if self._report is not None:
            bound = min(self.bound_usd, self.best_usd)
            self._report(
                Progress(
                    elapsed_s=self._elapsed(),
                    cost_usd=self.best_usd,
                    bound_usd=bound,
                    gap=gap(self.best_usd, bound),
                    stage=stage,
                    jobs_planned=int((self.best >= 0).sum()),
                    jobs=self.instance.jobs,
                )
            )
