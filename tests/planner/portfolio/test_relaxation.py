"""The bound: never above the optimum however early the search ends, and the same by column generation as all at once."""

import itertools
import random

import numpy as np
import pytest

from benchmarks.portfolio_instances import Recipe, portfolio
from planner.optimise import portfolio as whole_model
from planner.optimise.time_indexed import TimeIndexed
from planner.portfolio import relaxation as module
from planner.portfolio.check import violations
from planner.portfolio.prices import Ascent, Prices, answer_to
from planner.portfolio.progress import Progress
from planner.portfolio.relaxation import Relaxation
from planner.portfolio.search import search
from tests.planner.portfolio.small_instances import least_cost, small_instance


class Ticking:
    """A clock that moves on by a second whenever it is looked at: time limits without any time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_never_exceeds_the_optimum_whenever_the_search_ends(seed: int) -> None:
    instance = small_instance(random.Random(300 + seed), jobs=4, budget=seed % 2 == 0)
    optimum = least_cost(instance)
    for limit in (1, 3, 10, 30, 80, 150, 400, 1000):
        told: list[Progress] = []
        found = search(instance, seed=seed, time_limit_s=limit, clock=Ticking(), report=told.append)
        assert violations(instance, found.plan) == []
        assert all(each.bound_usd <= optimum + 1e-6 <= each.objective_usd + 2e-6 for each in told)
        assert found.bound_usd <= optimum + 1e-6
        assert not found.proven or found.plan.cost_usd == pytest.approx(optimum, rel=1e-5)


def test_progress_never_takes_back_a_plan_or_a_bound_and_counts_the_jobs_that_run() -> None:
    instance = portfolio(Recipe(jobs=15, slots=30), 6)
    told: list[Progress] = []
    found = search(instance, time_limit_s=300, clock=Ticking(), report=told.append)
    assert all(a.objective_usd >= b.objective_usd and a.bound_usd <= b.bound_usd for a, b in itertools.pairwise(told))
    assert told[-1].jobs_planned == int((found.plan.configuration >= 0).sum())
    assert {each.jobs for each in told} == {15}


def test_a_cancelled_search_ends_with_the_plan_it_has_wherever_it_is() -> None:
    instance = portfolio(Recipe(jobs=30, slots=48), 7)
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    steps = []
    for after in (0, 5, 50, 2000):
        asked = 0
        found = search(instance, time_limit_s=1e6, clock=Ticking(), cancelled=cancelled)
        assert violations(instance, found.plan) == []
        assert asked < after + 20
        steps.append(sum(found.iterations.values()))
    assert steps == sorted(steps)


def test_column_generation_comes_to_the_same_bound_as_all_columns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = portfolio(Recipe(jobs=25, slots=48), 3)

    def bound() -> tuple[float, float]:
        ascent = Ascent(instance, instance.columns)
        for _ in range(20):
            ascent.step(float(instance.penalty_usd.sum()))
        found = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
        found.solve(lambda: False)
        before = found.bound_usd
        found.cut(lambda: False, lambda: None)
        return before, found.bound_usd

    at_once = bound()
    monkeypatch.setattr(module, "MOST_COLUMNS_AT_ONCE", 0)
    generated = bound()
    assert generated[0] == pytest.approx(at_once[0], rel=3e-4)
    assert at_once[1] > at_once[0] * 1.001
    assert generated[1] >= generated[0]
    assert generated[1] == pytest.approx(at_once[1], rel=5e-3)


def test_columns_that_are_dropped_are_in_no_better_plan() -> None:
    instance = portfolio(Recipe(jobs=12, slots=24), 1)
    best = search(instance, seed=1, iterations=100).plan.cost_usd
    ascent = Ascent(instance, instance.columns)
    found = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
    found.solve(lambda: False)
    found.drop(best * 1.01, np.zeros(0, np.int64))
    assert 0 < found.worth.sum() < len(instance.columns)
    kept = found.model(np.flatnonzero(found.worth)).best(None, stop=lambda: False)
    assert kept.proven
    assert kept.bound_usd == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_model_in_changes_is_the_model_in_sums_with_a_budget_too(seed: int) -> None:
    instance = small_instance(random.Random(400 + seed), jobs=6, slots=8, budget=True)
    every, jobs = np.arange(len(instance.columns)), np.arange(instance.jobs)
    model = TimeIndexed(
        instance, instance.columns, every, jobs, left=instance.capacity, budget_left=instance.budget_usd
    )
    relaxed, best = model.relaxed(stop=lambda: False), model.best(None, stop=lambda: False)
    said = [
        whole_model.solve(
            instance,
            instance.columns,
            every,
            jobs,
            left=instance.capacity,
            budget_left=instance.budget_usd,
            time_limit_s=60.0,
            relaxed=each,
        )
        for each in (True, False)
    ]
    assert relaxed is not None
    assert relaxed.value_usd == pytest.approx(said[0].bound_usd, rel=1e-6)
    assert best.bound_usd == pytest.approx(said[1].bound_usd, rel=1e-5)
    prices = Prices(capacity=relaxed.capacity, budget=relaxed.budget)
    assert answer_to(instance, instance.columns, prices).bound_usd == pytest.approx(relaxed.value_usd, rel=1e-6)
