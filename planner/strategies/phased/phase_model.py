"""Two phases as a mixed-integer programme over linear bounds: a lower bound on every plan on these columns.

Sets and data (one column k per configuration that bounds leave open; the bounds are those of `linear_bounds`)
    A_k, B_k   least cost of starting on k, and of all the work on k, USD
    a_k, b_k   least hours of starting on k, and of all the work on k
    e_k        data egress to the region of k, USD
    u_k        the largest share that the price kind and the free windows of k leave room for
    g(k)       the migration class of k: software stack and precision
    D          deadline in hours, where given
Variables
    x_k in [0, u_k]   share of the work on k        y_k in {0, 1}   k runs        w_g in {0, 1}   the run stays in class g
        e >= 0            data egress
Model
    minimise    sum_k A_k y_k + B_k x_k + e
    work:       sum_k x_k = 1
    used_k:     x_k <= u_k y_k
    phases:     sum_k y_k <= 2
    deadline:   sum_k a_k y_k + b_k x_k <= D
        one_migration_class: sum_g w_g = 1     migration_class_k: y_k <= w_g(k)
    data_k:     e >= e_k y_k

Every plan in phases on these columns is a point of the model and costs at least its value there. So the optimum is a
lower bound, found by independent software. Moves, minimum bills, rounding and waits only add to it.

Above `MOST_WHOLE` columns the linear relaxation is solved instead, with y_k and w_g in [0, 1]: a lower bound that
scales, where branching would take minutes. Above `MOST_MODELLED` columns no model is made.

The solver gets only the columns that no other of their migration class replaces. A column that may do all of the work
and is no worse in each of A, B, a, b and e can take the share of the other (and needs no more phases), so the optimum
stays. Redundant rows are left out: those of a single migration class, and of data egress that is no dearer than the least.
"""

import threading
import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pulp
from numpy.typing import NDArray

from gpuplan.planner.strategies.phased.linear_underestimators import LinearUnderestimator
from gpuplan.planner.strategies.single.choice_model import highs_version
from gpuplan.planner.strategies.warm_solver import WarmSolver

Floats = NDArray[np.float64]


#: The most columns of a model with whole numbers: about 0.1 s. With 790 columns HiGHS takes 35 s.
MOST_WHOLE = 64
#: The most columns of a linear relaxation: 0.1 s with 790 columns, about a second with so many.
MOST_MODELLED = 5_000
#: Heuristics of HiGHS that run whatever their effort.
_NO_HEURISTICS = {
    f"mip_heuristic_run_{name}": False for name in ("feasibility_jump", "rins", "rens", "root_reduced_cost")
}
#: Fields of a column of which less is better.
_LESS_IS_BETTER = ("fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd")


def irreplaceable(linear_bounds: LinearUnderestimator) -> NDArray[np.int64]:
    """The columns that no other of their migration class replaces; of equal ones the first that may do all of the work.

    In the order of their values, a column comes before those it replaces. Replacement is transitive. So each column met that
    may do all of the work stays, and removes all that it replaces.
    """
    values = np.stack([getattr(linear_bounds, name) for name in _LESS_IS_BETTER])
    unable = linear_bounds.caps < 1.0
    left = np.lexsort((unable, *values[::-1]))
    chosen = []
    while len(left):
        first, left = left[0], left[1:]
        chosen.append(first)
        if not unable[first]:
            no_worse = (values[:, left] >= values[:, first, None]).all(axis=0) & (
                linear_bounds.migration_class[left] == linear_bounds.migration_class[first]
            )
            left = left[~no_worse]
    return np.sort(np.array(chosen, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The optimum of the model in USD (inf: nothing meets the deadline), and its effort.

    `whole` says whether y and w were whole numbers; else it is the optimum of the linear relaxation.
    """

    usd: float
    columns: int
    whole: bool
    solver: str
    milliseconds: float


def relaxed(linear_bounds: LinearUnderestimator) -> Relaxed:
    """The optimum of the model. Raises `NotProvenError` if HiGHS stops early."""
    began = time.perf_counter()
    modelled = linear_bounds.take(irreplaceable(linear_bounds))
    whole = len(modelled) <= MOST_WHOLE
    optimum = _OfPhases(mip_rel_gap=0.0, mip_abs_gap=0.0, mip_heuristic_effort=0.0, **_NO_HEURISTICS).optimum(
        formulate(modelled, whole=whole)
    )
    return Relaxed(
        usd=np.inf if optimum is None else min(optimum.bound, optimum.objective),
        columns=len(linear_bounds),
        whole=whole,
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        milliseconds=(time.perf_counter() - began) * 1e3,
    )


class _OfPhases(WarmSolver):
    """For this model: the disabled heuristics take several times as long as all the rest and do not change the proof."""

    of_thread = threading.local()


def formulate(linear_bounds: LinearUnderestimator, *, whole: bool = True) -> pulp.LpProblem:
    """The model of the module's docstring with every row named; its linear relaxation unless `whole`."""
    kind: Literal["Integer", "Continuous"] = "Integer" if whole else "Continuous"
    problem = pulp.LpProblem("cheapest_phases", pulp.LpMinimize)
    numbers = range(len(linear_bounds))
    share = [problem.add_variable(f"x_{k}", lowBound=0, upBound=float(linear_bounds.caps[k])) for k in numbers]
    used = [problem.add_variable(f"y_{k}", 0, 1, kind) for k in numbers]
    groups = np.unique(linear_bounds.migration_class).tolist()
    migration_class = {g: problem.add_variable(f"w_{g}", 0, 1, kind) for g in groups} if len(groups) > 1 else {}
    least_data = float(linear_bounds.data_usd.min())
    data = problem.add_variable("e", lowBound=least_data)
    problem.setObjective(_both(used, linear_bounds.fixed_usd, share, linear_bounds.slope_usd) + data)
    problem.addConstraint(pulp.lpSum(share) == 1, "work")
    problem.addConstraint(pulp.lpSum(used) <= 2, "phases")
    if migration_class:
        problem.addConstraint(pulp.lpSum(migration_class.values()) == 1, "one_migration_class")
    if np.isfinite(linear_bounds.deadline_hours):
        # Divided by the deadline, so that the solver's tolerance is relative to it.
        hours = _both(
            used,
            linear_bounds.fixed_hours / linear_bounds.deadline_hours,
            share,
            linear_bounds.slope_hours / linear_bounds.deadline_hours,
        )
        problem.addConstraint(hours <= 1, "deadline")
    for k in numbers:
        problem.addConstraint(share[k] <= float(linear_bounds.caps[k]) * used[k], f"used_{k}")
        if migration_class:
            problem.addConstraint(
                used[k] <= migration_class[int(linear_bounds.migration_class[k])], f"migration_class_{k}"
            )
        if linear_bounds.data_usd[k] > least_data:
            problem.addConstraint(data >= float(linear_bounds.data_usd[k]) * used[k], f"data_{k}")
    return problem


def _both(
    used: list[pulp.LpVariable], fixed: Floats, share: list[pulp.LpVariable], slope: Floats
) -> pulp.LpAffineExpression:
    return pulp.lpSum_vars_coefs(zip((*used, *share), (*fixed.tolist(), *slope.tolist()), strict=True))
