"""How many machines to own and to commit to under a load that comes and goes: capacity expansion as a MILP.

Sets
    l  sources of capacity: a machine to buy, a node under a term; each lasts for some periods
    j  jobs            b  blocks of time, each in one period
Data
    F_l    USD of one unit for as long as it lasts, used or not
    t_lj   machine-hours that a run of j takes on l (inf: it cannot)
    v_lj   USD of that run on l besides, c_j USD of renting for it (inf: nothing to rent)
    w_b    hours of the block, discounted;   d_bj  runs an hour that start in it
    a_kl   what a unit of l takes of limit k, A_k what there is (slots, watts, budget); u_l the most units
Variables
    x_l >= 0 whole       units of l
    y_blj >= 0           runs an hour of j on l in block b; what is left of d_bj is rented
Model
    minimise    sum_l F_l x_l + sum_b w_b sum_j [ c_j d_bj - sum_l (c_j - v_lj) y_blj ]
    runs:       sum_l y_blj <= d_bj            (= where j cannot be rented)
    capacity:   sum_j t_lj y_blj <= x_l        for the blocks that l lasts for
    limit:      sum_l a_kl x_l <= A_k

Two exact reductions come first (`useful`): a source that saves less than F_l even if it works in every hour on the job
that it saves most for is never worth having, nor is one that another of its kind beats in F, every t, v and a, for as
long. Only y with v_lj < c_j are made. The rented cost of everything stands outside the model as a constant. With one job on
machines that are alike it is the screening curve. Rows are in units of whole demand (runs divided by d_bj, so that y is
a share), which keeps HiGHS' absolute tolerances relative.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from planner.optimise.single import NotProvenError, highs_version

Floats = NDArray[np.float64]

#: USD of the whole horizon within which two plans are the same.
RELATIVE_GAP = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expansion:
    """The data of the model. Shapes: sources L, jobs J, blocks B, limits K.

    `fixed_usd`, `most_units` (inf: any) [L]; `machine_hours`, `running_usd` [L, J]; `rent_usd` [J]; `hours` [B];
    `runs_per_hour` [B, J]; `lasts` [L, B]; `uses` [K, L]; `available` [K].
    """

    fixed_usd: Floats
    most_units: Floats
    machine_hours: Floats
    running_usd: Floats
    rent_usd: Floats
    hours: Floats
    runs_per_hour: Floats
    lasts: NDArray[np.bool_]
    uses: Floats
    available: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expanded:
    """`units` [L]; `share` [B, L, J], the part of each block's runs that each source does; cost, bound and proof."""

    units: NDArray[np.int64]
    share: Floats
    objective_usd: float
    bound_usd: float
    gap: float
    variables: int
    solver: str


def useful(given: Expansion) -> NDArray[np.bool_]:
    """[L]: sources that may be worth having; without the others the least cost is the same.

    A machine-hour of l saves at most max_j (c_j - v_lj) / t_lj. Where some job cannot be rented nothing bounds it.
    """
    wanted = (given.runs_per_hour > 0).any(axis=0)
    able = np.isfinite(given.machine_hours) & wanted[None, :]
    with np.errstate(invalid="ignore"):
        saved = np.where(able, (given.rent_usd[None, :] - given.running_usd) / given.machine_hours, 0.0)
    most = saved.max(axis=1, initial=0.0) * (given.lasts @ given.hours)
    kept = (most > given.fixed_usd) & (given.most_units > 0)
    for each in np.flatnonzero(kept).tolist():
        kept[each] = False
        kept[each] = not _beaten(given, each, np.flatnonzero(kept))
    return kept


def _beaten(given: Expansion, source: int, rivals: NDArray[np.int64]) -> bool:
    """Whether one of the rivals, of which any number can be had, is no worse than `source` in everything."""
    no_worse = (
        np.isinf(given.most_units[rivals])
        & (given.fixed_usd[rivals] <= given.fixed_usd[source])
        & (given.machine_hours[rivals] <= given.machine_hours[source]).all(axis=1)
        & (given.running_usd[rivals] <= given.running_usd[source]).all(axis=1)
        & (given.uses[:, rivals] <= given.uses[:, [source]]).all(axis=0)
        & (given.lasts[rivals] >= given.lasts[source]).all(axis=1)
    )
    return bool(no_worse.any())


def expand(
    given: Expansion,
    *,
    reduce: bool = True,
    gap: float = RELATIVE_GAP,
    nodes: int | None = None,
    time_limit_s: float = 60.0,
) -> Expanded | None:
    """The cheapest units of every source, proven to within `gap` or as far as `nodes` of branch and bound and the time
    limit allow.

    `reduce` may be switched off to check the reductions. None if jobs that cannot be rented do not fit into the limits. Raises `NotProvenError` if HiGHS ends otherwise
    without a solution.
    """
    must = ~np.isfinite(given.rent_usd)
    rented = np.where(must, 0.0, given.rent_usd)
    constant = float(given.hours @ (given.runs_per_hour @ rented))
    kept = useful(given) if reduce else given.most_units > 0
    problem, x, y, at = _formulate(given, kept, rented)
    if not x:
        return _nothing(given, constant) if not (must & (given.runs_per_hour > 0).any(axis=0)).any() else None
    more: dict[str, Any] = {} if nodes is None else {"mip_max_nodes": nodes}
    solver = pulp.HiGHS(msg=False, threads=1, gapRel=gap, timeLimit=time_limit_s, **more)
    stats = problem.solve(solver)
    if stats.status == pulp.LpSolveStatus.Infeasible:
        return None
    if nodes is not None and not stats.has_solution:
        return expand(given, reduce=reduce, gap=gap, time_limit_s=time_limit_s)
    if not stats.has_solution or stats.objective is None:
        raise NotProvenError(f"HiGHS ended with status {stats.status.name} on a model of {len(y)} variables")
    share = np.zeros((len(given.hours), *given.machine_hours.shape))
    if y:
        b, source, job = at
        share[b, source, job] = np.clip([variable.varValue or 0.0 for variable in y], 0.0, 1.0)
    units = np.zeros(len(given.fixed_usd), np.int64)
    for each, variable in x.items():
        units[each] = round(variable.varValue or 0.0)
    objective = float(stats.objective) + constant
    bound = objective if stats.best_bound is None else min(objective, float(stats.best_bound) + constant)
    return Expanded(
        units=units,
        share=share,
        objective_usd=objective,
        bound_usd=bound,
        gap=(objective - bound) / max(abs(objective), 1e-9),
        variables=len(x) + len(y),
        solver=f"HiGHS {highs_version()} through PuLP {pulp.__version__}",
    )


def _nothing(given: Expansion, constant: float) -> Expanded:
    """Everything rented: no source is worth a variable."""
    return Expanded(
        units=np.zeros(len(given.fixed_usd), np.int64),
        share=np.zeros((len(given.hours), *given.machine_hours.shape)),
        objective_usd=constant,
        bound_usd=constant,
        gap=0.0,
        variables=0,
        solver="none needed: no machine or term can save what it costs",
    )


def variables(given: Expansion) -> int:
    """How many shares of runs the reduced model has, without making it."""
    worth = _worth(given, useful(given)).astype(np.float64)
    return round(float(((given.lasts.T.astype(np.float64) @ worth) * (given.runs_per_hour > 0)).sum()))


def _worth(given: Expansion, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[L, J]: sources that do a job for less than renting it, or at all where it cannot be rented."""
    able = np.isfinite(given.machine_hours) & kept[:, None]
    return np.asarray(able & (np.where(able, given.running_usd, np.inf) < given.rent_usd[None, :]), np.bool_)


_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _formulate(
    given: Expansion, kept: NDArray[np.bool_], rented: Floats
) -> tuple[pulp.LpProblem, dict[int, pulp.LpVariable], list[pulp.LpVariable], _Places]:
    """The model of the module's docstring: x by source, y in the order of the places (block, source, job)."""
    made = _worth(given, kept)[None, :, :] & given.lasts.T[:, :, None] & (given.runs_per_hour > 0)[:, None, :]
    b, source, job = np.nonzero(made)
    demand = given.runs_per_hour[b, job]
    problem = pulp.LpProblem("own_commit_or_rent", pulp.LpMinimize)
    machines = given.machine_hours[source, job] * demand
    per_block = np.zeros((len(given.hours), len(given.fixed_usd)))
    np.add.at(per_block, (b, source), machines)
    peak = np.minimum(np.ceil(per_block.max(axis=0, initial=0.0) - 1e-9), given.most_units)
    x = {
        int(each): problem.add_variable(f"units_{each}", 0, float(peak[each]), "Integer") for each in np.unique(source)
    }
    y = [problem.add_variable(f"share_{i}", 0, None) for i in range(len(b))]
    worth_usd = given.hours[b] * demand * (given.running_usd[source, job] - rented[job])
    fixed = [(variable, float(given.fixed_usd[each])) for each, variable in x.items()]
    problem.setObjective(pulp.lpSum_vars_coefs([*fixed, *zip(y, worth_usd.tolist(), strict=True)]))
    _add_runs(problem, given, y, b, job)
    _add_capacity(problem, x, y, (b, source, job), machines)
    for k in range(len(given.available)):
        terms = [(variable, float(given.uses[k, each])) for each, variable in x.items() if given.uses[k, each]]
        if terms:
            there_is = float(given.available[k])
            scaled = [(variable, use / (there_is or 1.0)) for variable, use in terms]
            problem.addConstraint(pulp.lpSum_vars_coefs(scaled) <= float(there_is > 0), f"limit_{k}")
    return problem, x, y, (b, source, job)


def _add_runs(
    problem: pulp.LpProblem, given: Expansion, y: list[pulp.LpVariable], b: NDArray[np.int64], job: NDArray[np.int64]
) -> None:
    """Each block's runs of a job are done at most once, and exactly once where they cannot be rented."""
    must = ~np.isfinite(given.rent_usd)
    of: dict[tuple[int, int], list[tuple[pulp.LpVariable, float]]] = {
        (int(at), int(j)): [] for at, j in zip(*np.nonzero((given.runs_per_hour > 0) & must[None, :]), strict=True)
    }
    for variable, at, j in zip(y, b.tolist(), job.tolist(), strict=True):
        of.setdefault((at, j), []).append((variable, 1.0))
    for (at, j), terms in of.items():
        total = pulp.lpSum_vars_coefs(terms)
        problem.addConstraint(total == 1 if must[j] else total <= 1, f"runs_{at}_{j}")


def _add_capacity(
    problem: pulp.LpProblem,
    x: dict[int, pulp.LpVariable],
    y: list[pulp.LpVariable],
    places: _Places,
    machines: Floats,
) -> None:
    """Machines at work in a block are at most those there are."""
    b, source, _ = places
    of: dict[tuple[int, int], list[tuple[pulp.LpVariable, float]]] = {}
    for variable, at, each, needed in zip(y, b.tolist(), source.tolist(), machines.tolist(), strict=True):
        if needed > 0 and math.isfinite(needed):
            of.setdefault((at, each), []).append((variable, needed))
    for (at, each), terms in of.items():
        problem.addConstraint(pulp.lpSum_vars_coefs([*terms, (x[each], -1.0)]) <= 0, f"capacity_{at}_{each}")
