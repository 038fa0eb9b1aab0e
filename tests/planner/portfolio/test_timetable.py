"""The timetable: whatever came and went, it stands as if its jobs had just been placed."""

import itertools
import random

import numpy as np
import pytest

from gpuplan.planner.portfolio.lagrangian_prices import Ascent
from gpuplan.planner.portfolio.portfolio_instance import Instance
from gpuplan.planner.portfolio.ruin_and_recreate import Improver
from gpuplan.planner.portfolio.timetable import Timetable
from tests.planner.portfolio.small_instances import small_instance
from tools.benchmarks.portfolio_instances import Recipe, portfolio


def assert_stands_as_its_jobs_say(instance: Instance, table: Timetable) -> None:
    fresh = Timetable(instance, instance.columns)
    fresh.load(table.column.copy())
    assert np.array_equal(table.start, fresh.start)
    assert np.array_equal(table.end, fresh.end)
    assert np.array_equal(table.uses, fresh.uses)
    assert np.allclose(table.left[:-1], fresh.left[:-1])
    assert table.cost_usd == pytest.approx(fresh.cost_usd)
    assert table.budget_left == pytest.approx(fresh.budget_left)


@pytest.mark.slow(reason="2 cases")
@pytest.mark.parametrize("budget", [False, True])
def test_after_any_ruin_kept_given_up_or_taken_back_the_timetable_stands_as_its_jobs_say(budget: bool) -> None:
    for seed in range(4):
        instance = small_instance(random.Random(60 + seed), jobs=6, budget=budget)
        table = Timetable(instance, instance.columns)
        improver = Improver(instance, instance.columns, table, seed)
        improver.guide(Ascent(instance, instance.columns).best)
        for number in range(60):
            improver.step(2.0 if number % 2 else 0.0)
            assert_stands_as_its_jobs_say(instance, table)


def test_without_heat_a_step_never_leaves_a_dearer_plan() -> None:
    instance = portfolio(Recipe(jobs=30, slots=24), 4)
    table = Timetable(instance, instance.columns)
    improver = Improver(instance, instance.columns, table, 1)
    improver.guide(Ascent(instance, instance.columns).best)
    costs = [table.cost_usd]
    for _ in range(200):
        improver.step(0.0)
        costs.append(table.cost_usd)
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(costs))
    assert costs[-1] < costs[0]


def test_restoring_a_state_undoes_whatever_its_jobs_did() -> None:
    instance = portfolio(Recipe(jobs=30, slots=24), 4)
    table = Timetable(instance, instance.columns)
    for job in range(15):
        free = np.flatnonzero(table.free(job))
        if len(free):
            table.place(job, table.block(job)[0] + int(free[0]))
    jobs = np.flatnonzero(table.column >= 0)[:5]
    column, cost_usd = table.column.copy(), table.cost_usd
    state = table.state(jobs)
    for job in jobs.tolist():
        table.remove(job)
    table.place(int(jobs[0]), table.block(int(jobs[0]))[0])
    table.restore(state)
    assert (table.column == column).all()
    assert table.cost_usd == cost_usd
    assert_stands_as_its_jobs_say(instance, table)
