"""Several phases as a mixed-integer programme over straight lines: what no plan on these columns can undercut.

Sets and data (one column k per configuration that bounds leave open; `planner.phases.lines` has the lines)
    A_k, B_k   least cost of starting on k, and of all the work on k, USD
    a_k, b_k   least hours of starting on k, and of all the work on k
    e_k        bringing the data to the place of k, USD
    u_k        the largest share that the price kind and the free windows of k leave room for
    g(k)       the kin of k: software stack and precision
    D, N       deadline in hours, where given, and how many phases there may be
Variables
    x_k in [0, u_k]   share of the work on k        y_k in {0, 1}   k runs        w_g in {0, 1}   the run stays in kin g
    e >= 0            bringing the data
Model
    minimise    sum_k A_k y_k + B_k x_k + e
    work:       sum_k x_k = 1
    used_k:     x_k <= u_k y_k
    phases:     sum_k y_k <= N
    deadline:   sum_k a_k y_k + b_k x_k <= D
    kin:        sum_g w_g = 1,  y_k <= w_g(k)
    data_k:     e >= e_k y_k

Every plan in phases on these columns is a point of the model and costs at least its value there, so its optimum is a
bound that another piece of software finds; moves, minimum bills, rounding and waits only add to it.

The solver is handed the columns that none of their kin replaces: one that may do all of the work and is no worse in each
of A, B, a, b and e can take the share of the other (and be no phase more), so that the optimum stays. Rows that say
nothing are left out: those of one kin alone, and of data that costs no more than the least there is.
"""

import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pulp
from numpy.typing import NDArray

from planner.optimise.kept_highs import KeptHighs
from planner.optimise.single import highs_version

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """The data of the model, one element per column; no deadline is inf."""

    fixed_usd: Floats
    slope_usd: Floats
    fixed_hours: Floats
    slope_hours: Floats
    data_usd: Floats
    caps: Floats
    kin: NDArray[np.int64]
    deadline_hours: float
    phases: int

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self.kin)

    def take(self, which: NDArray[np.int64]) -> "Lines":
        """Some of the columns."""
        return replace(self, **{name: getattr(self, name)[which] for name in (*_LESS_IS_BETTER, "caps", "kin")})


#: What of a column is the better the less it is.
_LESS_IS_BETTER = ("fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd")


def irreplaceable(lines: Lines) -> NDArray[np.int64]:
    """The columns that no other of their kin replaces; of those alike the first that may do all of the work.

    What replaces a column comes before it in the order of their values, and is itself replaced by one that replaces both;
    so each able column that is met is one of those kept, and takes all that it replaces away.
    """
    values = np.stack([getattr(lines, name) for name in _LESS_IS_BETTER])
    unable = lines.caps < 1.0
    left = np.lexsort((unable, *values[::-1]))
    kept = []
    while len(left):
        first, left = left[0], left[1:]
        kept.append(first)
        if not unable[first]:
            no_worse = (values[:, left] >= values[:, first, None]).all(axis=0) & (lines.kin[left] == lines.kin[first])
            left = left[~no_worse]
    return np.sort(np.array(kept, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The least that the model allows, in USD (inf: nothing is in time), and what it took."""

    usd: float
    columns: int
    solver: str
    milliseconds: float


def relaxed(lines: Lines) -> Relaxed:
    """The optimum of the model. Raises `NotProvenError` if HiGHS stops early."""
    began = time.perf_counter()
    found = _OfPhases(
        mip_rel_gap=0.0, mip_abs_gap=0.0, mip_heuristic_run_feasibility_jump=False, mip_heuristic_effort=0.0
    ).optimum(formulate(lines.take(irreplaceable(lines))))
    return Relaxed(
        usd=np.inf if found is None else min(found.bound, found.objective),
        columns=len(lines),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
        milliseconds=(time.perf_counter() - began) * 1e3,
    )


class _OfPhases(KeptHighs):
    """For this model: the heuristics left out take several times as long as all the rest of it; what is proven stays."""

    of_thread = threading.local()


def formulate(lines: Lines) -> pulp.LpProblem:
    """The model of the module's docstring with every row named."""
    problem = pulp.LpProblem("cheapest_phases", pulp.LpMinimize)
    numbers = range(len(lines))
    share = [problem.add_variable(f"x_{k}", lowBound=0, upBound=float(lines.caps[k])) for k in numbers]
    used = [problem.add_variable(f"y_{k}", cat="Binary") for k in numbers]
    groups = np.unique(lines.kin).tolist()
    kin = {g: problem.add_variable(f"w_{g}", cat="Binary") for g in groups} if len(groups) > 1 else {}
    least_data = float(lines.data_usd.min())
    data = problem.add_variable("e", lowBound=least_data)
    problem.setObjective(_both(used, lines.fixed_usd, share, lines.slope_usd) + data)
    problem.addConstraint(pulp.lpSum(share) == 1, "work")
    problem.addConstraint(pulp.lpSum(used) <= lines.phases, "phases")
    if kin:
        problem.addConstraint(pulp.lpSum(kin.values()) == 1, "kin")
    if np.isfinite(lines.deadline_hours):
        # Divided by the deadline, so that the solver's tolerance is relative to it.
        each = _both(used, lines.fixed_hours / lines.deadline_hours, share, lines.slope_hours / lines.deadline_hours)
        problem.addConstraint(each <= 1, "deadline")
    for k in numbers:
        problem.addConstraint(share[k] <= float(lines.caps[k]) * used[k], f"used_{k}")
        if kin:
            problem.addConstraint(used[k] <= kin[int(lines.kin[k])], f"kin_{k}")
        if lines.data_usd[k] > least_data:
            problem.addConstraint(data >= float(lines.data_usd[k]) * used[k], f"data_{k}")
    return problem


def _both(
    used: list[pulp.LpVariable], fixed: Floats, share: list[pulp.LpVariable], slope: Floats
) -> pulp.LpAffineExpression:
    return pulp.lpSum_vars_coefs(zip((*used, *share), (*fixed.tolist(), *slope.tolist()), strict=True))
