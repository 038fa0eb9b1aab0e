"""The plan is the cheapest there is: against loops over every configuration, and against the unpruned model."""

import random
from fractions import Fraction

import numpy as np
import pytest

from gpuplan.catalog.model.offer import InstanceType, Offer
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import Constraints, DataSource, Explicit, TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.single.choice_model import choose_one
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import OBSERVED, START, allowed, every_configuration, random_columns, random_job
from tests.planner.spot_settings import replaced_at_once

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)


@pytest.mark.parametrize("seed", range(120))
def test_a_plan_costs_what_a_loop_over_every_offer_and_node_count_finds(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    feasible = [priced for priced in every_configuration(job, columns, SETTINGS) if allowed(priced, job)]
    outcome = plan(job, columns, settings=SETTINGS)
    if not feasible:
        assert isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, Planned)
    assert least_cost(outcome) / 1e6 == pytest.approx(
        min(configuration.usd for configuration in feasible), rel=1e-9, abs=3e-6
    )
    assert outcome.proof.certificate.gap == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_costs_what_the_unpruned_model_over_a_medium_catalogue_proves(seed: int) -> None:
    draw = random.Random(1000 + seed)
    columns, job = random_columns(draw, types=4, offers=60), random_job(draw)
    every = every_configuration(job, columns, SETTINGS)
    proven = None
    if every:
        cost = np.array([configuration.usd for configuration in every])
        hours = np.array([configuration.hours_at_confidence for configuration in every])
        proven = choose_one(cost, hours, deadline_hours=job.deadline_hours, budget_usd=job.budget_usd)
    outcome = plan(job, columns, settings=SETTINGS)
    if proven is None:
        assert isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, Planned)
    assert least_cost(outcome) / 1e6 == pytest.approx(proven.objective_usd, rel=1e-9, abs=3e-6)


#: Places of one provider that differ in what bringing data and keeping it cost.
APART = (
    "ap-northeast-1",
    "ap-south-1",
    "eu-central-1",
    "eu-west-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-2",
)


def one_machine_in_many_places(draw: random.Random) -> tuple[Columns, TrainingJob]:
    """Spot of one machine in places that are each better in something, and a job with data."""
    machine = InstanceType(
        provider="aws",
        name="only",
        accelerator="A10G",
        accelerator_count=Fraction(1),
        vcpus=8.0,
        intranode_gbs=None,
        scaleup_domain=8,
        network_gbps=None,
        clusters=False,
        source="drawn",
    )
    offers = [
        Offer(
            provider="aws",
            region=region,
            zone="",
            instance_type="only",
            price_kind="spot",
            usd_micros_per_hour=round(1e6 * draw.uniform(1.0, 1.1)),
            interruptions_per_hour=draw.choice((0.01, 0.05, 0.1, 0.2, 0.4)),
            observed_at=OBSERVED,
            source="drawn",
        )
        for region in APART
    ]
    data = DataSource(location="aws:us-east-1", dataset_gb=10 ** draw.uniform(2, 4))
    work = Explicit(total_flops=10 ** draw.uniform(18.5, 20.5), memory_gib=8, steps=1000.0)
    job = TrainingJob(name="drawn", workload=work, start=START, data=data, constraints=Constraints(max_phases=1))
    return columns_of("drawn", OBSERVED, [machine], offers), job


@pytest.mark.parametrize("seed", [*range(10), 183])
def test_an_offer_is_left_out_only_for_a_single_one_that_is_better_in_everything(seed: int) -> None:
    columns, job = one_machine_in_many_places(random.Random(seed))
    least = min(priced.usd for priced in every_configuration(job, columns, SETTINGS))
    outcome = plan(job, columns, settings=SETTINGS)
    assert isinstance(outcome, Planned)
    assert least_cost(outcome) / 1e6 == pytest.approx(least, rel=1e-9, abs=3e-6)


def test_the_drawn_cases_are_neither_all_feasible_nor_all_infeasible() -> None:
    outcomes = []
    for seed in range(60):
        draw = random.Random(seed)
        columns, job = random_columns(draw), random_job(draw)
        outcomes.append(isinstance(plan(job, columns, settings=SETTINGS), Planned))
    assert 10 <= sum(outcomes) <= 55
