"""Capacity expansion as a MILP: how many machines and commitments a fluctuating load needs.

Sets
    l  sources of capacity: a machine to buy, a node under a term, a savings plan, and existing supply (F_l = 0,
       x_l at most the existing amount); each lasts for some periods
    j  jobs            b  blocks of time, each in one period
Data
    F_l    USD of one unit over its life, used or not
    t_lj   machine-hours that a run of j takes on l (inf: it cannot); on a savings plan, USD at the plan's rates
    v_lj   other USD of that run on l; c_j USD of renting for it (inf: no offer)
    w_b    hours of the block, discounted;   d_bj  runs an hour that start in it
    a_kl   use of limit k by a unit of l; A_k the limit (slots, watts, budget); u_l the most units
Variables
    x_l >= 0             units of l: whole machines and nodes, dollars an hour of a savings plan
    y_blj >= 0           runs an hour of j on l in block b; the rest of d_bj is rented
Model
    minimise    sum_l F_l x_l + sum_b w_b sum_j [ c_j d_bj - sum_l (c_j - v_lj) y_blj ]
    runs:       sum_l y_blj <= d_bj            (= where j cannot be rented)
    capacity:   sum_j t_lj y_blj <= x_l        for the blocks that l lasts for
    limit:      sum_l a_kl x_l <= A_k

Only y with v_lj < c_j are made. The cost of renting everything is a constant outside the model. With one job on
equal machines the model is the screening curve. Rows are in units of whole demand (runs divided by d_bj, so that y is
a share), which keeps HiGHS' absolute tolerances relative.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import pulp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expansion:
    """The data of the model. Shapes: sources L, jobs J, blocks B, limits K.

    `fixed_usd`, `most_units` (inf: any), `least_units` (required), `whole` (units that cannot be divided; all
    but savings plans) [L]; `machine_hours`, `running_usd` [L, J]; `rent_usd` [J]; `hours` [B]; `runs_per_hour` [B, J];
    `lasts` [L, B]; `uses` [K, L]; `available` [K].
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
    whole: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    least_units: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Defaults: whole units, and no least number of units."""
        if not len(self.whole):
            object.__setattr__(self, "whole", np.ones(len(self.fixed_usd), np.bool_))
        if not len(self.least_units):
            object.__setattr__(self, "least_units", np.zeros(len(self.fixed_usd)))


def worth(given: Expansion, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[L, J]: sources that run a job for less than renting, or that can run a job that cannot be rented."""
    able = np.isfinite(given.machine_hours) & usable[:, None]
    return np.asarray(able & (np.where(able, given.running_usd, np.inf) < given.rent_usd[None, :]), np.bool_)


_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """The model: x by source, y in the order of the places `at` (block, source, job); rows of runs and of limits."""

    problem: pulp.LpProblem
    x: dict[int, pulp.LpVariable]
    y: list[pulp.LpVariable]
    at: _Places
    runs: dict[tuple[int, int], pulp.LpConstraint]
    limits: dict[int, pulp.LpConstraint]


def formulate(given: Expansion, usable: NDArray[np.bool_]) -> Built:
    """The model of the module's docstring with the sources `kept`."""
    rented = np.where(np.isfinite(given.rent_usd), given.rent_usd, 0.0)
    made = worth(given, usable)[None, :, :] & given.lasts.T[:, :, None] & (given.runs_per_hour > 0)[:, None, :]
    b, source, job = np.nonzero(made)
    demand = given.runs_per_hour[b, job]
    problem = pulp.LpProblem("own_commit_or_rent", pulp.LpMinimize)
    machines = given.machine_hours[source, job] * demand
    per_block = np.zeros((len(given.hours), len(given.fixed_usd)))
    np.add.at(per_block, (b, source), machines)
    most = per_block.max(axis=0, initial=0.0)
    least = np.where(usable, given.least_units, 0.0)
    peak = np.maximum(least, np.minimum(np.where(given.whole, np.ceil(most - 1e-9), most), given.most_units))
    x = {
        int(source_number): problem.add_variable(
            f"units_{source_number}",
            float(least[source_number]),
            float(peak[source_number]),
            "Integer" if given.whole[source_number] else "Continuous",
        )
        for source_number in np.union1d(source, np.flatnonzero(least))
    }
    y = [problem.add_variable(f"share_{i}", 0, None) for i in range(len(b))]
    worth_usd = given.hours[b] * demand * (given.running_usd[source, job] - rented[job])
    fixed = [(variable, float(given.fixed_usd[source_number])) for source_number, variable in x.items()]
    problem.setObjective(pulp.lpSum_vars_coefs([*fixed, *zip(y, worth_usd.tolist(), strict=True)]))
    runs = _add_runs(problem, given, y, b, job)
    _add_capacity(problem, x, y, (b, source, job), machines)
    limits = {}
    for k in range(len(given.available)):
        terms = [
            (variable, float(given.uses[k, source_number]))
            for source_number, variable in x.items()
            if given.uses[k, source_number]
        ]
        if terms:
            is_available = float(given.available[k])
            scaled = [(variable, use / (is_available or 1.0)) for variable, use in terms]
            limits[k] = problem.addConstraint(pulp.lpSum_vars_coefs(scaled) <= float(is_available > 0), f"limit_{k}")
    return Built(problem=problem, x=x, y=y, at=(b, source, job), runs=runs, limits=limits)


def _add_runs(
    problem: pulp.LpProblem, given: Expansion, y: list[pulp.LpVariable], b: NDArray[np.int64], job: NDArray[np.int64]
) -> dict[tuple[int, int], pulp.LpConstraint]:
    """A block's runs of a job are served at most once, and exactly once if the job cannot be rented."""
    must = ~np.isfinite(given.rent_usd)
    of: dict[tuple[int, int], list[tuple[pulp.LpVariable, float]]] = {
        (int(at), int(j)): [] for at, j in zip(*np.nonzero((given.runs_per_hour > 0) & must[None, :]), strict=True)
    }
    for variable, at, j in zip(y, b.tolist(), job.tolist(), strict=True):
        of.setdefault((at, j), []).append((variable, 1.0))
    rows = {}
    for (at, j), terms in of.items():
        total = pulp.lpSum_vars_coefs(terms)
        rows[at, j] = problem.addConstraint(total == 1 if must[j] else total <= 1, f"runs_{at}_{j}")
    return rows


def _add_capacity(
    problem: pulp.LpProblem,
    x: dict[int, pulp.LpVariable],
    y: list[pulp.LpVariable],
    places: _Places,
    machines: Floats,
) -> None:
    """Machines at work in a block do not exceed the units."""
    b, source, _ = places
    of: dict[tuple[int, int], list[tuple[pulp.LpVariable, float]]] = {}
    for variable, at, source_number, needed in zip(y, b.tolist(), source.tolist(), machines.tolist(), strict=True):
        if needed > 0 and math.isfinite(needed):
            of.setdefault((at, source_number), []).append((variable, needed))
    for (at, source_number), terms in of.items():
        problem.addConstraint(
            pulp.lpSum_vars_coefs([*terms, (x[source_number], -1.0)]) <= 0, f"capacity_{at}_{source_number}"
        )
