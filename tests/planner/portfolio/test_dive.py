"""Diving: a plan from the linear relaxation, a few jobs at a time."""

import random

import numpy as np
import pytest

from benchmarks.portfolio_instances import Recipe, portfolio
from planner.portfolio import search as searching
from planner.portfolio.check import violations
from planner.portfolio.construct import fill
from planner.portfolio.dive import dive
from planner.portfolio.instance import Instance
from planner.portfolio.prices import Ascent
from planner.portfolio.progress import Progress, Stage
from planner.portfolio.relaxation import Relaxation
from planner.portfolio.search import search
from planner.portfolio.timetable import Timetable
from tests.planner.portfolio.small_instances import least_cost, small_instance


def never() -> bool:
    return False


def relaxed(instance: Instance) -> Relaxation:
    ascent = Ascent(instance, instance.columns)
    relaxation = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
    relaxation.solve(never)
    return relaxation


@pytest.mark.parametrize("budget", [False, True])
@pytest.mark.parametrize("last", [0, 2])
def test_a_dive_keeps_every_rule_and_costs_no_less_than_the_optimum(
    budget: bool, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.portfolio.dive.LAST", last)
    for seed in range(4):
        instance = small_instance(random.Random(40 + seed), jobs=5, budget=budget)
        relaxation, table = relaxed(instance), Timetable(instance, instance.columns)
        dive(instance, table, relaxation.answered, relaxation.x, never)
        assert violations(instance, table.plan()) == []
        assert table.plan().cost_usd >= least_cost(instance) - 1e-6


def test_a_dive_is_cheaper_than_placing_one_job_after_the_other_at_the_same_prices() -> None:
    for seed in range(2):
        instance = portfolio(Recipe(jobs=80, slots=36), seed)
        relaxation = relaxed(instance)
        dived, greedy = (Timetable(instance, instance.columns) for _ in range(2))
        assert dive(instance, dived, relaxation.answered, relaxation.x, never) > 1
        fill(greedy, np.arange(instance.jobs), relaxation.answered.reduced_usd)
        assert dived.cost_usd < greedy.cost_usd


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
    monkeypatch.setattr("planner.portfolio.dive.LAST", 0)
    assert search(instance, iterations=5).iterations["dive"] == 0
    monkeypatch.setattr(searching, "MOST_COLUMNS_WHOLE", 0)
    monkeypatch.setattr(searching, "PROVEN", -1.0)
    told: list[Progress] = []
    found = search(instance, iterations=50, report=told.append)
    assert found.iterations["dive"] > 0
    assert sum(each.stage is Stage.DIVE for each in told) == found.iterations["dive"] + 1
    assert violations(instance, found.plan) == []
