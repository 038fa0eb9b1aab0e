"""The time-indexed model of a portfolio over some of its columns, kept open in HiGHS.

Sets and data as in `planner.portfolio.instance`; one column i is (job j, configuration k, start s).
Variables
    x_i in {0, 1}            column i runs
    v_j in {0, 1}            job j is left out
    0 <= n_rt <= b_rt        units of pool r in use from event t on
Model
    minimise     sum_i c_i x_i + sum_j p_j v_j
    run_j:       sum of x_i over the columns of j + v_j = 1
    use_r_t:     n_rt = n_r(t-1) + sum of u_ir x_i that start at t - sum of u_ir x_i that end at t
    budget:      sum_i c_i x_i <= B
    cut:         sum_i a_i x_i <= m, for each cut given (`planner.portfolio.cuts`)
Events are the slots at which a column starts or ends; between two of them use does not change, so b_rt is the least
that is left until the next. Written by changes, a row has as many entries as columns start or end there, not as many
as run: a sixth of the entries, and a linear relaxation ten times as fast.

The model goes to HiGHS as arrays: its columns are never Python objects, so that ten thousand cost milliseconds.
HiGHS asks `stop` between its rounds and ends with what it has.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.optimise.events import binding, chain, events_of
from planner.portfolio.instance import LEFT_OUT, Columns, Floats, Instance, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxed:
    """The linear relaxation: `value_usd`, `x` of each column, prices of capacity (R + 1, T), of budget and of cuts (>= 0).

    What HiGHS says is a hint: a bound must be worked out from the prices (`planner.portfolio.prices`).
    """

    value_usd: float
    x: Floats
    capacity: Floats
    budget: float
    cuts: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """What HiGHS made of the model: a column per job (-1: left out) or None, and a bound on its value in USD.

    `proven` says that nothing of these columns is cheaper than the tolerance asked for.
    """

    column: Ints | None
    bound_usd: float
    proven: bool


class TimeIndexed:
    """The model over the columns `at` for these `jobs`, in what is `left` of pools (R + 1, T) and of the budget.

    With `every_slot` there is a row for each slot, not for each event: prices for column generation.
    """

    def __init__(
        self,
        instance: Instance,
        columns: Columns,
        at: Ints,
        jobs: Ints,
        *,
        left: Floats,
        budget_left: float,
        every_slot: bool = False,
    ) -> None:
        """Hands the model to a solver of its own, on one thread."""
        self.instance, self.columns, self.at, self.jobs = instance, columns, at, jobs
        self._events = events_of(instance, columns, at, left, every_slot=every_slot)
        self._binding = binding(instance, columns, at, self._events)
        self._place = np.full(instance.jobs, -1, np.int64)
        self._place[jobs] = np.arange(len(jobs))
        self._cuts = 0
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.silent()
        self._solver.setOptionValue("threads", 1)
        self._solver.passModel(self._model(budget_left))

    @property
    def _uses_from(self) -> int:
        """The number of the first of the variables n."""
        return len(self.at) + len(self.jobs)

    def _model(self, budget_left: float) -> Any:
        count, jobs, events = len(self.at), len(self.jobs), self._events
        infinite = highspy.kHighsInf
        parts = [
            (self._place[self.columns.job[self.at]], np.arange(count), np.ones(count)),
            (np.arange(jobs), count + np.arange(jobs), np.ones(jobs)),
            *chain(events, jobs, self._uses_from),
        ]
        lower, upper = np.ones(jobs), np.ones(jobs)
        lower, upper = (np.concatenate((each, np.zeros(len(events.slot)))) for each in (lower, upper))
        if math.isfinite(budget_left):
            row = jobs + len(events.slot)
            parts.append((np.full(count, row), np.arange(count), self.columns.cost_usd[self.at]))
            lower, upper = np.append(lower, -infinite), np.append(upper, budget_left)
        self._has_budget = math.isfinite(budget_left)
        rows, variables, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((rows, variables))
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self._uses_from + len(events.slot), len(lower)
        model.col_cost_ = np.concatenate(
            (self.columns.cost_usd[self.at], self.instance.penalty_usd[self.jobs], np.zeros(len(events.slot)))
        )
        model.col_lower_ = np.zeros(model.num_col_)
        free = np.where(self._binding, events.capacity, infinite)
        model.col_upper_ = np.concatenate((np.ones(self._uses_from), free))
        model.row_lower_, model.row_upper_ = lower, upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(variables[order], np.arange(model.num_col_ + 1)).astype(np.int32)
        model.a_matrix_.index_ = rows[order].astype(np.int32)
        model.a_matrix_.value_ = values[order]
        return model

    def add_cut(self, which: Ints, coefficient: Floats, most: float) -> None:
        """One more row: the `coefficient` of these of the model's columns, given by place in `at`, sum to at most this."""
        self._solver.addRow(-highspy.kHighsInf, most, len(which), which.astype(np.int32), coefficient)
        self._cuts += 1

    def drop_cuts(self, slack: NDArray[np.bool_]) -> None:
        """Take these of the cuts out again, by their order."""
        rows = (self._solver.getNumRow() - self._cuts + np.flatnonzero(slack)).astype(np.int32)
        if len(rows):
            self._solver.deleteRows(len(rows), rows)
            self._cuts -= len(rows)

    def relaxed(self, *, stop: Callable[[], bool], interior: bool = False) -> Relaxed | None:
        """The linear relaxation; None if it was stopped before the end.

        `interior`: from within, without a vertex. Many times faster on large models, and its prices lie in the middle
        of all that are optimal, which is what column generation needs to settle (Rousseau, Gendreau and Feillet 2007).
        """
        solver = self._solver
        solver.setOptionValue("solver", "ipm" if interior else "choose")
        solver.setOptionValue("run_crossover", "off" if interior else "on")
        self._run(stop)
        status = solver.getModelStatus()
        # Without a vertex HiGHS says "unknown" where it is at the optimum within its tolerance but for the last digits.
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown):
            return None
        solution, info = solver.getSolution(), solver.getInfo()
        duals, events = np.array(solution.col_dual), self._events
        rows = np.array(solution.row_dual)
        prices = np.zeros_like(self.instance.capacity)
        paid = np.where(self._binding, np.maximum(0.0, -duals[self._uses_from :]), 0.0)
        np.add.at(prices, (events.pool, events.tightest), paid)
        first_cut = len(rows) - self._cuts
        return Relaxed(
            value_usd=float(info.objective_function_value),
            x=np.array(solution.col_value)[: len(self.at)],
            capacity=prices,
            budget=max(0.0, -float(rows[first_cut - 1])) if self._has_budget else 0.0,
            cuts=np.maximum(0.0, -rows[first_cut:]),
        )

    def best(
        self,
        start: Ints | None,
        *,
        stop: Callable[[], bool],
        relative_gap: float = 0.0,
        nodes: int | None = None,
        time_limit_s: float | None = None,
        told: Callable[[float], None] | None = None,
    ) -> Solved:
        """The best choice of columns, from `start` on (a column per job of the instance).

        `told` hears each new bound in USD. Ends at `stop`, after `nodes` of branch and bound or `time_limit_s`.
        """
        solver, count = self._solver, self._uses_from
        solver.setOptionValue("solver", "choose")
        integers = np.arange(count, dtype=np.int32)
        solver.changeColsIntegrality(count, integers, np.full(count, highspy.HighsVarType.kInteger))
        solver.setOptionValue("mip_rel_gap", relative_gap)
        solver.setOptionValue("mip_abs_gap", 1e-6)
        if nodes is not None:
            solver.setOptionValue("mip_max_nodes", nodes)
        if time_limit_s is not None:
            solver.setOptionValue("time_limit", solver.getRunTime() + max(0.01, time_limit_s))
        if start is not None:
            values = self._as_values(start)
            solver.setSolution(len(values), np.arange(len(values), dtype=np.int32), values)
        self._run(stop, told)
        info = solver.getInfo()
        column = None
        if math.isfinite(info.objective_function_value):
            chosen = self.at[np.flatnonzero(np.array(solver.getSolution().col_value)[: len(self.at)] > 0.5)]
            column = np.full(self.instance.jobs, LEFT_OUT, np.int64)
            column[self.columns.job[chosen]] = chosen
        proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return Solved(column=column, bound_usd=float(info.mip_dual_bound), proven=proven)

    def _as_values(self, start: Ints) -> Floats:
        """A plan as values of all variables."""
        values = np.zeros(self._solver.getNumCol())
        mine = start[self.jobs]
        values[len(self.at) + np.flatnonzero(mine < 0)] = 1.0
        values[: len(self.at)] = np.isin(self.at, mine[mine >= 0])
        values[self._uses_from :] = self._events.in_use(values[: len(self.at)])
        return values

    def _run(self, stop: Callable[[], bool], told: Callable[[float], None] | None = None) -> None:
        solver = self._solver

        def look(event: Any) -> None:
            if told is not None and event.data_out is not None:
                told(float(event.data_out.mip_dual_bound))
            if stop():
                event.interrupt()

        def look_only(event: Any) -> None:
            if stop():
                event.interrupt()

        solver.cbMipInterrupt += look
        solver.cbSimplexInterrupt += look_only
        solver.cbIpmInterrupt += look_only
        try:
            solver.run()
        finally:
            solver.cbMipInterrupt -= look
            solver.cbSimplexInterrupt -= look_only
            solver.cbIpmInterrupt -= look_only
