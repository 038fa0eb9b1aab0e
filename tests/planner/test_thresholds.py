"""What a plan says of its own limits holds when it is tried: deadlines, budgets and prices, to the last digit."""

import random
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.single.choice_model import choose_one
from tests.planner.small_catalogues import random_columns, random_job
from tests.planner.spot_settings import replaced_at_once

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
SEEDS = range(20)


def planned(seed: int) -> tuple[TrainingJob, Columns, Planned]:
    """The first case drawn from this seed that has a plan."""
    draw = random.Random(seed)
    while True:
        columns, job = random_columns(draw), random_job(draw)
        outcome = plan(job, columns, settings=SETTINGS)
        if isinstance(outcome, Planned):
            return job, columns, outcome


def shown(hours: float) -> float:
    """A time as answers show it."""
    return float(f"{hours:.9g}")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_deadline_of_the_next_step_gives_what_the_step_promised(seed: int) -> None:
    job, columns, outcome = planned(seed)
    for step, sign in ((outcome.sensitivity.next_cheaper, -1), (outcome.sensitivity.next_faster, 1)):
        if step is None or (sign < 0 and job.deadline_hours is None):
            continue
        deadline, difference = step
        assert deadline == shown(deadline)
        stepped = plan(replace(job, deadline_hours=deadline), columns, settings=SETTINGS)
        if isinstance(stepped, NoPlan):
            assert sign > 0
            assert job.budget_usd is not None
            continue
        # Steps are to the next single configuration; a plan that moves, or has a standby, may do better still.
        changes = stepped.cost.expected - outcome.cost.expected
        assert changes <= sign * difference + 3
        if len(stepped.phases) == 1:
            assert changes == pytest.approx(sign * difference, abs=3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("nudge", [0.0, -3e-10, 3e-10, -5e-9, 5e-9])
def test_a_deadline_next_to_the_time_of_the_plan_is_decided_by_comparison(seed: int, nudge: float) -> None:
    job, columns, outcome = planned(seed)
    deadline = outcome.hours.confident * (1 + nudge)
    again = plan(replace(job, deadline_hours=deadline), columns, settings=SETTINGS)
    if deadline >= outcome.hours.confident:
        assert isinstance(again, Planned)
        assert again.cost.expected == outcome.cost.expected
    elif isinstance(again, Planned):
        assert again.hours.confident <= deadline


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cost_of_a_plan_is_the_least_budget_for_it(seed: int) -> None:
    job, columns, outcome = planned(seed)
    enough = plan(replace(job, budget_usd=outcome.cost.expected / 1e6), columns, settings=SETTINGS)
    assert isinstance(enough, Planned)
    assert enough.cost.expected == outcome.cost.expected
    short = replace(job, budget_usd=(outcome.cost.expected - 1) / 1e6)
    assert isinstance(plan(short, columns, settings=SETTINGS), NoPlan)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_holds_up_to_the_price_it_names_and_no_further(seed: int) -> None:
    job, columns, outcome = planned(seed)
    offer, limit = outcome.phases[0].choice.offer, outcome.sensitivity.holds_until
    if limit is None or job.budget_usd is not None:
        return  # no other offer, or a budget that may end first

    def chosen_at(price: int) -> tuple[str, ...]:
        offers = [replace(o, usd_micros_per_hour=price) if o.key == offer.key else o for o in columns.offers]
        dearer = columns_of(f"{seed}/{price}", columns.observed_at, list(columns.instance_types), offers)
        again = plan(job, dearer, settings=SETTINGS)
        assert isinstance(again, Planned)
        # The limit is that of the cheapest plan if obtained, which refusals may put behind another choice.
        cheapest = None if again.ladder is None else again.ladder.cheapest
        return (again.phases[0].choice if cheapest is None else cheapest.choice).offer.key

    if limit > 1.01 * offer.usd_micros_per_hour:
        assert chosen_at(round(limit * 0.999)) == offer.key
    assert chosen_at(round(limit * 1.001) + 1) != offer.key


def test_the_model_refuses_a_column_that_is_late_by_less_than_the_solver_can_tell() -> None:
    cost, hours = np.array([5.0, 7.0]), np.array([100.0, 90.0])
    late_by_a_hair = choose_one(cost, hours, deadline_hours=100.0 * (1 - 3e-10))
    in_time = choose_one(cost, hours, deadline_hours=100.0)
    assert late_by_a_hair is not None
    assert in_time is not None
    assert (late_by_a_hair.chosen, in_time.chosen) == (1, 0)
