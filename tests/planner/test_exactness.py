"""The plan is the cheapest there is: against loops over every configuration, and against the unpruned model."""

import random

import numpy as np
import pytest

from planner.answer import Infeasible, Planned
from planner.optimise.single import choose_one
from planner.plan import plan
from planner.settings import PlannerSettings
from tests.planner.small_catalogues import allowed, every_configuration, random_columns, random_job

SETTINGS = PlannerSettings()


@pytest.mark.parametrize("seed", range(200))
def test_a_plan_costs_what_a_loop_over_every_offer_and_node_count_finds(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    feasible = [each for each in every_configuration(job, columns, SETTINGS) if allowed(each, job)]
    outcome = plan(job, columns, settings=SETTINGS)
    if not feasible:
        assert isinstance(outcome, Infeasible)
        return
    assert isinstance(outcome, Planned)
    assert outcome.cost.expected / 1e6 == pytest.approx(min(each.usd for each in feasible), rel=1e-9, abs=3e-6)
    assert outcome.proof.certificate.gap == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_costs_what_the_unpruned_model_over_a_medium_catalogue_proves(seed: int) -> None:
    draw = random.Random(1000 + seed)
    columns, job = random_columns(draw, types=4, offers=60), random_job(draw)
    every = every_configuration(job, columns, SETTINGS)
    proven = None
    if every:
        cost = np.array([each.usd for each in every])
        hours = np.array([each.hours_kept for each in every])
        proven = choose_one(cost, hours, deadline_hours=job.deadline_hours, budget_usd=job.budget_usd)
    outcome = plan(job, columns, settings=SETTINGS)
    if proven is None:
        assert isinstance(outcome, Infeasible)
        return
    assert isinstance(outcome, Planned)
    assert outcome.cost.expected / 1e6 == pytest.approx(proven.objective_usd, rel=1e-9, abs=3e-6)


def test_the_drawn_cases_are_neither_all_feasible_nor_all_infeasible() -> None:
    outcomes = []
    for seed in range(60):
        draw = random.Random(seed)
        columns, job = random_columns(draw), random_job(draw)
        outcomes.append(isinstance(plan(job, columns, settings=SETTINGS), Planned))
    assert 10 <= sum(outcomes) <= 55
