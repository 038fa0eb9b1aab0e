"""The search finds the optimum and proves it: against trying everything, and against the whole model unpruned."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.portfolio.lagrangian_prices import Ascent, Prices, answer_to
from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_instance import Instance
from gpuplan.planner.portfolio.portfolio_search import search
from gpuplan.planner.portfolio.search_progress import Progress
from tests.planner.portfolio.pulp_model import Solved, solve
from tests.planner.portfolio.small_instances import least_cost, small_instance
from tools.benchmarks.portfolio_instances import Recipe, portfolio


@pytest.mark.slow(reason="40 cases")
@pytest.mark.parametrize("seed", range(40))
def test_a_small_portfolio_costs_what_trying_every_plan_finds(seed: int) -> None:
    instance = small_instance(random.Random(seed), jobs=4, budget=seed % 3 == 0)
    result = search(instance, seed=seed, iterations=60)
    assert result.plan.cost_usd == pytest.approx(least_cost(instance), abs=1e-6)
    assert result.proven


@pytest.mark.slow(reason="4 cases")
@pytest.mark.parametrize("seed", range(4))
def test_five_jobs_that_fight_for_two_pools_cost_what_trying_every_plan_finds(seed: int) -> None:
    instance = small_instance(random.Random(100 + seed), jobs=5, slots=5, kinds=2)
    result = search(instance, seed=seed, iterations=60)
    assert result.plan.cost_usd == pytest.approx(least_cost(instance), abs=1e-6)


@pytest.mark.slow(reason="one long case")
def test_capacity_binds_in_many_of_the_small_portfolios() -> None:
    free, shared = [], []
    for seed in range(40):
        instance = small_instance(random.Random(seed), jobs=4)
        alone = answer_to(instance, instance.columns, Prices(capacity=np.zeros_like(instance.capacity), budget=0.0))
        free.append(alone.bound_usd)
        shared.append(search(instance, iterations=60).plan.cost_usd)
    assert sum(a < b - 1e-6 for a, b in zip(free, shared, strict=True)) >= 15


@pytest.mark.slow(reason="2 cases")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_medium_portfolio_costs_what_the_whole_model_proves(seed: int) -> None:
    instance = portfolio(Recipe(jobs=12, slots=24), seed)
    whole = _whole(instance)
    result = search(instance, seed=1, iterations=400)
    assert whole.proven
    assert result.plan.cost_usd == pytest.approx(whole.bound_usd, rel=1e-5)
    assert result.bound_usd <= whole.bound_usd * (1 + 1e-6)


def _whole(instance: Instance) -> Solved:
    return solve(
        instance,
        instance.columns,
        np.arange(len(instance.columns)),
        np.arange(instance.jobs),
        left=instance.capacity,
        budget_left=instance.budget_usd,
        time_limit_s=60.0,
        relative_gap=1e-7,
    )


@pytest.mark.slow(reason="one long case")
@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_prices_give_a_bound_above_the_optimum(seed: int, budget: bool) -> None:
    draw = random.Random(seed)
    instance = small_instance(draw, jobs=2, budget=budget)
    optimum = least_cost(instance)
    any_prices = np.array([[draw.choice((0.0, draw.uniform(0, 5))) for _ in range(instance.slots)] for _ in range(3)])
    any_prices[-1] = 0.0
    prices = Prices(capacity=any_prices, budget=draw.uniform(0, 1) if budget else 0.0)
    assert answer_to(instance, instance.columns, prices).bound_usd <= optimum + 1e-6
    ascent = Ascent(instance, instance.columns)
    for _ in range(30):
        assert ascent.step(optimum).bound_usd <= optimum + 1e-6


@pytest.mark.slow(reason="one long case")
def test_prices_reach_the_linear_relaxation_and_its_duals_are_prices_too() -> None:
    instance = portfolio(Recipe(jobs=10, slots=24), 3)
    relaxed = solve(
        instance,
        instance.columns,
        np.arange(len(instance.columns)),
        np.arange(instance.jobs),
        left=instance.capacity,
        budget_left=instance.budget_usd,
        time_limit_s=60.0,
        relaxed=True,
    )
    best = search(instance, iterations=200).plan.cost_usd
    ascent = Ascent(instance, instance.columns)
    for _ in range(600):
        ascent.step(best)
    assert ascent.best.bound_usd <= relaxed.bound_usd * (1 + 1e-6)
    assert ascent.best.bound_usd == pytest.approx(relaxed.bound_usd, rel=5e-3)


@pytest.mark.slow(reason="one long case")
@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_every_plan_keeps_every_rule_and_costs_what_it_says(seed: int) -> None:
    instance = small_instance(random.Random(seed), jobs=6, slots=12, budget=seed % 2 == 0)
    result = search(instance, seed=seed, iterations=40)
    assert violations(instance, result.plan) == []
    assert result.bound_usd <= result.plan.cost_usd + 1e-9


@pytest.mark.slow(reason="one long case")
@given(st.integers(0, 10_000))
@settings(max_examples=12, deadline=None)
def test_more_capacity_a_later_deadline_or_more_budget_never_costs_more(seed: int) -> None:
    instance = small_instance(random.Random(seed), jobs=3, budget=True)
    cost = search(instance, iterations=40).plan.cost_usd
    looser = (
        replace(instance, capacity=instance.capacity + 1),
        replace(instance, due=np.minimum(instance.slots, instance.due + 2)),
        replace(instance, budget_usd=instance.budget_usd + 5),
    )
    for instance_with_more in looser:
        assert search(instance_with_more, iterations=40).plan.cost_usd <= cost + 1e-6


def test_the_same_seed_and_iterations_give_the_same_plan() -> None:
    instance = portfolio(Recipe(jobs=10, slots=24), 5)
    one, two = (search(replace(instance), seed=7, iterations=100) for _ in range(2))
    assert np.array_equal(one.plan.configuration, two.plan.configuration)
    assert np.array_equal(one.plan.start, two.plan.start)
    assert (one.bound_usd, one.iterations) == (two.bound_usd, two.iterations)


def test_progress_only_ever_gets_better_and_a_tiny_time_limit_still_gives_a_plan() -> None:
    instance = portfolio(Recipe(jobs=60, slots=48), 5)
    progresses: list[Progress] = []
    result = search(instance, time_limit_s=1e-3, report=progresses.append)
    assert violations(instance, result.plan) == []
    assert all(
        a.objective_usd >= b.objective_usd and a.bound_usd <= b.bound_usd for a, b in itertools.pairwise(progresses)
    )
    assert progresses[-1].gap == result.gap < 1


def test_the_check_names_what_is_wrong_with_a_plan() -> None:
    instance = portfolio(Recipe(jobs=10, slots=24), 5)
    plan = search(instance, iterations=50).plan
    job = int(np.flatnonzero(plan.configuration >= 0)[0])
    late = plan.start.copy()
    late[job] = instance.slots
    assert "outside its dates" in violations(instance, replace(plan, start=late))[0]
    assert "comes to" in violations(instance, replace(plan, cost_usd=plan.cost_usd - 1))[0]
    short = replace(instance, capacity=np.vstack((np.zeros_like(instance.capacity[:-1]), instance.capacity[-1:])))
    assert any("above 0" in violation for violation in violations(short, plan))
    assert "above the budget" in violations(replace(instance, budget_usd=0.01), plan)[-1]
