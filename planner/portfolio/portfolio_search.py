"""The anytime search: a first plan, then better plans and bounds until the gap is closed or time is up.

    1. greedy construction: each job takes its cheapest column              (timetable)
    2. prices of scarce capacity, up to those of the linear relaxation      (lagrangian_prices, linear_relaxation)
    3. LP diving, if there are too many columns for step 6                  (lp_diving)
    4. ruin and recreate, guided by the prices                              (ruin_and_recreate)
    5. cuts, which raise the bound and improve the prices                   (cutting_planes, linear_relaxation)
    6. few columns left: HiGHS solves the model of the likely columns, then of all that the bound does not exclude
                                                                            (time_indexed_model)
The bound is the better of that of the prices over all columns and that of HiGHS. A column whose reduced cost exceeds
its job's least by more than the gap is in no better plan, and is omitted from the models of step 6. Cuts are used only
if few columns are left: on large pools they hardly raise the bound.

With an iteration limit the result depends on the seed alone; with a time limit the answer states the iterations.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpuplan.planner.portfolio.lagrangian_prices import Ascent
from gpuplan.planner.portfolio.linear_relaxation import Relaxation
from gpuplan.planner.portfolio.lp_diving import dive
from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_instance import Floats, Instance, Ints
from gpuplan.planner.portfolio.ruin_and_recreate import Improver
from gpuplan.planner.portfolio.search_progress import Progress, SearchOutcome, Stage, gap
from gpuplan.planner.portfolio.time_indexed_model import Solved
from gpuplan.planner.portfolio.timetable import Timetable, as_plan, by_regret, fill

#: A plan within this share of the bound counts as proven; HiGHS' tolerances are of this size.
PROVEN = 1e-6
#: Shares of the time limit at which stages end, if HiGHS can solve the remaining model and if not.
PRICES_UNTIL, RELAXED_UNTIL, DIVED_UNTIL, CUTS_UNTIL = 0.1, 0.5, 0.55, 0.6
IMPROVE_UNTIL = {True: 0.2, False: 1.0}
LIKELY_UNTIL = 0.6
#: Restarts of annealing: if a job is a large part of the portfolio, one run of five ends far from the others.
CYCLES = {True: 2, False: 1}
#: Least share of the time for ruin and recreate, if the relaxation took most of a short limit.
LEAST_IMPROVE = 0.15
#: First limit on the excess of likely columns, as a share of the gap.
LIKELY = 0.05
#: HiGHS does not finish the root relaxation of larger models within a minute.
MOST_COLUMNS_WHOLE = 40_000
#: Ascent steps that suffice to choose the first columns.
STEPS = 60
#: First and last temperature of annealing as shares of the mean cost per job, for small and for large models: on large
#: ones there is no time to recover from a hot start.
TEMPERATURE, COOLING = {True: 0.2, False: 0.01}, {True: 0.01, False: 0.05}


class WrongPlanError(RuntimeError):
    """The search made an invalid plan. This is a defect, not a user error."""


def search(
    instance: Instance,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    iterations: int | None = None,
    report: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchOutcome:
    """The best plan found and the proven gap. `time_limit_s` or `iterations` (of ruin and recreate) must be given.

    `report` is called at every step, `cancelled` at least every second; once it returns true, the search ends with the
    best plan so far. Raises `WrongPlanError` if the plan does not pass the independent check.
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
        self._clock, self._began, self._cancelled = clock, clock(), cancelled
        self._wall = clock is time.perf_counter
        self._limit, self._most, self._report = limits.time_limit_s, limits.iterations, report
        self.instance, self.columns = instance, instance.columns
        self.table = Timetable(instance, self.columns)
        self.seed = limits.seed
        self.best, self.best_usd, self.bound_usd = self.table.column.copy(), self.table.cost_usd, 0.0
        stages = (
            "prices",
            "dive",
            "ruin and recreate",
            "rounds of cuts",
            "likely columns",
            "neighbourhoods",  # of earlier releases, whose answers have this key
            "whole model",
        )
        self.done = dict.fromkeys(stages, 0)
        self.first_plan_s = 0.0

    def run(self) -> SearchOutcome:
        self._construct()
        if len(self.columns) and not self._proven():
            self._relax()
            self._dive()
            self._improve()
            self._cut()
            if self._few():
                self._likely_columns()
                self._whole_model()
        plan = as_plan(self.instance, self.columns, self.best)
        if wrong := violations(self.instance, plan):
            raise WrongPlanError("; ".join(wrong[:3]))
        bound = min(self.bound_usd, plan.cost_usd)
        self._tell(Stage.DONE)
        return SearchOutcome(
            plan=plan,
            bound_usd=bound,
            gap=gap(plan.cost_usd, bound),
            proven=self._proven(),
            elapsed_s=self._elapsed(),
            first_plan_s=self.first_plan_s,
            iterations=dict(self.done),
            prices=self.relaxation.prices,
        )

    def _construct(self) -> None:
        self.ascent = Ascent(self.instance, self.columns)
        self.relaxation = Relaxation(self.instance, self.columns, self.ascent.prices, self.ascent.best)
        self._bound(self.ascent.best.bound_usd)
        self._fill(self.ascent.best.reduced_usd)
        # If the budget is scarce, place the jobs with the highest penalty first.
        self._fill(self.ascent.best.reduced_usd, np.argsort(-self.instance.penalty_usd, kind="stable"))
        self.first_plan_s = self._elapsed()
        self._tell(Stage.FIRST_PLAN)

    def _relax(self) -> None:
        """Prices of the linear relaxation, starting with a few ascent steps, and plans at these prices."""
        while self.done["prices"] < STEPS and not self._over(PRICES_UNTIL):
            self.ascent.step(self.best_usd)
            self.done["prices"] += 1
            self._bound(self.ascent.best.bound_usd)
        self._fill(self.ascent.best.reduced_usd)
        self._tell(Stage.PRICES)
        self.relaxation = Relaxation(self.instance, self.columns, self.ascent.prices, self.ascent.best)
        self.relaxation.solve(lambda: self._over(RELAXED_UNTIL), lambda: self._report_bound(Stage.RELAXATION))
        self._bound(self.relaxation.bound_usd)
        reduced = self.relaxation.answered.reduced_usd
        self._fill(reduced)
        self._fill(reduced, self._by_solution())
        self._fill(
            reduced, np.argsort(-(self.instance.penalty_usd - self.relaxation.answered.least_usd), kind="stable")
        )
        self._tell(Stage.RELAXATION)

    def _by_solution(self) -> Ints:
        """Jobs in descending order of their highest value in the relaxation."""
        surest = np.zeros(self.instance.jobs)
        np.maximum.at(surest, self.columns.job, self.relaxation.x)
        return np.argsort(-surest, kind="stable")

    def _dive(self) -> None:
        if self._proven() or self._few() or self._over(DIVED_UNTIL):
            return
        self.table.load(np.full(self.instance.jobs, -1, np.int64))
        relaxation = self.relaxation
        self.done["dive"] = dive(
            self.instance,
            self.table,
            relaxation.answered,
            relaxation.x,
            lambda: self._over(DIVED_UNTIL),
            after_round=lambda: self._tell(Stage.DIVE),
        )
        self._take(self.table.column, self.table.cost_usd, Stage.DIVE)

    def _improve(self) -> None:
        self.table.load(self.best)
        improver = Improver(self.instance, self.columns, self.table, self.seed)
        improver.guide(self.relaxation.answered)
        begin, number = self._share(), 0
        hot, cool, cycles = TEMPERATURE[self._few()], COOLING[self._few()], CYCLES[self._few()]
        end = max(IMPROVE_UNTIL[self._few()], min(begin + LEAST_IMPROVE, 1.0))
        while not self._proven() and (self._most is None or number < self._most) and not self._over(end):
            passed = (self._share() - begin) / (end - begin) if self._limit else 0.0
            if self._most is not None:
                passed = max(passed, number / self._most)
            mean = improver.best_usd / self.instance.jobs
            improver.step(hot * mean * cool ** (passed * cycles % 1.0))
            number += 1
            if number % 200 == 0:
                self._take(improver.best, improver.best_usd, Stage.RUIN_AND_RECREATE)
        self.done["ruin and recreate"] = number
        self._take(improver.best, improver.best_usd, Stage.RUIN_AND_RECREATE)

    def _cut(self) -> None:
        if self._proven() or not self._few():
            return
        self.relaxation.drop(self.best_usd, self.best)
        self.relaxation.cut(lambda: self._proven() or self._over(CUTS_UNTIL), lambda: self._report_bound(Stage.CUTS))
        self.done["rounds of cuts"] = self.relaxation.rounds

    def _likely_columns(self) -> None:
        """Better plans from the model of the columns that are cheapest at the prices, with more columns each time."""
        share = LIKELY
        while not self._proven() and not self._over(LIKELY_UNTIL):
            likely = self.relaxation.excess_usd <= share * (self.best_usd - self.relaxation.bound_usd)
            likely[self.best[self.best >= 0]] = True
            solved = self._solve(np.flatnonzero(likely), LIKELY_UNTIL)
            self.done["likely columns"] += 1
            share *= 2
            if not solved.proven or share >= 1.0:
                return

    def _whole_model(self) -> None:
        if self._proven() or self._over(1.0):
            return
        self.relaxation.drop(self.best_usd, self.best)

        def on_bound(bound_usd: float) -> None:
            before = self.bound_usd
            self._bound(min(bound_usd, self.best_usd))
            if self.bound_usd > before:
                self._tell(Stage.WHOLE_MODEL)

        solved = self._solve(np.flatnonzero(self.relaxation.worth), 1.0, on_bound)
        self.done["whole model"] = 1
        self._bound(min(solved.bound_usd, self.best_usd))
        self._tell(Stage.WHOLE_MODEL)

    def _solve(self, at: Ints, until: float, on_bound: Callable[[float], None] | None = None) -> Solved:
        """Solve the columns `at` with HiGHS, starting from the best plan; keep a better one."""
        solved = self.relaxation.model(at).best(
            self.best,
            stop=lambda: self._over(until),
            relative_gap=PROVEN / 2,
            nodes=None if self._limit is not None else self._most,
            # Within its heuristics HiGHS makes no callbacks and obeys only its own time limit, in wall time.
            time_limit_s=until * self._limit - self._elapsed() if self._limit is not None and self._wall else None,
            on_bound=on_bound,
        )
        if solved.column is not None:
            self.table.load(solved.column)
            self._take(self.table.column, self.table.cost_usd, Stage.WHOLE_MODEL if on_bound else Stage.LIKELY_COLUMNS)
        return solved

    def _few(self) -> bool:
        """Whether the remaining model is small enough for HiGHS."""
        gap_usd = self.best_usd - self.relaxation.bound_usd
        return int((self.relaxation.excess_usd <= gap_usd).sum()) <= MOST_COLUMNS_WHOLE

    def _fill(self, score_usd: Floats, order: Ints | None = None) -> None:
        """A greedy plan at these reduced costs; jobs are ordered by regret unless `order` is given."""
        self.table.load(np.full(self.instance.jobs, -1, np.int64))
        fill(self.table, by_regret(self.instance, self.columns, score_usd) if order is None else order, score_usd)
        self._better(self.table.column, self.table.cost_usd)

    def _take(self, column: Ints, cost_usd: float, stage: Stage) -> None:
        self._better(column, cost_usd)
        self._tell(stage)

    def _better(self, column: Ints, cost_usd: float) -> None:
        """Keep these columns if they cost less; sums again, because a timetable's cost drifts by rounding."""
        if cost_usd < self.best_usd - 1e-6:
            self.best = column.copy()
            self.best_usd = min(self.best_usd, as_plan(self.instance, self.columns, column).cost_usd)

    def _bound(self, bound_usd: float) -> None:
        self.bound_usd = max(self.bound_usd, bound_usd)

    def _report_bound(self, stage: Stage) -> None:
        self._bound(self.relaxation.bound_usd)
        self._tell(stage)

    def _proven(self) -> bool:
        return gap(self.best_usd, self.bound_usd) <= PROVEN

    def _elapsed(self) -> float:
        return self._clock() - self._began

    def _share(self) -> float:
        """The used share of the time limit; 0 without a limit."""
        return 0.0 if self._limit is None else self._elapsed() / max(self._limit, 1e-9)

    def _over(self, share: float) -> bool:
        """Whether this share of the time limit is used, or the search is cancelled."""
        return self._share() >= share or (self._cancelled is not None and self._cancelled())

    def _tell(self, stage: Stage) -> None:
        if self._report is not None:
            bound = min(self.bound_usd, self.best_usd)
            self._report(
                Progress(
                    elapsed_s=self._elapsed(),
                    cost_usd=float(self.columns.cost_usd[self.best[self.best >= 0]].sum()),
                    objective_usd=self.best_usd,
                    bound_usd=bound,
                    gap=gap(self.best_usd, bound),
                    stage=stage,
                    jobs_planned=int((self.best >= 0).sum()),
                    jobs=self.instance.jobs,
                    jobs_seen=self.instance.jobs,
                )
            )
