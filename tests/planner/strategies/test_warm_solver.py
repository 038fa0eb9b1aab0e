"""A kept solver: each model is solved as if the solver were new, whatever became of the one before."""

import random
import threading
from typing import Literal

import pulp
import pytest

from gpuplan.catalog.runtime.time_limit import OutOfTime, at_most
from gpuplan.planner.strategies.warm_solver import NotProvenError, Optimum, WarmSolver


class Highs(WarmSolver):
    of_thread = threading.local()


def optimum(least: float, *, most: float = 10.0, whole: bool = False) -> Optimum | None:
    """The least x + 2 y of x + y >= least, x <= most / 2, y <= most."""
    problem = pulp.LpProblem("two", pulp.LpMinimize)
    kind: Literal["Integer", "Continuous"] = "Integer" if whole else "Continuous"
    x, y = problem.add_variable("x", 0, most / 2, kind), problem.add_variable("y", 0, most, kind)
    problem.setObjective(x + 2 * y)
    problem.addConstraint(x + y >= least, "least")
    return Highs(mip_rel_gap=0.0).optimum(problem)


def market_split() -> pulp.LpProblem:
    """Equations of whole numbers that no solver gets through soon (Cornuéjols and Dawande, INFORMS J. Comput. 1999)."""
    draw = random.Random(1)
    problem = pulp.LpProblem("market_split", pulp.LpMinimize)
    x = [problem.add_variable(f"x_{k}", cat="Binary") for k in range(50)]
    slack = [problem.add_variable(f"s_{i}", 0) for i in range(12)]
    problem.setObjective(pulp.lpSum(slack))
    for i in range(6):
        weights = [draw.randrange(100) for _ in x]
        split = pulp.lpSum_vars_coefs(zip(x, map(float, weights), strict=True)) + slack[2 * i] - slack[2 * i + 1]
        problem.addConstraint(split == sum(weights) // 2, f"split_{i}")
    return problem


def test_values_and_multipliers_come_in_the_order_of_the_model() -> None:
    assert optimum(7.0) == Optimum(9.0, 9.0, [5.0, 2.0], [2.0])


def test_a_model_of_whole_numbers_has_the_bound_that_was_proven() -> None:
    solution = optimum(6.5, whole=True)
    assert solution is not None
    assert (solution.objective, solution.bound, solution.values) == (9.0, 9.0, [5.0, 2.0])


def test_a_model_that_nothing_keeps_has_no_optimum_and_the_next_one_has_its_own() -> None:
    assert optimum(16.0) is None
    assert optimum(16.0, whole=True) is None
    assert optimum(7.0) == Optimum(9.0, 9.0, [5.0, 2.0], [2.0])


def test_a_model_without_an_end_is_a_defect() -> None:
    problem = pulp.LpProblem("endless", pulp.LpMinimize)
    problem.setObjective(-problem.add_variable("x", 0))
    problem.addConstraint(problem.add_variable("y", 0) >= 1, "other")
    with pytest.raises(NotProvenError, match="Unbounded"):
        Highs(mip_rel_gap=0.0).optimum(problem)


def test_a_model_that_takes_too_long_ends_in_time_and_the_next_one_has_all_the_time_it_takes() -> None:
    with pytest.raises(OutOfTime), at_most(0.3):
        Highs(mip_rel_gap=0.0).optimum(market_split())
    assert optimum(7.0) == Optimum(9.0, 9.0, [5.0, 2.0], [2.0])
