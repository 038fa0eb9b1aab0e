"""The time-indexed model of a portfolio over a subset of its columns, kept warm in HiGHS.

Sets and data as in `gpuplan.planner.portfolio.portfolio_instance`; one column i is (job j, configuration k, start s).
Variables
    x_i in {0, 1}            column i runs
    v_j in {0, 1}            job j is left out
    0 <= n_rt <= b_rt        units of pool r in use from event t on
Model
    minimise     sum_i c_i x_i + sum_j p_j v_j
    run_j:       sum of x_i over the columns of j + v_j = 1
    use_r_t:     n_rt = n_r(t-1) + sum of u_ir x_i that start at t - sum of u_ir x_i that end at t
    budget:      sum_i c_i x_i <= B
    cut:         sum_i a_i x_i <= m, for each cut given (`gpuplan.planner.portfolio.cutting_planes`)
Events are the slots at which a column starts or ends. Use does not change between two events, so b_rt is the least
capacity until the next one. With rows of changes, a row has an entry per column that starts or ends there, not per
column that runs: a sixth of the entries, and a linear relaxation ten times as fast.

The model goes to HiGHS as arrays, without Python objects per column, so ten thousand columns take milliseconds. HiGHS
calls `stop` between its rounds and then ends with the best solution so far.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, Columns, Floats, Instance, Ints

Triples = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Events:
    """Events: e is (`pool`, `slot`), with the least `capacity` until the next event, in slot `tightest`.

    `changes`: event, column index, and units of every start (+) and end (-).
    """

    pool: Ints
    slot: Ints
    capacity: Floats
    tightest: Ints
    changes: Triples

    def in_use(self, x: Floats) -> Floats:
        """Units in use from each event on for shares `x` of the columns."""
        event, column, units = self.changes
        change = np.zeros(len(self.slot))
        np.add.at(change, event, units * x[column])
        total = np.cumsum(change)
        first = np.flatnonzero(np.diff(self.pool, prepend=-1))
        before = np.where(first > 0, total[first - 1], 0.0)
        use: Floats = np.maximum(0.0, total - np.repeat(before, np.diff(np.append(first, len(total)))))
        return use


def events_of(instance: Instance, columns: Columns, at: Ints, left: Floats, *, every_slot: bool) -> Events:
    """The events of these columns in finite pools."""
    limited = np.isfinite(left).any(axis=1)
    width = instance.slots + 1
    keys: list[Ints] = []
    which: list[Ints] = []
    units: list[Floats] = []
    configuration = columns.configuration[at]
    for use in range(instance.pool.shape[1]):
        pool, drawn = instance.pool[configuration, use], instance.units[configuration, use]
        mine = np.flatnonzero(limited[pool] & (drawn > 0))
        for moment, sign in ((columns.start, 1.0), (columns.end, -1.0)):
            keys.append(pool[mine] * width + moment[at[mine]])
            which.append(mine)
            units.append(sign * drawn[mine])
    key = np.concatenate(keys)
    if every_slot:
        used = np.unique(key // width)
        every = np.unique(np.concatenate((key, (used[:, None] * width + np.arange(instance.slots)).reshape(-1))))
        event = np.searchsorted(every, key)
    else:
        every, event = np.unique(key, return_inverse=True)
    pool, slot = every // width, every % width
    capacity, tightest = _least_left(left, pool, slot)
    changes = event.reshape(-1).astype(np.int64), np.concatenate(which), np.concatenate(units)
    return Events(pool=pool, slot=slot, capacity=capacity, tightest=tightest, changes=changes)


def _least_left(left: Floats, pool: Ints, slot: Ints) -> tuple[Floats, Ints]:
    """The least capacity from each event to the next of its pool, and its slot; nothing runs after the last event."""
    capacity, tightest = np.full(len(slot), np.inf), np.minimum(slot, left.shape[1] - 1)
    for event in range(len(slot) - 1):
        if pool[event + 1] == pool[event]:
            part = left[pool[event], slot[event] : slot[event + 1]]
            least = int(part.argmin())
            capacity[event], tightest[event] = max(0.0, float(part[least])), slot[event] + least
    return capacity, tightest


def binding(instance: Instance, columns: Columns, at: Ints, events: Events) -> NDArray[np.bool_]:
    """Events whose capacity could be exceeded, by the most units that each job can use."""
    most = np.zeros(len(instance.capacity))
    for pool in np.unique(events.pool).tolist():
        size = np.where(instance.pool == pool, instance.units, 0.0).sum(axis=1)[columns.configuration[at]]
        largest = np.zeros(instance.jobs)
        np.maximum.at(largest, columns.job[at], size)
        most[pool] = largest.sum()
    could: NDArray[np.bool_] = (most[events.pool] > events.capacity) & np.isfinite(events.capacity)
    return could


def chain(events: Events, first_row: int, first_variable: int) -> list[Triples]:
    """The rows use_r_t: the changes at an event, and the use before and after it."""
    event, column, units = events.changes
    every = np.arange(len(events.slot))
    follows = np.flatnonzero(events.pool[1:] == events.pool[:-1]) if len(every) else every
    return [
        (first_row + event, column, units),
        (first_row + every, first_variable + every, -np.ones(len(every))),
        (first_row + follows + 1, first_variable + follows, np.ones(len(follows))),
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxed:
    """The linear relaxation: `value_usd`, `x` of each column, prices of capacity (R + 1, T), of budget and of cuts (>= 0).

    The value of HiGHS is approximate: compute a bound from the prices (`gpuplan.planner.portfolio.lagrangian_prices`).
    """

    value_usd: float
    x: Floats
    capacity: Floats
    budget: float
    cuts: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """The solution of HiGHS: a column per job (-1: left out) or None, and a bound in USD.

    `proven` means that no choice of these columns is cheaper by more than the requested tolerance.
    """

    column: Ints | None
    bound_usd: float
    proven: bool


class TimeIndexed:
    """The model over the columns `at` for these `jobs`, with the capacity (R + 1, T) and budget that are `left`.

    With `every_slot` there is a row per slot instead of per event, which gives prices for column generation.
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
        """Builds the model in a HiGHS solver with one thread."""
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
        """The index of the first variable n."""
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
        lower, upper = (np.concatenate((bounds, np.zeros(len(events.slot)))) for bounds in (lower, upper))
        if math.isfinite(budget_left):
            row = jobs + len(events.slot)
            parts.append((np.full(count, row), np.arange(count), self.columns.cost_usd[self.at]))
            lower, upper = np.append(lower, -infinite), np.append(upper, budget_left)
        self._has_budget = math.isfinite(budget_left)
        rows, variables, values = (np.concatenate(parts_of_column) for parts_of_column in zip(*parts, strict=True))
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
        """Add a row: the coefficients of these columns (indices in `at`) sum to at most `most`."""
        self._solver.addRow(-highspy.kHighsInf, most, len(which), which.astype(np.int32), coefficient)
        self._cuts += 1

    def drop_cuts(self, slack: NDArray[np.bool_]) -> None:
        """Remove the cuts at these indices."""
        rows = (self._solver.getNumRow() - self._cuts + np.flatnonzero(slack)).astype(np.int32)
        if len(rows):
            self._solver.deleteRows(len(rows), rows)
            self._cuts -= len(rows)

    def relaxed(self, *, stop: Callable[[], bool], interior: bool = False) -> Relaxed | None:
        """Solve the linear relaxation; None if it was stopped early.

        With `interior`, use the interior-point method without crossover. It is many times faster on large models, and
        its prices are central among the optimal ones, which stabilises column generation (Rousseau, Gendreau and
        Feillet 2007).
        """
        solver = self._solver
        solver.setOptionValue("solver", "ipm" if interior else "choose")
        solver.setOptionValue("run_crossover", "off" if interior else "on")
        self._run(stop)
        status = solver.getModelStatus()
        # Without crossover HiGHS reports "unknown" if it misses the optimality tolerance only in the last digits.
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
        on_bound: Callable[[float], None] | None = None,
    ) -> Solved:
        """The best choice of columns, from `start` on (a column per job of the instance).

        `on_bound` is called with each new bound in USD. Ends at `stop`, after `nodes` of branch and bound, or at
        `time_limit_s`.
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
        self._run(stop, on_bound)
        info = solver.getInfo()
        column = None
        if math.isfinite(info.objective_function_value):
            chosen = self.at[np.flatnonzero(np.array(solver.getSolution().col_value)[: len(self.at)] > 0.5)]
            column = np.full(self.instance.jobs, LEFT_OUT, np.int64)
            column[self.columns.job[chosen]] = chosen
        proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return Solved(column=column, bound_usd=float(info.mip_dual_bound), proven=proven)

    def _as_values(self, start: Ints) -> Floats:
        """The values of all variables for a plan."""
        values = np.zeros(self._solver.getNumCol())
        mine = start[self.jobs]
        values[len(self.at) + np.flatnonzero(mine < 0)] = 1.0
        values[: len(self.at)] = np.isin(self.at, mine[mine >= 0])
        values[self._uses_from :] = self._events.in_use(values[: len(self.at)])
        return values

    def _run(self, stop: Callable[[], bool], on_bound: Callable[[float], None] | None = None) -> None:
        solver = self._solver

        def look(event: Any) -> None:
            if on_bound is not None and event.data_out is not None:
                on_bound(float(event.data_out.mip_dual_bound))
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
