"""The linear relaxation of a portfolio, with cuts: its prices give the bound, its solution and prices guide the search.

Small portfolios are solved with all their columns, large ones by column generation. An interior-point method solves the
model of the columns that look cheap, which gives new prices. One pass over all columns adds those that improve the
model at these prices, until there are none. Then violated cuts are added and slack ones removed, in rounds.

The bound is computed from the prices over all columns and is valid at any prices; the solver's value is not used. A
column is removed (`worth` is false) if its reduced cost exceeds its job's least by more than the cost of the best plan
exceeds the bound: no better plan contains it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.cutting_planes import Cut, broken, coefficients
from gpuplan.planner.portfolio.lagrangian_prices import Answered, Prices, answer_to
from gpuplan.planner.portfolio.portfolio_instance import Columns, Floats, Instance, Ints
from gpuplan.planner.portfolio.time_indexed_model import Relaxed, TimeIndexed

#: Larger models are solved faster by column generation.
MOST_COLUMNS_AT_ONCE = 40_000
#: First columns per job, and most added per job in one round.
COLUMNS_PER_JOB = 8
#: Column generation ends when the restricted model is within this share of the bound: less than any requested gap.
SETTLED = 1e-4
#: Rounds of cuts end when the bound rises by less than this share in two of them.
LEAST_RISE = 2e-5
MOST_ROUNDS = 40


class Relaxation:
    """The best prices so far (`prices`), the jobs' choices at them (`answered`), and the solution `x`."""

    def __init__(self, instance: Instance, columns: Columns, prices: Prices, answered: Answered) -> None:
        """Starts at the given prices."""
        self.instance, self.columns = instance, columns
        self.prices, self.answered = prices, answered
        self.x: Floats = np.zeros(len(columns))
        self.cuts: list[Cut] = []
        self.rounds = 0
        self.worth: NDArray[np.bool_] = np.ones(len(columns), np.bool_)
        self._large = len(columns) > MOST_COLUMNS_AT_ONCE
        self._in = self._cheapest(self.excess_usd, COLUMNS_PER_JOB) if self._large else self.worth.copy()

    @property
    def bound_usd(self) -> float:
        """The best bound so far."""
        return self.answered.bound_usd

    @property
    def excess_usd(self) -> Floats:
        """The reduced cost of each column minus the least of its job."""
        return self.answered.reduced_usd - self.answered.least_usd[self.columns.job]

    def drop(self, best_usd: float, columns: Ints) -> None:
        """Remove the columns that no plan cheaper than `best_usd` contains, except those of the best plan."""
        self.worth &= self.excess_usd <= best_usd - self.bound_usd + 1e-6
        self.worth[columns[columns >= 0]] = True
        self._in &= self.worth

    def solve(self, stop: Callable[[], bool], after_round: Callable[[], None] = lambda: None) -> None:
        """Solve the relaxation without cuts, to the optimum or until `stop`."""
        if self._large:
            self._generate(stop, after_round)
            return
        relaxed = self._model().relaxed(stop=stop)
        if relaxed is not None:
            self._take(relaxed, np.flatnonzero(self._in))

    def cut(self, stop: Callable[[], bool], after_round: Callable[[], None]) -> None:
        """Add cuts in rounds until the bound no longer rises, or until `stop`."""
        model, at = (None, np.flatnonzero(self._in)) if self._large else (self._model(), np.flatnonzero(self._in))
        poor = 0
        while poor < 2 and self.rounds < MOST_ROUNDS and not stop():
            before = self.bound_usd
            new = broken(self.instance, self.columns, at, self.x[at])
            if not new:
                return
            self.cuts += new
            if model is None:
                self._generate(stop)
                at = np.flatnonzero(self._in)
            else:
                self._add(model, at, new)
                relaxed = model.relaxed(stop=stop)
                if relaxed is None:
                    return
                self._take(relaxed, at)
                model.drop_cuts(relaxed.cuts <= 0)
                self.cuts = [cut for cut, price in zip(self.cuts, relaxed.cuts, strict=True) if price > 0]
            self.rounds += 1
            poor = poor + 1 if self.bound_usd - before < LEAST_RISE * abs(before) else 0
            after_round()

    def model(self, at: Ints) -> TimeIndexed:
        """The model over the columns `at` with the cuts."""
        whole = self.instance
        model = TimeIndexed(
            whole, self.columns, at, np.arange(whole.jobs), left=whole.capacity, budget_left=whole.budget_usd
        )
        self._add(model, at, self.cuts)
        return model

    def _model(self) -> TimeIndexed:
        whole, at = self.instance, np.flatnonzero(self._in)
        model = TimeIndexed(
            whole,
            self.columns,
            at,
            np.arange(whole.jobs),
            left=whole.capacity,
            budget_left=whole.budget_usd,
            every_slot=self._large,
        )
        self._add(model, at, self.cuts)
        return model

    def _add(self, model: TimeIndexed, at: Ints, cuts: list[Cut]) -> None:
        for cut in cuts:
            which, value = coefficients(self.instance, self.columns, at, cut)
            model.add_cut(which, value, cut.most)

    def _generate(self, stop: Callable[[], bool], after_round: Callable[[], None] = lambda: None) -> None:
        """Column generation with the current cuts."""
        while not stop():
            at = np.flatnonzero(self._in)
            relaxed = self._model().relaxed(stop=stop, interior=True)
            if relaxed is None:
                return
            answered = self._take(relaxed, at)
            after_round()
            if relaxed.value_usd - self.bound_usd <= SETTLED * abs(relaxed.value_usd):
                self.cuts = [cut for cut, price in zip(self.cuts, relaxed.cuts, strict=True) if price > 1e-6]
                return
            excess = answered.reduced_usd - answered.least_usd[self.columns.job]
            new = self._cheapest(np.where(self._in, np.inf, excess), COLUMNS_PER_JOB) & (
                excess < self._pays(at, answered)
            )
            if not new.any():
                return
            self._in |= new

    def _pays(self, at: Ints, answered: Answered) -> Floats:
        """Per column: the excess below which it is cheaper than its job's choice in the restricted model."""
        least = self.instance.penalty_usd.copy()
        np.minimum.at(least, self.columns.job[at], answered.reduced_usd[at])
        pays: Floats = (least - answered.least_usd)[self.columns.job] - 1e-6
        return pays

    def _take(self, relaxed: Relaxed, at: Ints) -> Answered:
        """Keep these prices if their bound is better; keep the solution in any case."""
        prices = Prices(
            capacity=relaxed.capacity,
            budget=relaxed.budget,
            cuts=tuple(
                (cut, price) for cut, price in zip(self.cuts, relaxed.cuts.tolist(), strict=True) if price > 1e-9
            ),
        )
        answered = answer_to(self.instance, self.columns, prices)
        self.x[:] = 0.0
        self.x[at] = relaxed.x
        if answered.bound_usd > self.bound_usd:
            self.prices, self.answered = prices, answered
        return answered

    def _cheapest(self, cost_usd: Floats, count: int) -> NDArray[np.bool_]:
        """The `many` cheapest columns of each job that cost a finite amount."""
        order = np.lexsort((cost_usd, self.columns.job))
        rank = np.arange(len(order)) - self.columns.first[self.columns.job[order]]
        chosen = np.zeros(len(cost_usd), np.bool_)
        chosen[order[rank < count]] = True
        return chosen & np.isfinite(cost_usd)
