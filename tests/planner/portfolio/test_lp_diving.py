"""Diving: a plan from the linear relaxation, a few jobs at a time."""

import random

import numpy as np
import pytest

from gpuplan.planner.portfolio import portfolio_search as searching
from gpuplan.planner.portfolio.lagrangian_prices import Ascent
from gpuplan.planner.portfolio.linear_relaxation import Relaxation
from gpuplan.planner.portfolio.lp_diving import dive
from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_instance import Instance
from gpuplan.planner.portfolio.portfolio_search import search
from gpuplan.planner.portfolio.search_progress import Progress, Stage
from gpuplan.planner.portfolio.timetable import Timetable, fill
from tests.planner.portfolio.small_instances import least_cost, small_instance
from tools.benchmarks.portfolio_instances import Recipe, portfolio


def never() -> bool:
    return False


def relaxed(instance: Instance) -> Relaxation:
    ascent = Ascent(instance, instance.columns)
    relaxation = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
    relaxation.solve(never)
    return relaxation


@pytest.mark.slow(reason="4 cases")
@pytest.mark.parametrize("budget", [False, True])
@pytest.mark.parametrize("last", [0, 2])
def test_a_dive_keeps_every_rule_and_costs_no_less_than_the_optimum(
    budget: bool, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuplan.planner.portfolio.lp_diving.LAST", last)
    for seed in range(4):
        instance = small_instance(random.Random(40 + seed), jobs=5, budget=budget)
        relaxation, table = relaxed(instance), Timetable(instance, instance.columns)
        dive(instance, table, relaxation.answered, relaxation.x, never)
        assert violations(instance, table.plan()) == []
        assert table.plan().cost_usd >= least_cost(instance) - 1e-6


@pytest.mark.slow(reason="one long case")
def test_a_dive_is_cheaper_than_placing_one_job_after_the_other_at_the_same_prices() -> None:
    for seed in range(2):
        instance = portfolio(Recipe(jobs=80, slots=36), seed)
        relaxation = relaxed(instance)
        dived, greedy = (Timetable(instance, instance.columns) for _ in range(2))
        assert dive(instance, dived, relaxation.answered, relaxation.x, never) > 1
        fill(greedy, np.arange(instance.jobs), relaxation.answered.reduced_usd)
        assert dived.cost_usd < greedy.cost_usd


@pytest.mark.slow(reason="one long case")
def test_a_dive_that_is_stopped_or_knows_no_solution_still_places_jobs() -> None:
    instance = portfolio(Recipe(jobs=60, slots=48), 2)
    relaxation = relaxed(instance)
    for x, stop in ((relaxation.x, lambda: True), (np.zeros_like(relaxation.x), never)):
        table = Timetable(instance, instance.columns)
        dive(instance, table, relaxation.answered, x, stop)
        assert violations(instance, table.plan()) == []
        assert (table.column >= 0).sum() > instance.jobs / 2


def test_a_search_whose_model_is_too_large_dives_and_a_smaller_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small_instance(random.Random(3), jobs=5)
    monkeypatch.setattr("gpuplan.planner.portfolio.lp_diving.LAST", 0)
    assert search(instance, iterations=5).iterations["dive"] == 0
    monkeypatch.setattr(searching, "MOST_COLUMNS_WHOLE", 0)
    monkeypatch.setattr(searching, "PROVEN", -1.0)
    progresses: list[Progress] = []
    result = search(instance, iterations=50, report=progresses.append)
    assert result.iterations["dive"] > 0
    assert sum(progress.stage is Stage.DIVE for progress in progresses) == result.iterations["dive"] + 1
    assert violations(instance, result.plan) == []
