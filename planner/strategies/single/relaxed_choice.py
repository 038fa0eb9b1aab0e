"""The marginal value of each limit: duals of the choice relaxed to a mix of configurations.

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

from dataclasses import dataclass

import numpy as np
import pulp
from numpy.typing import NDArray

from gpuplan.catalog.runtime.time_limit import go_on, seconds_left
from gpuplan.planner.strategies.single.choice_model import FEASIBILITY_TOLERANCE, NotProvenError, Rows

Floats = NDArray[np.float64]


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
    problem.setObjective(_total(x, objective / scale))
    problem.addConstraint(_total(x, np.ones(len(x))) == 1, "choose_one")
    for name, (values, limit) in rows.items():
        problem.addConstraint(_total(x, values / limit) <= 1, name)
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


def _total(x: list[pulp.LpVariable], coefficients: Floats) -> pulp.LpAffineExpression:
    return pulp.lpSum_vars_coefs(zip(x, coefficients.tolist(), strict=True))
