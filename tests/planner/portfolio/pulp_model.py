"""The time-indexed model of a portfolio in PuLP: a readable check of `time_indexed_model`.

The search gives HiGHS the same model as arrays, with other rows and with cuts. This one is built row by row with
readable names for an LP file; tests compare the two.

Sets and data as in `gpuplan.planner.portfolio.portfolio_instance`; one column i is (job j, configuration k, start s).
Variables
    x_i in {0, 1}   column i runs
    v_j in {0, 1}   job j is left out
Model
    minimise     sum_i c_i x_i + sum_j p_j v_j
    run_j:       sum of x_i over the columns of j + v_j = 1
    use_r_t:     sum of u_ir x_i over the columns in use of pool r in slot t <= b_rt
    budget:      sum_i c_i x_i <= B
Rows that no choice can violate and duplicate rows are omitted.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pulp

from gpuplan.planner.portfolio.portfolio_instance import ROUNDING, Columns, Floats, Instance, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """The solution of HiGHS: a column per job (-1: left out) or None, and a bound in USD.

    `proven` means that no choice of these columns is cheaper.
    """

    column: Ints | None
    bound_usd: float
    proven: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Row:
    """The capacity row of a pool and slot: these columns use `units` of `capacity`."""

    pool: int
    slot: int
    which: Ints
    units: Floats
    capacity: float


def capacity_rows(instance: Instance, columns: Columns, at: Ints, left: Floats) -> list[_Row]:
    """The distinct capacity rows that the columns `at` could violate."""
    pool, slot, which, units = _entries(instance, columns, at)
    order = np.lexsort((which, slot, pool))
    pool, slot, which, units = pool[order], slot[order], which[order], units[order]
    if not len(pool):
        return []
    key = pool * instance.slots + slot
    _, first = np.unique(key, return_index=True)
    rows, seen = [], set()
    job = columns.job[at]
    for a, b in zip(first.tolist(), [*first[1:].tolist(), len(key)], strict=True):
        capacity = float(left[pool[a], slot[a]])
        if not math.isfinite(capacity):
            continue
        mine, sizes = which[a:b], units[a:b]
        most = np.zeros(instance.jobs)
        np.maximum.at(most, job[mine], sizes)
        if most.sum() <= capacity + ROUNDING:
            continue
        fingerprint = (mine.tobytes(), sizes.tobytes(), capacity)
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        rows.append(_Row(pool=int(pool[a]), slot=int(slot[a]), which=mine, units=sizes, capacity=capacity))
    return rows


def _entries(instance: Instance, columns: Columns, at: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """(pool, slot, index in `at`, units) of the columns' use of finite pools."""
    parts: list[tuple[Ints, Ints, Ints, Floats]] = []
    finite = np.isfinite(instance.capacity).any(axis=1)
    for use in range(instance.pool.shape[1]):
        pool = instance.pool[columns.configuration[at], use]
        units = instance.units[columns.configuration[at], use]
        which = np.flatnonzero(finite[pool] & (units > 0))
        length = (columns.end[at] - columns.start[at])[which].astype(np.int64)
        slot = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        slot += np.repeat(columns.start[at][which], length)
        parts.append((np.repeat(pool[which], length), slot, np.repeat(which, length), np.repeat(units[which], length)))
    pools, slots, whiches, sizes = zip(*parts, strict=True)
    return np.concatenate(pools), np.concatenate(slots), np.concatenate(whiches), np.concatenate(sizes)


def solve(
    instance: Instance,
    columns: Columns,
    at: Ints,
    jobs: Ints,
    *,
    left: Floats,
    budget_left: float,
    time_limit_s: float,
    relative_gap: float = 0.0,
    relaxed: bool = False,
) -> Solved:
    """The best choice for `jobs` among the columns `at` with the capacity and budget that are `left`.

    With `relaxed`, solve the linear relaxation, which gives a bound alone.
    """
    problem = pulp.LpProblem("portfolio", pulp.LpMinimize)
    kind: Literal["Continuous", "Binary"] = "Continuous" if relaxed else "Binary"
    x = [problem.add_variable(f"x_{i}", 0, 1, kind) for i in range(len(at))]
    v = {int(j): problem.add_variable(f"v_{j}", 0, 1, kind) for j in jobs}
    costs = columns.cost_usd[at].tolist() + instance.penalty_usd[jobs].tolist()
    problem.setObjective(pulp.lpSum_vars_coefs(zip([*x, *v.values()], costs, strict=True)))
    of: dict[int, list[pulp.LpVariable]] = {j: [variable] for j, variable in v.items()}
    for variable, j in zip(x, columns.job[at].tolist(), strict=True):
        of[j].append(variable)
    for j, variables in of.items():
        problem.addConstraint(pulp.lpSum_vars_coefs((variable, 1.0) for variable in variables) == 1, f"run_{j}")
    rows = capacity_rows(instance, columns, at, left)
    for row in rows:
        terms = zip((x[i] for i in row.which.tolist()), row.units.tolist(), strict=True)
        problem.addConstraint(pulp.lpSum_vars_coefs(terms) <= row.capacity, f"use_{row.pool}_{row.slot}")
    if math.isfinite(budget_left):
        problem.addConstraint(
            pulp.lpSum_vars_coefs(zip(x, columns.cost_usd[at].tolist(), strict=True)) <= budget_left, "budget"
        )
    solver = pulp.HiGHS(
        mip=not relaxed,
        msg=False,
        threads=1,
        timeLimit=max(0.01, time_limit_s),
        gapRel=relative_gap,
    )
    stats = problem.solve(solver)
    if relaxed:
        is_solved = stats.status == pulp.LpSolveStatus.Optimal
        value = float(stats.objective) if is_solved and stats.objective is not None else -math.inf
        return Solved(column=None, bound_usd=value, proven=is_solved)
    chosen_columns = None
    if stats.has_solution:
        chosen_columns = np.full(instance.jobs, -1, np.int64)
        for variable, column in zip(x, at.tolist(), strict=True):
            if (variable.varValue or 0.0) > 0.5:
                chosen_columns[columns.job[column]] = column
    bound = -math.inf if stats.best_bound is None else float(stats.best_bound)
    return Solved(column=chosen_columns, bound_usd=bound, proven=stats.status == pulp.LpSolveStatus.Optimal)
