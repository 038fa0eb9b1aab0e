"""What is said to let a job in does let it in, and a little less of it does not."""

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, Instance, Plan
from gpuplan.planner.portfolio.portfolio_plan import WayIn, ways_in
from gpuplan.planner.portfolio.portfolio_search import search
from tests.planner.portfolio.small_instances import least_cost, small_instance


def granted(instance: Instance, job: int, way: WayIn, amount: float) -> Instance:
    """The portfolio after the change."""
    if way.what == "pool":
        capacity = instance.capacity.copy()
        capacity[way.pool] += amount
        return replace(instance, capacity=capacity)
    if way.what == "budget":
        return replace(instance, budget_usd=instance.budget_usd + amount)
    due = instance.due.copy()
    due[job] += round(amount)
    return replace(instance, due=due)


def fits(instance: Instance, plan: Plan, job: int) -> float | None:
    """The least that the job costs beside the rest of the plan as it is; None if it does not fit anywhere."""
    costs = []
    for kind in np.flatnonzero(instance.job == job).tolist():
        for start in range(int(instance.release[job]), instance.slots):
            configuration, starts = plan.configuration.copy(), plan.start.copy()
            configuration[job], starts[job] = kind, start
            cost = plan.cost_usd - float(instance.penalty_usd[job]) + float(instance.cost_usd[kind])
            if not violations(instance, Plan(configuration=configuration, start=starts, cost_usd=cost)):
                costs.append(float(instance.cost_usd[kind]))
    return min(costs, default=None)


@pytest.mark.slow(reason="2 cases")
@pytest.mark.parametrize("budget", [False, True])
def test_each_way_in_lets_the_job_in_and_a_smaller_one_does_not(budget: bool) -> None:
    tried = 0
    for seed in range(20):
        instance = small_instance(random.Random(500 + seed), jobs=4, budget=budget)
        plan = search(instance, seed=seed, iterations=40).plan
        for job in np.flatnonzero(plan.configuration == LEFT_OUT).tolist():
            for way in ways_in(instance, plan, job):
                tried += 1
                cost = fits(granted(instance, job, way, way.amount), plan, job)
                assert cost is not None
                assert cost <= way.cost_usd + 1e-9
                less = way.amount - (1.0 if way.what != "budget" else 0.01)
                if less > 0:
                    assert fits(granted(instance, job, way, less), plan, job) is None
    assert tried > 10


@pytest.mark.slow(reason="one long case")
def test_planning_anew_after_a_change_that_lets_a_dear_job_in_is_cheaper() -> None:
    better = 0
    for seed in range(30):
        instance = small_instance(random.Random(600 + seed), jobs=4)
        plan = search(instance, seed=seed, iterations=40).plan
        for job in np.flatnonzero(plan.configuration == LEFT_OUT).tolist():
            for way in ways_in(instance, plan, job):
                if way.cost_usd < float(instance.penalty_usd[job]) - 1e-6:
                    after = least_cost(granted(instance, job, way, way.amount))
                    assert after <= plan.cost_usd - (float(instance.penalty_usd[job]) - way.cost_usd) + 1e-6
                    better += 1
    assert better > 3
