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

How it is solved: one configuration is all that runs, so x_k = 0 for every k that is over a limit by itself: such columns
are left out of what the solver is given. Of all that is left t_k <= D and c_k <= B, every convex combination of columns
keeps the limits too, and the polytope of the linear relaxation has the columns themselves as its vertices: its optimum
is that of the integers, found without branching in a fifth of the time. The bound is that of weak duality from the
solver's multipliers u (choose_one) and w <= 0 (limits), which holds for any of them:
u + sum_i w_i + sum_k min(0, c_k - u - sum_i w_i a_ik).

Where time or carbon is what should be least, v_k (hours or kg) stands for c_k in the objective, and a second solve
settles what is left open: the least cost with sum_k v_k x_k <= v*, the optimum of the first (row `objective`).
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

from planner.optimise.kept_highs import FEASIBILITY_TOLERANCE, KeptHighs, NotProvenError

__all__ = [
    "FEASIBILITY_TOLERANCE",
    "Certificate",
    "NotProvenError",
    "Rows",
    "choose_least",
    "choose_one",
    "formulate",
    "highs_version",
]

Floats = NDArray[np.float64]
#: Rows of a model by name: what each column takes, and the limit of it.
Rows = dict[str, tuple[Floats, float]]

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
    # A dozen columns: plain numbers are sooner done than arrays.
    kept = {name: (values.tolist(), limit) for name, (values, limit) in rows.items()}
    open_ = [k for k in range(len(objective)) if all(values[k] <= limit for values, limit in kept.values())]
    if not open_:
        return None
    shares = {name: [_share(values[k], limit) for k in open_] for name, (values, limit) in kept.items()}
    model = formulate(objective[open_].tolist(), shares)
    found = _OfOne(presolve="off").optimum(model.problem)
    if found is None:
        raise NotProvenError(f"HiGHS finds no choice among {len(open_)} columns that keep every limit")
    chosen = found.values.index(max(found.values))
    if found.values[chosen] < 1.0 - FEASIBILITY_TOLERANCE:
        raise NotProvenError(f"HiGHS mixes columns of a model whose vertices are its columns: {found.values} of one")
    least = found.objective
    bound = min(_whole_micros(_dual_bound(model, found.prices)), least)
    return Certificate(
        chosen=open_[chosen],
        objective_usd=least,
        bound_usd=bound,
        gap=(least - bound) / max(abs(least), 1e-9),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        columns=len(objective),
        milliseconds=(time.perf_counter() - began) * 1e3,
    )


class _OfOne(KeptHighs):
    """For this model: of a few rows, it is solved sooner than presolved."""

    of_thread = threading.local()


def _share(value: float, limit: float) -> float:
    """What a column takes of a limit that it keeps by exact comparison: at most 1, whatever the division rounds."""
    return min(value / limit, 1.0)


def _dual_bound(model: "Model", prices: list[float]) -> float:
    """What no column within the limits undercuts, by the solver's multipliers of the rows."""
    one, limits = prices[0], [min(0.0, price) for price in prices[1:]]
    bound = one + sum(limits)
    for k, cost in enumerate(model.objective):
        taken = sum(price * share[k] for price, share in zip(limits, model.shares.values(), strict=True))
        bound += min(0.0, cost - one - taken)
    return bound


def _whole_micros(bound_usd: float) -> float:
    """The bound raised to the next whole micro-dollar: every column costs a whole number of them, so none lies between."""
    return math.ceil(bound_usd * 1e6 - BOUND_TOLERANCE_MICROS) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """The model of the module's docstring, relaxed: `objective` by column, `shares` the coefficients of the limits by name.

    Its rows are choose_one and then the limits, in that order.
    """

    problem: pulp.LpProblem
    objective: list[float]
    shares: dict[str, list[float]]


def formulate(objective: list[float], shares: dict[str, list[float]]) -> Model:
    """The relaxed model of columns that keep every limit by themselves, with every row named.

    `shares` are what each column takes of each limit, at most 1: a row divided by its limit, so that HiGHS' absolute
    tolerance is relative.
    """
    problem = pulp.LpProblem("cheapest_configuration", pulp.LpMinimize)
    width, count = len(str(len(objective))), len(objective)
    x = [problem.add_variable(f"x_{k:0{width}d}", 0) for k in range(count)]
    problem.setObjective(_total(x, objective))
    problem.addConstraint(_total(x, [1.0] * count) == 1, "choose_one")
    for name, each in shares.items():
        problem.addConstraint(_total(x, each) <= 1, name)
    return Model(problem=problem, objective=objective, shares=shares)


def _total(x: list[pulp.LpVariable], coefficients: list[float]) -> pulp.LpAffineExpression:
    """sum_k a_k x_k by PuLP's bulk builder, several times faster than a sum of products."""
    return pulp.lpSum_vars_coefs(zip(x, coefficients, strict=True))


@cache
def highs_version() -> str:
    """The version of the solver library in this process."""
    return version("highspy")
