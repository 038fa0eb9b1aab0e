"""One job, one configuration: the choice as a mixed-integer programme, solved as the certificate of a plan.

Sets and data (one column k per screened configuration)
    c_k   expected cost, USD
    t_k   hours from start to finish at the requested confidence
    D, B  deadline in hours and budget in USD, where given
Variables
    x_k in {0, 1}   configuration k runs the job
Model
    minimise    sum_k c_k x_k
    choose_one: sum_k x_k = 1
    deadline:   sum_k t_k x_k <= D
    budget:     sum_k c_k x_k <= B

Enumeration over the arrays has already found the cheapest feasible column. This model, solved by independent software,
must agree, and its bound is the one that the plan quotes.

How it is solved: exactly one configuration runs, so x_k = 0 for every k that exceeds a limit on its own, and the solver
does not get these columns. All others have t_k <= D and c_k <= B, so every convex combination of them keeps the limits,
and the vertices of the linear relaxation are the columns themselves. Its optimum is therefore that of the integer model,
without branching, in a fifth of the time. The bound is that of weak duality from the solver's multipliers u (choose_one)
and w <= 0 (limits), and holds for any multipliers: u + sum_i w_i + sum_k min(0, c_k - u - sum_i w_i a_ik).

Where the objective is time or carbon, v_k (hours or kg) replaces c_k. A second solve then breaks ties: the least cost
with sum_k v_k x_k <= v*, the optimum of the first (row `objective`).

The marginal value of each limit: duals of the choice relaxed to a mix of configurations.

Sets and data (one column k per configuration)
        v_k        objective of column k: USD, hours or kg
        a_rk, b_r  coefficient of column k in limit r (hours, USD, kg), and the limit
Variables
    x_k >= 0   share of the job that runs on configuration k
Model
    minimise    sum_k v_k x_k
    choose_one: sum_k x_k = 1
    limit r:    sum_k a_rk x_k <= b_r

The dual of limit r is the amount by which the optimum falls with one more unit of b_r (>= 0 here). Where the limit lies
at a vertex of the hull there are two such slopes, for more and for less; HiGHS returns one between them.
"""

import math
import threading
import time
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

import numpy as np
import pulp
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on, seconds_left
from gpuplan.planner.model.certificate import SolverCertificate
from gpuplan.planner.strategies.warm_solver import FEASIBILITY_TOLERANCE, NotProvenError, WarmSolver

__all__ = [
    "FEASIBILITY_TOLERANCE",
    "NotProvenError",
    "Rows",
    "choose_least",
    "choose_one",
    "formulate",
    "highs_version",
]

Floats = NDArray[np.float64]
#: Rows of a model by name: the coefficient of each column, and the limit.
Rows = dict[str, tuple[Floats, float]]

#: Bounds are floats: so much of a micro-dollar is rounding error.
BOUND_TOLERANCE_MICROS = 1e-2


def choose_one(
    cost_usd: Floats, hours: Floats, *, deadline_hours: float | None = None, budget_usd: float | None = None
) -> SolverCertificate | None:
    """The proven cheapest of the columns, or None if no column meets deadline and budget.

    `cost_usd` (whole micro-dollars) and `hours` have one element per column. Raises `NotProvenError` if HiGHS stops early.
    """
    return _solved(cost_usd, _rows(cost_usd, hours, deadline_hours, budget_usd))


def choose_least(
    of: str,
    values: Floats,
    cost_usd: Floats,
    hours: Floats,
    *,
    deadline_hours: float | None = None,
    budget_usd: float | None = None,
) -> SolverCertificate | None:
    """The proven least of `values` (time in hours, carbon in kg, whole millionths), and the least cost at that value.

    None if no column meets deadline and budget. Raises `NotProvenError` if HiGHS stops early.
    """
    rows = _rows(cost_usd, hours, deadline_hours, budget_usd)
    least = _solved(values, rows)
    if least is None:
        return None
    # Columns differ by whole millionths: half of one above the optimum admits no other value.
    best = _solved(cost_usd, rows | {"objective": (values, least.objective_usd + 5e-7)})
    if best is None:
        raise NotProvenError(f"HiGHS found {least.objective_usd} as the least {of}, and then no column with this value")
    return replace(
        best,
        of=of,
        objective=least.objective_usd,
        bound=least.bound_usd,
        gap=max(least.gap, best.gap),
        milliseconds=least.milliseconds + best.milliseconds,
    )


def _rows(cost_usd: Floats, hours: Floats, deadline_hours: float | None, budget_usd: float | None) -> Rows:
    """The row of each limit that is given."""
    given = {"deadline": (hours, deadline_hours), "budget": (cost_usd, budget_usd)}
    return {name: (values, limit) for name, (values, limit) in given.items() if limit is not None}


def _solved(objective: Floats, rows: Rows) -> SolverCertificate | None:
    """The column of least objective (whole millionths) within the rows; its figures are in the objective's unit."""
    began = time.perf_counter()
    # For a dozen columns plain numbers are faster than arrays.
    limits = {name: (values.tolist(), limit) for name, (values, limit) in rows.items()}
    open_ = [k for k in range(len(objective)) if all(values[k] <= limit for values, limit in limits.values())]
    if not open_:
        return None
    shares = {name: [_share(values[k], limit) for k in open_] for name, (values, limit) in limits.items()}
    model = formulate(objective[open_].tolist(), shares)
    optimum = _OfOne(presolve="off").optimum(model.problem)
    if optimum is None:
        raise NotProvenError(f"HiGHS found no choice among {len(open_)} columns that all keep every limit")
    chosen = optimum.values.index(max(optimum.values))
    if optimum.values[chosen] < 1.0 - FEASIBILITY_TOLERANCE:
        raise NotProvenError(f"HiGHS mixed columns of a model whose vertices are its columns: {optimum.values}")
    least = optimum.objective
    bound = min(_whole_micros(_dual_bound(model, optimum.prices)), least)
    return SolverCertificate(
        chosen=open_[chosen],
        objective_usd=least,
        bound_usd=bound,
        gap=(least - bound) / max(abs(least), 1e-9),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        columns=len(objective),
        milliseconds=(time.perf_counter() - began) * 1e3,
    )


class _OfOne(WarmSolver):
    """For this model: with few rows, solving is faster than presolving."""

    of_thread = threading.local()


def _share(value: float, limit: float) -> float:
    """The coefficient of a column that keeps the limit by exact comparison: at most 1, even after rounding."""
    return min(value / limit, 1.0)


def _dual_bound(model: "Model", prices: list[float]) -> float:
    """A lower bound on every column within the limits, by weak duality from the solver's multipliers of the rows."""
    one, limits = prices[0], [min(0.0, price) for price in prices[1:]]
    bound = one + sum(limits)
    for k, cost in enumerate(model.objective):
        taken = sum(price * share[k] for price, share in zip(limits, model.shares.values(), strict=True))
        bound += min(0.0, cost - one - taken)
    return bound


def _whole_micros(bound_usd: float) -> float:
    """The bound raised to the next whole micro-dollar: every column costs a whole number of them."""
    return math.ceil(bound_usd * 1e6 - BOUND_TOLERANCE_MICROS) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The relaxed model of the module's docstring: `objective` by column, `shares` the coefficients of the limits by name.

    Its rows are choose_one and then the limits, in that order.
    """

    problem: pulp.LpProblem
    objective: list[float]
    shares: dict[str, list[float]]


def formulate(objective: list[float], shares: dict[str, list[float]]) -> Model:
    """The relaxed model of columns that each keep every limit, with every row named.

    `shares` are the coefficients of the columns by limit, at most 1: each row is divided by its limit, so that HiGHS'
    absolute tolerance is relative.
    """
    problem = pulp.LpProblem("cheapest_configuration", pulp.LpMinimize)
    width, count = len(str(len(objective))), len(objective)
    x = [problem.add_variable(f"x_{k:0{width}d}", 0) for k in range(count)]
    problem.setObjective(_total(x, objective))
    problem.addConstraint(_total(x, [1.0] * count) == 1, "choose_one")
    for name, share in shares.items():
        problem.addConstraint(_total(x, share) <= 1, name)
    return Model(problem=problem, objective=objective, shares=shares)


def _total(x: list[pulp.LpVariable], coefficients: list[float]) -> pulp.LpAffineExpression:
    """sum_k a_k x_k by PuLP's bulk builder, several times faster than a sum of products."""
    return pulp.lpSum_vars_coefs(zip(x, coefficients, strict=True))


@cache
def highs_version() -> str:
    """The version of the solver library in this process."""
    return version("highspy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The optimum of the mix, and per limit how much one more unit lowers it (0: the limit does not bind)."""

    optimum: float
    worth: dict[str, float]


def relaxed(objective: Floats, rows: Rows) -> Relaxed | None:
    """The relaxed choice over columns with these objectives; None if no mix of them keeps the limits.

    Raises `NotProvenError` if HiGHS stops early.
    """
    problem = pulp.LpProblem("mix_of_configurations", pulp.LpMinimize)
    width = len(str(len(objective)))
    x = [problem.add_variable(f"x_{k:0{width}d}", lowBound=0) for k in range(len(objective))]
    # The objective and each row are scaled to about 1, so that HiGHS' absolute tolerances are relative.
    scale = float(np.max(objective, initial=0.0)) or 1.0
    problem.setObjective(_relaxed_total(x, objective / scale))
    problem.addConstraint(_relaxed_total(x, np.ones(len(x))) == 1, "choose_one")
    for name, (values, limit) in rows.items():
        problem.addConstraint(_relaxed_total(x, values / limit) <= 1, name)
    solver = pulp.HiGHS(
        msg=False, threads=1, timeLimit=seconds_left(), primal_feasibility_tolerance=FEASIBILITY_TOLERANCE
    )
    stats = problem.solve(solver)
    go_on()
    if stats.status == pulp.LpSolveStatus.Infeasible:
        return None
    if stats.status != pulp.LpSolveStatus.Optimal or stats.objective is None:
        raise NotProvenError(f"HiGHS ended with status {stats.status.name} on a mix of {len(objective)} columns")
    duals = {constraint.name: constraint.pi or 0.0 for constraint in problem.constraints()}
    return Relaxed(
        optimum=float(stats.objective) * scale,
        worth={name: max(0.0, -float(duals[name])) * scale / limit for name, (_, limit) in rows.items()},
    )


def _relaxed_total(x: list[pulp.LpVariable], coefficients: Floats) -> pulp.LpAffineExpression:
    return pulp.lpSum_vars_coefs(zip(x, coefficients.tolist(), strict=True))
