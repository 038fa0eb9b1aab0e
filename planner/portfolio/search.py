"""The any-time search: a plan at once, then better plans and better bounds until the gap is closed or time is up.

    1. each job in turn takes what is cheapest                              (construct)
    2. prices rise on what is short, to those of the linear relaxation      (prices, relaxation)
    3. too many columns for step 6: what the relaxation is surest of is placed, and it is solved anew  (dive)
    4. ruin and recreate, led by the prices                                 (improve)
    5. cuts, which raise the bound and mend the prices                      (cuts, relaxation)
    6. few columns left: the model of the likely ones, then of all that the bound does not exclude, in HiGHS
                                                                            (planner.optimise.time_indexed)
    7. too many for that: exact neighbourhoods of related jobs              (neighbourhood)
The bound is the better of what the prices prove over all columns and what HiGHS proves. A column whose reduced cost
lies above its job's least by more than the gap is in no better plan, and is left out of the models of step 6. Cuts are for
portfolios of which few enough columns are left: over wide pools they raise the bound by next to nothing.

With an iteration limit the result rests on the seed alone; with a time limit it says how many iterations were done.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.optimise.time_indexed import Solved
from planner.portfolio.check import violations
from planner.portfolio.construct import by_regret, fill
from planner.portfolio.dive import dive
from planner.portfolio.improve import Improver
from planner.portfolio.instance import Floats, Instance, Ints
from planner.portfolio.neighbourhood import Neighbourhoods
from planner.portfolio.prices import Ascent
from planner.portfolio.progress import Found, Progress, Stage, gap
from planner.portfolio.relaxation import Relaxation
from planner.portfolio.timetable import Timetable, as_plan

#: A plan within this share of the bound is proven: HiGHS' own tolerances are of this size.
PROVEN = 1e-6
#: Shares of the time limit at which stages end, where HiGHS can take what is left of the model or not.
PRICES_UNTIL, RELAXED_UNTIL, DIVED_UNTIL, CUTS_UNTIL = 0.1, 0.5, 0.55, 0.6
IMPROVE_UNTIL = {True: 0.2, False: 0.85}
LIKELY_UNTIL = 0.6
#: So often annealing begins anew: where a job is a large part of the whole, one run of five ends far from the others.
CYCLES = {True: 2, False: 1}
#: Ruin and recreate gets at least this share, where the relaxation took long of a short limit.
LEAST_IMPROVE = 0.15
#: Likely columns have an excess of at most this share of the gap to begin with.
LIKELY = 0.05
#: Models of more columns than this do not leave HiGHS' root relaxation in a minute.
MOST_COLUMNS_WHOLE = 40_000
#: Steps of ascent: enough that the columns which look cheap then are those to begin with.
STEPS = 60
#: Annealing begins at this share of a job's mean cost and ends at that share of it, where the model is small and where
#: it is large: there no time is left to mend what a hot start breaks.
TEMPERATURE, COOLING = {True: 0.2, False: 0.01}, {True: 0.01, False: 0.05}


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
            "neighbourhoods",
            "whole model",
        )
        self.done = dict.fromkeys(stages, 0)
        self.first_plan_s = 0.0

    def run(self) -> Found:
        self._construct()
        if len(self.columns) and not self._proven():
            self._relax()
            self._dive()
            improver = self._improve()
            self._cut()
            if self._few():
                self._likely_columns()
                self._whole_model()
            else:
                self._neighbourhoods(improver)
        plan = as_plan(self.instance, self.columns, self.best)
        if wrong := violations(self.instance, plan):
            raise WrongPlanError("; ".join(wrong[:3]))
        bound = min(self.bound_usd, plan.cost_usd)
        self._tell(Stage.DONE)
        return Found(
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
        # Where money is short, those go first whose absence costs most.
        self._fill(self.ascent.best.reduced_usd, np.argsort(-self.instance.penalty_usd, kind="stable"))
        self.first_plan_s = self._elapsed()
        self._tell(Stage.FIRST_PLAN)

    def _relax(self) -> None:
        """Prices of the linear relaxation, by way of a few steps of ascent, and plans at them."""
        while self.done["prices"] < STEPS and not self._over(PRICES_UNTIL):
            self.ascent.step(self.best_usd)
            self.done["prices"] += 1
            self._bound(self.ascent.best.bound_usd)
        self._fill(self.ascent.best.reduced_usd)
        self._tell(Stage.PRICES)
        self.relaxation = Relaxation(self.instance, self.columns, self.ascent.prices, self.ascent.best)
        self.relaxation.solve(lambda: self._over(RELAXED_UNTIL), lambda: self._told_of_bound(Stage.RELAXATION))
        self._bound(self.relaxation.bound_usd)
        reduced = self.relaxation.answered.reduced_usd
        self._fill(reduced)
        self._fill(reduced, self._by_solution())
        self._fill(
            reduced, np.argsort(-(self.instance.penalty_usd - self.relaxation.answered.least_usd), kind="stable")
        )
        self._tell(Stage.RELAXATION)

    def _by_solution(self) -> Ints:
        """Jobs by how surely the relaxation places them."""
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

    def _improve(self) -> Improver:
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
        return improver

    def _cut(self) -> None:
        if self._proven() or not self._few():
            return
        self.relaxation.drop(self.best_usd, self.best)
        self.relaxation.cut(lambda: self._proven() or self._over(CUTS_UNTIL), lambda: self._told_of_bound(Stage.CUTS))
        self.done["rounds of cuts"] = self.relaxation.rounds

    def _neighbourhoods(self, improver: Improver) -> None:
        self.table.load(self.best)
        improver.guide(self.relaxation.answered)
        around = Neighbourhoods(self.instance, improver, self._clock)
        end, number = 1.0, 0
        most = None if self._most is None else self._most // 50
        while not self._proven() and not self._over(end) and (most is None or number < most):
            around.step(self.bound_usd, lambda: self._over(end), timed=self._limit is not None)
            number += 1
            self._take(improver.best, improver.best_usd, Stage.NEIGHBOURHOODS)
        self.done["neighbourhoods"] = number

    def _likely_columns(self) -> None:
        """Better plans from the model of the columns that are cheapest at the prices; more of them as it is solved."""
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

        def told(bound_usd: float) -> None:
            before = self.bound_usd
            self._bound(min(bound_usd, self.best_usd))
            if self.bound_usd > before:
                self._tell(Stage.WHOLE_MODEL)

        solved = self._solve(np.flatnonzero(self.relaxation.worth), 1.0, told)
        self.done["whole model"] = 1
        self._bound(min(solved.bound_usd, self.best_usd))
        self._tell(Stage.WHOLE_MODEL)

    def _solve(self, at: Ints, until: float, told: Callable[[float], None] | None = None) -> Solved:
        """HiGHS over the columns `at` from the best plan on; a better one is taken."""
        solved = self.relaxation.model(at).best(
            self.best,
            stop=lambda: self._over(until),
            relative_gap=PROVEN / 2,
            nodes=None if self._limit is not None else self._most,
            # Inside its own heuristics HiGHS asks nobody, and heeds its own clock alone, which is the wall's.
            time_limit_s=until * self._limit - self._elapsed() if self._limit is not None and self._wall else None,
            told=told,
        )
        if solved.column is not None:
            self.table.load(solved.column)
            self._take(self.table.column, self.table.cost_usd, Stage.WHOLE_MODEL if told else Stage.LIKELY_COLUMNS)
        return solved

    def _few(self) -> bool:
        """Whether HiGHS can be given all that is left of the model."""
        gap_usd = self.best_usd - self.relaxation.bound_usd
        return int((self.relaxation.excess_usd <= gap_usd).sum()) <= MOST_COLUMNS_WHOLE

    def _fill(self, score_usd: Floats, order: Ints | None = None) -> None:
        """A plan at these reduced costs, from an empty timetable; jobs by regret unless their `order` is given."""
        self.table.load(np.full(self.instance.jobs, -1, np.int64))
        fill(self.table, by_regret(self.instance, self.columns, score_usd) if order is None else order, score_usd)
        self._better(self.table.column, self.table.cost_usd)

    def _take(self, column: Ints, cost_usd: float, stage: Stage) -> None:
        self._better(column, cost_usd)
        self._tell(stage)

    def _better(self, column: Ints, cost_usd: float) -> None:
        """Take these columns if they cost less, their cost summed afresh: a timetable's own drifts by rounding."""
        if cost_usd < self.best_usd - 1e-6:
            self.best = column.copy()
            self.best_usd = min(self.best_usd, as_plan(self.instance, self.columns, column).cost_usd)

    def _bound(self, bound_usd: float) -> None:
        self.bound_usd = max(self.bound_usd, bound_usd)

    def _told_of_bound(self, stage: Stage) -> None:
        self._bound(self.relaxation.bound_usd)
        self._tell(stage)

    def _proven(self) -> bool:
        return gap(self.best_usd, self.bound_usd) <= PROVEN

    def _elapsed(self) -> float:
        return self._clock() - self._began

    def _share(self) -> float:
        """How much of the time limit is used up; 0 where there is none."""
        return 0.0 if self._limit is None else self._elapsed() / max(self._limit, 1e-9)

    def _over(self, share: float) -> bool:
        """Whether this share of the time limit is used up, or the search is cancelled."""
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
