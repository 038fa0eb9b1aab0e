"""The bound: never above the optimum however early the search ends, and the same by column generation as all at once."""

import itertools
import random

import numpy as np
import pytest

from gpuplan.planner.portfolio import linear_relaxation as module
from gpuplan.planner.portfolio.lagrangian_prices import Ascent, Prices, answer_to
from gpuplan.planner.portfolio.linear_relaxation import Relaxation
from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_search import search
from gpuplan.planner.portfolio.search_progress import Progress
from gpuplan.planner.portfolio.time_indexed_model import TimeIndexed
from tests.planner.portfolio import pulp_model as whole_model
from tests.planner.portfolio.small_instances import least_cost, small_instance
from tools.benchmarks.portfolio_instances import Recipe, portfolio


class Ticking:
    """A clock that moves on by a second whenever it is looked at: time limits without any time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


@pytest.mark.slow(reason="12 cases")
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_never_exceeds_the_optimum_whenever_the_search_ends(seed: int) -> None:
    instance = small_instance(random.Random(300 + seed), jobs=4, budget=seed % 2 == 0)
    optimum = least_cost(instance)
    for limit in (1, 3, 10, 30, 80, 150, 400, 1000):
        progresses: list[Progress] = []
        result = search(instance, seed=seed, time_limit_s=limit, clock=Ticking(), report=progresses.append)
        assert violations(instance, result.plan) == []
        assert all(progress.bound_usd <= optimum + 1e-6 <= progress.objective_usd + 2e-6 for progress in progresses)
        assert result.bound_usd <= optimum + 1e-6
        assert not result.proven or result.plan.cost_usd == pytest.approx(optimum, rel=1e-5)


@pytest.mark.slow(reason="one long case")
def test_progress_never_takes_back_a_plan_or_a_bound_and_counts_the_jobs_that_run() -> None:
    instance = portfolio(Recipe(jobs=15, slots=30), 6)
    progresses: list[Progress] = []
    result = search(instance, time_limit_s=300, clock=Ticking(), report=progresses.append)
    assert all(
        a.objective_usd >= b.objective_usd and a.bound_usd <= b.bound_usd for a, b in itertools.pairwise(progresses)
    )
    assert progresses[-1].jobs_planned == int((result.plan.configuration >= 0).sum())
    assert {progress.jobs for progress in progresses} == {15}


@pytest.mark.slow(reason="one long case")
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
        result = search(instance, time_limit_s=1e6, clock=Ticking(), cancelled=cancelled)
        assert violations(instance, result.plan) == []
        assert asked < after + 20
        steps.append(sum(result.iterations.values()))
    assert steps == sorted(steps)


@pytest.mark.slow(reason="one long case")
def test_column_generation_comes_to_the_same_bound_as_all_columns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = portfolio(Recipe(jobs=25, slots=48), 3)

    def bound() -> tuple[float, float]:
        ascent = Ascent(instance, instance.columns)
        for _ in range(20):
            ascent.step(float(instance.penalty_usd.sum()))
        relaxation = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
        relaxation.solve(lambda: False)
        before = relaxation.bound_usd
        relaxation.cut(lambda: False, lambda: None)
        return before, relaxation.bound_usd

    at_once = bound()
    monkeypatch.setattr(module, "MOST_COLUMNS_AT_ONCE", 0)
    generated = bound()
    assert generated[0] == pytest.approx(at_once[0], rel=3e-4)
    assert at_once[1] > at_once[0] * 1.001
    assert generated[1] >= generated[0]
    assert generated[1] == pytest.approx(at_once[1], rel=5e-3)


@pytest.mark.slow(reason="one long case")
def test_columns_that_are_dropped_are_in_no_better_plan() -> None:
    instance = portfolio(Recipe(jobs=12, slots=24), 1)
    best = search(instance, seed=1, iterations=100).plan.cost_usd
    ascent = Ascent(instance, instance.columns)
    relaxation = Relaxation(instance, instance.columns, ascent.prices, ascent.best)
    relaxation.solve(lambda: False)
    relaxation.drop(best * 1.01, np.zeros(0, np.int64))
    assert 0 < relaxation.worth.sum() < len(instance.columns)
    optimum = relaxation.model(np.flatnonzero(relaxation.worth)).best(None, stop=lambda: False)
    assert optimum.proven
    assert optimum.bound_usd == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_model_in_changes_is_the_model_in_sums_with_a_budget_too(seed: int) -> None:
    instance = small_instance(random.Random(400 + seed), jobs=6, slots=8, budget=True)
    every, jobs = np.arange(len(instance.columns)), np.arange(instance.jobs)
    model = TimeIndexed(
        instance, instance.columns, every, jobs, left=instance.capacity, budget_left=instance.budget_usd
    )
    relaxed, best = model.relaxed(stop=lambda: False), model.best(None, stop=lambda: False)
    results = [
        whole_model.solve(
            instance,
            instance.columns,
            every,
            jobs,
            left=instance.capacity,
            budget_left=instance.budget_usd,
            time_limit_s=60.0,
            relaxed=is_relaxed,
        )
        for is_relaxed in (True, False)
    ]
    assert relaxed is not None
    assert relaxed.value_usd == pytest.approx(results[0].bound_usd, rel=1e-6)
    assert best.bound_usd == pytest.approx(results[1].bound_usd, rel=1e-5)
    prices = Prices(capacity=relaxed.capacity, budget=relaxed.budget)
    assert answer_to(instance, instance.columns, prices).bound_usd == pytest.approx(relaxed.value_usd, rel=1e-6)
