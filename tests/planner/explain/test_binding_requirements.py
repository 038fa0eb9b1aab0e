"""What a requirement is worth, and what a day or a thousand dollars changes: against planning anew."""

from dataclasses import replace

import pytest

from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.why.explanation import why
from tests.planner.explain.by_hand import SETTINGS, drawn, planned, same, weighed
from tests.planner.least_cost import least_cost
from tests.planner.small_catalogues import allowed

SEEDS = range(10)


def without(job: TrainingJob, name: str) -> TrainingJob:
    """The same job with one requirement given up."""
    limits = job.constraints
    freed = {
        "deadline": replace(job, deadline_hours=None),
        "budget_usd": replace(job, budget_usd=None),
        "constraints.max_nodes": replace(job, constraints=replace(limits, max_nodes=4 * limits.max_nodes)),
        "constraints.price_kinds": replace(
            job, constraints=replace(limits, price_kinds=("on_demand", "spot", "reserved_1y"))
        ),
        "constraints.provider_kinds": replace(
            job, constraints=replace(limits, provider_kinds=("cloud", "neocloud", "marketplace"))
        ),
        "constraints.carbon_budget_kg": replace(job, constraints=replace(limits, carbon_budget_kg=None)),
    }
    return freed[name]


def tight(seed: int) -> tuple[TrainingJob, Columns, Planned] | None:
    """A job whose deadline lies somewhere on its frontier, with a carbon budget in some cases; None if it has no plan."""
    job, columns = drawn(seed, offers=20)
    every = weighed(job, columns)
    hours = sorted(configuration.priced.hours_at_confidence for configuration in every)
    if not hours:
        return None
    job = replace(job, deadline_hours=hours[len(hours) // 3] * 1.01, budget_usd=None)
    amounts = sorted(
        configuration.kg
        for configuration in every
        if configuration.kg is not None and allowed(configuration.priced, job)
    )
    if seed % 2 and amounts:
        job = replace(job, constraints=replace(job.constraints, carbon_budget_kg=amounts[len(amounts) // 2]))
    plan = planned(job, columns)
    return (job, columns, plan) if isinstance(plan, Planned) else None


@pytest.mark.slow(reason="21 cases")
@pytest.mark.parametrize("objective", ["cost", "time", "carbon"])
@pytest.mark.parametrize("seed", range(7))
def test_what_giving_up_a_requirement_gains_is_what_planning_without_it_gains(seed: int, objective: str) -> None:
    case = tight(seed)
    if case is None:
        return
    job, columns = replace(case[0], objective=objective), case[1]
    explanation = why(job, columns, settings=SETTINGS)
    if not isinstance(explanation.chosen, Planned):
        return
    assert [binding.gain for binding in explanation.bindings] == sorted(
        (binding.gain for binding in explanation.bindings), reverse=True
    )
    for binding in explanation.bindings:
        again = planned(without(job, binding.requirement), columns)
        assert isinstance(again, Planned)
        gains = {
            "cost": explanation.chosen.cost.expected - least_cost(again),
            "time": round((explanation.chosen.hours.confident - again.hours.confident) * 1e6),
            "carbon": round(((explanation.chosen.phases[0].carbon_kg or 0) - (again.phases[0].carbon_kg or 0)) * 1e6),
        }
        # Node counts worth asking about differ with the most nodes allowed; all else is the same search.
        if binding.requirement == "constraints.max_nodes":
            assert binding.gain >= 0
        else:
            assert binding.gain == pytest.approx(max(0, gains[objective]), abs=3)


@pytest.mark.slow(reason="one long case")
def test_some_drawn_requirement_binds_and_some_does_not() -> None:
    gains = [
        binding.gain
        for seed in range(12)
        if (case := tight(seed)) is not None
        for binding in why(case[0], case[1], settings=SETTINGS).bindings
    ]
    assert sum(gain > 0 for gain in gains) > 5
    assert sum(gain == 0 for gain in gains) > 5


@pytest.mark.slow(reason="10 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_the_plan_at_its_deadline_and_not_a_moment_before(seed: int) -> None:
    case = tight(2 * seed)
    if case is None:
        return
    job, columns, plan = case
    steps = why(job, columns, settings=SETTINGS).steps
    assert steps is not None
    for step in (*steps.slower, *steps.faster):
        at = planned(replace(job, deadline_hours=step.deadline_hours), columns)
        assert isinstance(at, Planned)
        assert least_cost(at) - least_cost(plan) == step.extra
    if steps.slower:
        before = planned(replace(job, deadline_hours=steps.slower[0].deadline_hours * (1 - 1e-6)), columns)
        assert isinstance(before, Planned)
        assert least_cost(before) == least_cost(plan)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_more_or_less_changes_what_planning_anew_says(seed: int) -> None:
    case = tight(2 * seed)
    if case is None:
        return
    job, columns, plan = case
    steps = why(job, columns, settings=SETTINGS).steps
    assert steps is not None
    assert job.deadline_hours is not None
    for change in steps.changes:
        if change.requirement != "deadline":
            continue
        again = planned(replace(job, deadline_hours=job.deadline_hours + change.by), columns)
        if change.extra is None:
            assert not isinstance(again, Planned)
        else:
            assert isinstance(again, Planned)
            assert least_cost(again) - least_cost(plan) == change.extra


@pytest.mark.slow(reason="10 cases")
@pytest.mark.parametrize("seed", SEEDS)
def test_less_money_needs_the_deadline_of_the_fastest_run_for_it(seed: int) -> None:
    case = tight(2 * seed)
    if case is None:
        return
    job, columns, plan = case
    steps = why(job, columns, settings=SETTINGS).steps
    assert steps is not None
    less = next(change for change in steps.changes if change.requirement == "budget_usd" and change.by < 0)
    budget = (least_cost(plan) + less.by) / 1e6
    fast = [weighed.priced.hours_at_confidence for weighed in weighed(job, columns) if weighed.priced.usd <= budget]
    if less.extra is None:
        assert not fast
    else:
        assert less.deadline_hours is not None
        assert same(less.deadline_hours, min(fast)) or less.deadline_hours == pytest.approx(min(fast), rel=1e-8)


@pytest.mark.parametrize("seed", range(1, 12, 2))
def test_under_a_carbon_budget_its_dual_is_told_in_dollars_per_kg(seed: int) -> None:
    case = tight(seed)
    if case is None or case[0].constraints.carbon_budget_kg is None:
        return
    steps = why(case[0], case[1], settings=SETTINGS).steps
    assert steps is not None
    assert set(steps.duals) == {"deadline", "constraints.carbon_budget_kg"}
    assert all(worth >= 0 for worth in steps.duals.values())
