"""One job, one configuration: the choice as a mixed-integer programme, solved as the certificate of a plan.

Sets and data (one column k per screened configuration)
    c_k   expected cost, USD
    t_k   hours from start to finish that are kept with the asked confidence
    D, B  deadline in hours and budget in USD, where given
Variables
    x_k in {0, 1}   configuration k is the one that runs
Model
    minimise    sum_k c_k x_k
    choose_one: sum_k x_k = 1
    deadline:   sum_k t_k x_k <= D
    budget:     sum_k c_k x_k <= B

The arrays have already found the cheapest feasible column by enumeration; this model, handed to
another piece of software, must agree, and its bound is what the plan quotes.

How it is solved: one configuration is all that runs, so x_k = 0 for every k that is over a limit by itself. With these
fixed, t_k <= D and c_k <= B for all that is left, every convex combination of columns keeps the limits too, and the
polytope of the linear relaxation has the columns themselves as its vertices: its optimum is that of the integers, found
without branching in a fifth of the time. The bound is that of weak duality from the solver's multipliers u (choose_one)
and w <= 0 (limits), which holds for any of them: u + sum_i w_i + sum_k min(0, c_k - u - sum_i w_i a_ik).

Where time or carbon is what should be least, v_k (hours or kg) stands for c_k in the objective, and a second solve
settles what is left open: the least cost with sum_k v_k x_k <= v*, the optimum of the first (row `objective`).
"""

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

import numpy as np
import pulp
from numpy.typing import NDArray

from catalog.allowed_time import go_on, seconds_left

Floats = NDArray[np.float64]
#: Rows of a model by name: what each column takes, and the limit of it.
Rows = dict[str, tuple[Floats, float]]

#: Each row is divided by its right-hand side, so HiGHS' feasibility tolerance (1e-7 absolute) is relative.
FEASIBILITY_TOLERANCE = 1e-9

#: A column above a limit stands above it by at least this share in the model, so that no tolerance lets it
#: through: HiGHS takes rows of integer columns as met within its mip_feasibility_tolerance of 1e-6, whatever the above.
CLEARLY_ABOVE = 1e-5

#: A column this many times over a limit is out like one further over, and HiGHS refuses coefficients of 1e15.
MOST_TIMES_OVER = 1e6

#: The bound comes back as a float: this much of a micro-dollar is rounding, not proof.
BOUND_TOLERANCE_MICROS = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the solver proved: chosen column, objective and bound in USD, relative gap, wall milliseconds.

    Where time or carbon was made least, `objective` and `bound` say what of it was proven, in its own unit, the gap is
    its gap, and the figures in USD are the least cost at which it can be had. With cost the two pairs are one.
    `over` says which plans of several phases it stands above, and by what right.
    """

    chosen: int
    objective_usd: float
    bound_usd: float
    gap: float
    solver: str
    columns: int
    milliseconds: float
    of: str = "cost"
    objective: float | None = None
    bound: float | None = None
    over: tuple[str, ...] = ()


class NotProvenError(RuntimeError):
    """The solver did not prove an optimum; the message carries its status. A defect, never a user's fault."""


def choose_one(
    cost_usd: Floats, hours: Floats, *, deadline_hours: float | None = None, budget_usd: float | None = None
) -> Certificate | None:
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
) -> Certificate | None:
    """The proven least of `values` (time in hours, carbon in kg, whole millionths), and of those the least cost.

    None if no column meets deadline and budget. Raises `NotProvenError` if HiGHS stops early.
    """
    rows = _rows(cost_usd, hours, deadline_hours, budget_usd)
    least = _solved(values, rows)
    if least is None:
        return None
    # Columns are whole millionths apart: half of one above the optimum lets nothing else in.
    best = _solved(cost_usd, rows | {"objective": (values, least.objective_usd + 5e-7)})
    if best is None:
        raise NotProvenError(f"HiGHS found {least.objective_usd} of {of} least, and then nothing that keeps to it")
    return replace(
        best,
        of=of,
        objective=least.objective_usd,
        bound=least.bound_usd,
        gap=max(least.gap, best.gap),
        milliseconds=least.milliseconds + best.milliseconds,
    )


def _rows(cost_usd: Floats, hours: Floats, deadline_hours: float | None, budget_usd: float | None) -> Rows:
    """What each column takes of each limit there is."""
    given = {"deadline": (hours, deadline_hours), "budget": (cost_usd, budget_usd)}
    return {name: (values, limit) for name, (values, limit) in given.items() if limit is not None}


def _solved(objective: Floats, rows: Rows) -> Certificate | None:
    """The column of least objective (whole millionths) within the rows, its figures in the objective's own unit."""
    began = time.perf_counter()
    model = formulate(objective, rows)
    # One thread, set nowhere else: HiGHS keeps its thread count per OS thread.
    solver = pulp.HiGHS(
        mip=False, msg=False, threads=1, timeLimit=seconds_left(), primal_feasibility_tolerance=FEASIBILITY_TOLERANCE
    )
    stats = model.problem.solve(solver)
    go_on()
    if stats.status == pulp.LpSolveStatus.Infeasible:
        return None
    if stats.status != pulp.LpSolveStatus.Optimal or stats.objective is None:
        raise NotProvenError(f"HiGHS ended with status {stats.status.name} on a model of {len(objective)} columns")
    values = [variable.varValue or 0.0 for variable in model.x]
    chosen = int(np.argmax(values))
    if values[chosen] < 1.0 - FEASIBILITY_TOLERANCE:
        raise NotProvenError(f"HiGHS mixes columns of a model whose vertices are its columns: {max(values)} of one")
    least = float(stats.objective)
    bound = min(_whole_micros(_dual_bound(model)), least)
    return Certificate(
        chosen=chosen,
        objective_usd=least,
        bound_usd=bound,
        gap=(least - bound) / max(abs(least), 1e-9),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        columns=len(objective),
        milliseconds=(time.perf_counter() - began) * 1e3,
    )


def _dual_bound(model: "Model") -> float:
    """What no column within the limits undercuts, by the solver's multipliers of the rows."""
    prices = [float(row.pi or 0.0) for row in model.rows]
    one, limits = prices[0], np.minimum(0.0, prices[1:])
    reduced = model.objective - one - limits @ model.shares
    return one + float(limits.sum()) + float(np.minimum(0.0, reduced[model.open_]).sum())


def _whole_micros(bound_usd: float) -> float:
    """The bound raised to the next whole micro-dollar: every column costs a whole number of them, so none lies between."""
    return math.ceil(bound_usd * 1e6 - BOUND_TOLERANCE_MICROS) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The model of the module's docstring: `x` and `objective` in the order of the columns, `rows` with choose_one first.

    `shares` are the coefficients of the limits, one row each; `open_` marks columns that no limit fixes at 0.
    """

    problem: pulp.LpProblem
    x: list[pulp.LpVariable]
    rows: list[pulp.LpConstraint]
    objective: Floats
    shares: Floats
    open_: NDArray[np.bool_]


def formulate(objective: Floats, rows: Rows) -> Model:
    """The model with every row named."""
    problem = pulp.LpProblem("cheapest_configuration", pulp.LpMinimize)
    width, count = len(str(len(objective))), len(objective)
    shares = np.array([_scaled(values, limit) for values, limit in rows.values()]).reshape(len(rows), count)
    open_ = (shares <= 1.0).all(axis=0)
    most = open_.astype(np.int64).tolist()
    x = [problem.add_variable(f"x_{k:0{width}d}", 0, most[k], "Integer") for k in range(count)]
    problem.setObjective(_total(x, objective.tolist()))
    named = [problem.addConstraint(_total(x, [1.0] * count) == 1, "choose_one")]
    for name, each in zip(rows, shares.tolist(), strict=True):
        named.append(problem.addConstraint(_total(x, each) <= 1, name))
    return Model(problem=problem, x=x, rows=named, objective=objective, shares=shares, open_=open_)


def _total(x: list[pulp.LpVariable], coefficients: list[float]) -> pulp.LpAffineExpression:
    """sum_k a_k x_k by PuLP's bulk builder, several times faster than a sum of products."""
    return pulp.lpSum_vars_coefs(zip(x, coefficients, strict=True))


def _scaled(values: Floats, limit: float) -> Floats:
    """Each column's share of a limit: the row's coefficients, its right-hand side being 1.

    Shares are kept on the side of 1 on which exact comparison puts them: a deadline copied from an answer is a
    time rounded to a few digits, closer to the time itself than the solver's tolerance and perhaps below it.
    """
    shares = np.minimum(values / limit, MOST_TIMES_OVER)
    return np.where(values <= limit, np.minimum(shares, 1.0), np.maximum(shares, 1.0 + CLEARLY_ABOVE))


@cache
def highs_version() -> str:
    """The version of the solver library in this process."""
    return version("highspy")
