"""Carbon and time as objectives, and carbon as a cap: against loops over every configuration."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.model.wire import wire
from gpuplan.planner.serialization.plan_document import answer_body
from gpuplan.planner.strategies.strategy_choice import plans_one_configuration
from tests.planner.explain.by_hand import SETTINGS, Weighed, drawn, free, planned, same, weighed
from tests.planner.small_catalogues import allowed

SEEDS = range(24)


def within(job: TrainingJob, every: list[Weighed]) -> list[Weighed]:
    return [weighed for weighed in every if allowed(weighed.priced, job)]


@pytest.mark.slow(reason="24 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_carbon_is_what_a_loop_finds_and_the_cheapest_of_it(seed: int) -> None:
    job, columns = drawn(seed)
    known = [
        (configuration.kg, configuration.priced.usd)
        for configuration in within(job, weighed(job, columns))
        if configuration.kg is not None
    ]
    outcome = planned(replace(job, objective="carbon"), columns)
    if not known:
        assert isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, Planned)
    least = min(kg for kg, _ in known)
    cheapest = min(usd for kg, usd in known if kg <= least + 1e-6)
    kg = outcome.phases[0].carbon_kg
    assert kg is not None
    assert same(kg, least)
    assert outcome.cost.expected / 1e6 <= cheapest * (1 + 1e-9) + 3e-6
    proof = outcome.proof.certificate
    assert (proof.of, proof.gap) == ("carbon", 0.0)
    assert proof.objective == pytest.approx(least, rel=1e-6, abs=2e-6)
    assert proof.bound == proof.objective
    assert proof.objective_usd == pytest.approx(outcome.cost.expected / 1e6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_time_is_what_a_loop_finds(seed: int) -> None:
    job, columns = drawn(seed)
    feasible = within(job, weighed(job, columns))
    outcome = planned(replace(job, objective="time"), columns)
    if not feasible:
        assert isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, Planned)
    assert same(outcome.hours.confident, min(configuration.priced.hours_at_confidence for configuration in feasible))
    proof = outcome.proof.certificate
    assert proof.of == "time"
    assert proof.objective == pytest.approx(outcome.hours.confident, abs=1e-6)


@pytest.mark.slow(reason="24 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_cheapest_under_a_carbon_budget_is_what_a_loop_finds(seed: int) -> None:
    job, columns = drawn(seed)
    every = within(job, weighed(job, columns))
    amounts = sorted(configuration.kg for configuration in every if configuration.kg is not None)
    cap = float(np.quantile(amounts, 0.3)) if amounts else 1.0
    capped = replace(job, constraints=replace(job.constraints, carbon_budget_kg=cap))
    outcome = planned(capped, columns)
    feasible = [
        configuration
        for configuration in every
        if configuration.kg is not None and configuration.kg <= cap * (1 + 1e-9)
    ]
    if not feasible:
        assert isinstance(outcome, NoPlan)
        return
    assert isinstance(outcome, Planned)
    assert same(outcome.cost.expected / 1e6, min(configuration.priced.usd for configuration in feasible))
    assert outcome.phases[0].carbon_kg is not None


@pytest.mark.parametrize("seed", range(10))
def test_the_least_needed_carbon_budget_is_told_and_would_do(seed: int) -> None:
    job, columns = drawn(seed)
    strict = replace(job, constraints=replace(job.constraints, carbon_budget_kg=1e-6))
    outcome = planned(strict, columns)
    assert isinstance(outcome, NoPlan)
    assert any("constraints.carbon_budget_kg" in conflict for conflict in outcome.conflicts)
    alone = [
        relaxation for relaxation in outcome.relaxations if relaxation.requirements == ("constraints.carbon_budget_kg",)
    ]
    known = [configuration.kg for configuration in within(job, weighed(job, columns)) if configuration.kg is not None]
    assert bool(alone) == isinstance(planned(job, columns), Planned)
    if known:
        assert alone[0].carbon_kg is not None
        assert same(alone[0].carbon_kg, min(known))
        cap = float(alone[0].needed[0].removesuffix(" kg"))
        again = planned(replace(job, constraints=replace(job.constraints, carbon_budget_kg=cap)), columns)
        assert isinstance(again, Planned)


def test_machines_of_unknown_carbon_are_left_out_with_a_reason_and_named() -> None:
    seen = 0
    for seed in SEEDS:
        job, columns = drawn(seed)
        unknown = [weighed for weighed in weighed(job, columns) if weighed.kg is None]
        outcome = planned(replace(job, objective="carbon"), columns)
        assert isinstance(outcome, Planned | NoPlan)
        rejected = outcome.proof.rejected if isinstance(outcome, Planned) else outcome.rejected
        reasons = [count for reason, count in rejected.items() if reason.startswith("carbon unknown")]
        if reasons and isinstance(outcome, Planned):
            seen += 1
            assert unknown
            places = {
                f"{configuration.priced.offer.provider}:{configuration.priced.offer.region}"
                for configuration in unknown
            }
            warnings = " ".join(outcome.warnings)
            assert "carbon unknown" in warnings
            assert any(place in warnings for place in places)
    assert seen > 1


@pytest.mark.parametrize("seed", range(12))
def test_every_offer_is_accounted_for_under_a_carbon_budget(seed: int) -> None:
    job, columns = drawn(seed)
    capped = replace(job, constraints=replace(job.constraints, carbon_budget_kg=5.0))
    outcome = planned(capped, columns)
    if isinstance(outcome, Planned):
        from gpuplan.planner.candidates.candidate_set import candidates
        from gpuplan.planner.candidates.markets import markets
        from gpuplan.planner.candidates.planning_problem import Question
        from gpuplan.planner.workload import work_of

        assert capped.start is not None
        work = work_of(capped.workload, capped.training)
        market = markets(columns, (), SETTINGS, capped.start)
        result = candidates(Question(job=capped, work=work, markets=market, start=capped.start, settings=SETTINGS))
        assert sum(result.rejected.values()) + len(np.unique(result.table.place)) == len(columns)


def test_the_certificate_names_its_objective_in_its_own_unit() -> None:
    shown = {}
    for objective in ("cost", "time", "carbon"):
        job, columns = free(3)
        outcome = planned(replace(job, objective=objective), columns)
        assert isinstance(outcome, Planned)
        shown[objective] = wire(answer_body(outcome, {}, version="test"))["certificate"]
    assert [shown[objective]["objective"]["unit"] for objective in shown] == ["USD", "hours", "kg CO2e"]
    assert float(shown["cost"]["objective_usd"]) == pytest.approx(shown["cost"]["objective"]["value"])
    assert all(answer["objective"]["value"] == answer["objective"]["bound"] for answer in shown.values())
    assert float(shown["time"]["objective_usd"]) >= float(shown["cost"]["objective_usd"])


def test_a_plan_for_carbon_says_what_it_counts_and_that_it_keeps_to_one_configuration() -> None:
    job, columns = free(3)
    carbon = replace(job, objective="carbon")
    outcome = planned(carbon, columns)
    assert isinstance(outcome, Planned)
    assert plans_one_configuration(carbon)
    assert len(outcome.phases) == 1
    assert any("one configuration" in assumption for assumption in outcome.assumptions)
    assert any("design power" in assumption for assumption in outcome.assumptions)
