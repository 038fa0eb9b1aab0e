"""The linear relaxation of a portfolio, with cuts: its prices give the bound, its solution and prices guide the search.

Small portfolios are solved with all their columns. Large ones by column generation: the model of the columns that
look cheap at the prices so far, from within; new prices; then every job's columns that would pay at these, found by
one pass over all columns (`prices`), until nothing pays. Then, in rounds, the cuts that the solution breaks go in and
those that have become slack go out.

The bound is never what the solver says: it is worked out from the prices over all columns, and holds at any prices.
A column whose reduced cost lies above its job's least by more than what the best plan costs above the bound is part
of no better plan, and is `worth` nothing from then on.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.optimise.time_indexed import Relaxed, TimeIndexed
from planner.portfolio.cuts import Cut, broken, coefficients
from planner.portfolio.instance import Columns, Floats, Instance, Ints
from planner.portfolio.prices import Answered, Prices, answer_to

#: Models of more columns than this are quicker by column generation.
MOST_COLUMNS_AT_ONCE = 40_000
#: So many columns of each job begin, and no more of a job are added in one round.
COLUMNS_PER_JOB = 8
#: Column generation ends when the restricted model is within this share of the bound: less than any gap asked for.
SETTLED = 1e-4
#: Rounds of cuts end when the bound rises by less than this share in two of them.
LEAST_RISE = 2e-5
MOST_ROUNDS = 40


class Relaxation:
    """Prices that only ever get better: `prices`, what the jobs answer to them (`answered`), and the solution `x`."""

    def __init__(self, instance: Instance, columns: Columns, prices: Prices, answered: Answered) -> None:
        """From prices found in any other way."""
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
        """How far the reduced cost of each column lies above the least of its job."""
        return self.answered.reduced_usd - self.answered.least_usd[self.columns.job]

    def drop(self, best_usd: float, keep: Ints) -> None:
        """Give up the columns that are in no plan cheaper than `best_usd`, but for those of the plan itself."""
        self.worth &= self.excess_usd <= best_usd - self.bound_usd + 1e-6
        self.worth[keep[keep >= 0]] = True
        self._in &= self.worth

    def solve(self, stop: Callable[[], bool], after_round: Callable[[], None] = lambda: None) -> None:
        """The relaxation without cuts, to the end or until `stop`."""
        if self._large:
            self._generate(stop, after_round)
            return
        relaxed = self._model().relaxed(stop=stop)
        if relaxed is not None:
            self._take(relaxed, np.flatnonzero(self._in))

    def cut(self, stop: Callable[[], bool], after_round: Callable[[], None]) -> None:
        """Rounds of cuts until they raise the bound no more, or until `stop`."""
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
        """The whole model over the columns `at`, with the cuts."""
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
        """Column generation with the cuts at hand."""
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
                excess < self._pays(relaxed, at, answered)
            )
            if not new.any():
                return
            self._in |= new

    def _pays(self, relaxed: Relaxed, at: Ints, answered: Answered) -> Floats:
        """Per column: the excess below which it is cheaper than what its job has in the restricted model."""
        least = self.instance.penalty_usd.copy()
        np.minimum.at(least, self.columns.job[at], answered.reduced_usd[at])
        pays: Floats = (least - answered.least_usd)[self.columns.job] - 1e-6
        return pays

    def _take(self, relaxed: Relaxed, at: Ints) -> Answered:
        """Keep these prices if their bound is better, and the solution in any case."""
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

    def _cheapest(self, cost_usd: Floats, many: int) -> NDArray[np.bool_]:
        """The `many` cheapest columns of each job that cost a finite amount."""
        order = np.lexsort((cost_usd, self.columns.job))
        rank = np.arange(len(order)) - self.columns.first[self.columns.job[order]]
        chosen = np.zeros(len(cost_usd), np.bool_)
        chosen[order[rank < many]] = True
        return chosen & np.isfinite(cost_usd)
