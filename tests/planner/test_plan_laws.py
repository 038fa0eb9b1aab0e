"""Laws that every plan obeys, whatever the catalogue: more freedom never costs more, order and copies never matter."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import OBSERVED, random_columns, random_job, random_offers

SETTINGS = PlannerSettings(least_saving_of_a_move_percent=0.0)
SEEDS = st.integers(0, 10**6)
few = settings(max_examples=40, deadline=None)


def cost(outcome: Planned | NoPlan) -> float:
    return least_cost(outcome) if isinstance(outcome, Planned) else float("inf")


@few
@given(SEEDS, st.floats(1.0, 20.0))
def test_a_later_deadline_never_costs_more(seed: int, factor: float) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), replace(random_job(draw), deadline_hours=draw.uniform(2, 300))
    later = replace(job, deadline_hours=(job.deadline_hours or 1.0) * factor)
    assert cost(plan(later, columns, settings=SETTINGS)) <= cost(plan(job, columns, settings=SETTINGS))


@few
@given(SEEDS, st.floats(1.0, 20.0))
def test_a_larger_budget_never_costs_more(seed: int, factor: float) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), replace(random_job(draw), budget_usd=draw.uniform(5, 5000))
    richer = replace(job, budget_usd=(job.budget_usd or 1.0) * factor)
    assert cost(plan(richer, columns, settings=SETTINGS)) <= cost(plan(job, columns, settings=SETTINGS))


@few
@given(SEEDS)
def test_one_more_offer_never_costs_more(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    added = random_offers(draw, list(columns.instance_types), 1)
    others = [offer for offer in columns.offers if offer.key != added[0].key]
    fewer = columns_of("fewer", OBSERVED, columns.instance_types, others)
    whole = columns_of("whole", OBSERVED, columns.instance_types, others + added)
    assert cost(plan(job, whole, settings=SETTINGS)) <= cost(plan(job, fewer, settings=SETTINGS))


@few
@given(SEEDS, st.floats(1.0, 5.0))
def test_a_dearer_offer_never_makes_the_plan_cheaper(seed: int, factor: float) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    raised = list(columns.offers)
    at = draw.randrange(len(raised))
    raised[at] = replace(raised[at], usd_micros_per_hour=round(raised[at].usd_micros_per_hour * factor))
    dearer = columns_of("dearer", OBSERVED, columns.instance_types, raised)
    assert cost(plan(job, dearer, settings=SETTINGS)) >= cost(plan(job, columns, settings=SETTINGS))


@few
@given(SEEDS)
def test_the_order_of_offers_and_types_changes_nothing(seed: int) -> None:
    draw = random.Random(seed)
    columns, job = random_columns(draw), random_job(draw)
    types, offers = list(columns.instance_types), list(columns.offers)
    draw.shuffle(types)
    draw.shuffle(offers)
    shuffled = columns_of("drawn", OBSERVED, types, offers)
    assert _but_time(plan(job, shuffled, settings=SETTINGS)) == _but_time(plan(job, columns, settings=SETTINGS))


def _but_time(outcome: Planned | NoPlan) -> Planned | NoPlan:
    if isinstance(outcome, NoPlan):
        return outcome
    timeless = replace(outcome.proof.certificate, milliseconds=0.0)
    return replace(outcome, proof=replace(outcome.proof, certificate=timeless))


@few
@given(SEEDS)
def test_every_relaxation_of_an_infeasible_job_makes_it_feasible_at_no_more_than_its_cost(seed: int) -> None:
    draw = random.Random(seed)
    columns = random_columns(draw)
    job = replace(random_job(draw), deadline_hours=10 ** draw.uniform(-1, 1.5), budget_usd=10 ** draw.uniform(0, 2.5))
    outcome = plan(job, columns, settings=SETTINGS)
    if isinstance(outcome, Planned):
        return
    for relaxation in outcome.relaxations:
        relaxed = job
        for requirement in relaxation.requirements:
            match requirement:
                case "deadline":
                    relaxed = replace(relaxed, deadline_hours=relaxation.choice.hours.confident * (1 + 1e-9))
                case "budget_usd":
                    relaxed = replace(relaxed, budget_usd=relaxation.choice.cost.expected / 1e6 + 1e-5)
                case "constraints.max_nodes":
                    constraints = replace(relaxed.constraints, max_nodes=relaxation.choice.nodes)
                    relaxed = replace(relaxed, constraints=constraints)
                case "constraints.price_kinds":
                    kinds = (*relaxed.constraints.price_kinds, relaxation.choice.offer.price_kind)
                    relaxed = replace(relaxed, constraints=replace(relaxed.constraints, price_kinds=kinds))
                case _:
                    raise AssertionError(requirement)
        again = plan(relaxed, columns, settings=SETTINGS)
        assert isinstance(again, Planned), relaxation
        assert again.cost.expected <= relaxation.choice.cost.expected + 3


@few
@given(SEEDS)
def test_a_minimal_conflict_loses_its_force_when_any_of_its_requirements_goes(seed: int) -> None:
    draw = random.Random(seed)
    columns = random_columns(draw)
    job = replace(random_job(draw), deadline_hours=10 ** draw.uniform(-1, 1), budget_usd=10 ** draw.uniform(0, 2))
    outcome = plan(job, columns, settings=SETTINGS)
    if isinstance(outcome, Planned):
        return
    for names in outcome.conflicts:
        for other in outcome.conflicts:
            assert names == other or not set(names) < set(other)
    only_time_and_money = [names for names in outcome.conflicts if set(names) <= {"deadline", "budget_usd"}]
    for names in only_time_and_money:
        for name in names:
            freed = replace(job, deadline_hours=None) if name == "deadline" else replace(job, budget_usd=None)
            again = plan(freed, columns, settings=SETTINGS)
            assert isinstance(again, Planned) or names not in again.conflicts
