"""A plan of two phases is the cheapest there is: against loops over all offers, orders and shares that prune nothing."""

import random
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import over
from gpuplan.planner.candidates.configuration_choice import cheapest
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.planning import plan
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS
from gpuplan.planner.strategies.phased.migration_costs import moves
from gpuplan.planner.strategies.phased.phase_bounds import pair_usd
from gpuplan.planner.strategies.phased.phase_columns import (
    columns_of_table,
    concave_below_sigma,
    phase_columns,
)
from gpuplan.planner.strategies.phased.phase_pricing import priced
from gpuplan.planner.strategies.phased.phase_search import search_phases
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.strategies.strategy_choice import limit_micros
from tests.planner.strategies.phased.cases import SETTINGS, WAITING, best_schedule, booked_case, found_for, rented_case
from tests.planner.strategies.phased.plain import Column, Plain, Search, neighbours

Case = Callable[[int, PlannerSettings], tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]]
#: Seeds whose best plan has two phases, and others for which the same must not happen.
MOVES: dict[Case, tuple[int, ...]] = {
    rented_case: (8, 10, 20, 24, 37, 65, 91, 98, 106, 114, 139, 150, 164, 170, 171, 232, 237, 254),
    booked_case: (1, 16, 21, 24, 67, 123, 128, 130, 143, 156, 160, 178, 200),
}
#: Where machines are waited for: plans of two phases of which one is on spot, and others.
MOVES_WITH_WAITS: dict[Case, tuple[int, ...]] = {rented_case: (17, 20, 37, 98), booked_case: (31,)}
CASES = [(case, seed) for case, seeds in MOVES.items() for seed in sorted({*seeds, *range(0, 36, 6)})]


def again(search: Search, schedule: Schedule) -> tuple[Plain, tuple[Column, ...], tuple[int, ...]]:
    """The course priced the plain way."""
    known = {(column.key, column.nodes): column for column in search.columns}
    columns = tuple(known[phase.choice.offer.key, phase.choice.nodes] for phase in schedule.phases)
    steps = tuple(round(phase.share * STEPS) for phase in schedule.phases)
    return search.priced(columns, steps), columns, steps


@pytest.mark.slow(reason="41 cases")
@pytest.mark.parametrize(("case", "seed"), CASES)
def test_no_order_of_offers_and_no_share_on_a_grid_is_cheaper_than_the_plan(case: Case, seed: int) -> None:
    assert cheapest_has_two_phases(case, seed, SETTINGS) == (seed in MOVES[case])


@pytest.mark.slow(reason="9 cases")
@pytest.mark.parametrize(
    ("case", "seed"), [(case, seed) for case, seeds in MOVES_WITH_WAITS.items() for seed in (*seeds, 0, 2)]
)
def test_no_plan_is_cheaper_where_preempted_machines_are_away_and_nodes_are_lost_together(
    case: Case, seed: int
) -> None:
    assert cheapest_has_two_phases(case, seed, WAITING) == (seed in MOVES_WITH_WAITS[case])


def cheapest_has_two_phases(case: Case, seed: int, settings: PlannerSettings) -> bool:
    """Whether the plan has two phases, after checking that no other plan is cheaper."""
    job, columns, owned = case(seed, settings)
    search = Search(job, columns, settings, owned)
    schedule = best_schedule(found_for(job, columns, owned, settings))
    rival = search.best(pair_points=16)
    if schedule is None:
        assert rival is None
        return False
    assert len(schedule.phases) <= 2
    plain, used, steps = again(search, schedule)
    assert plain.micros == pytest.approx(schedule.cost.expected, abs=3)
    assert plain.hours == pytest.approx(schedule.hours.confident, rel=1e-9)
    assert search.allowed(plain)
    assert rival is None or schedule.cost.expected <= rival.micros + 3
    for near in neighbours(random.Random(seed), steps, 40 if len(steps) > 1 else 0):
        other = search.priced(used, near)
        assert not search.allowed(other) or schedule.cost.expected <= other.micros + 3
    return len(schedule.phases) > 1


@pytest.mark.slow(reason="10 cases")
@pytest.mark.parametrize("seed", [*MOVES[rented_case][:8], 0, 2])
def test_no_plan_is_cheaper_where_hours_are_asked_for_with_a_confidence_at_which_they_need_not_rise(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    sure = replace(job, confidence=0.9999, deadline_hours=(job.deadline_hours or 1.0) * 1.5)
    search = Search(sure, columns, SETTINGS, owned)
    schedule, rival = best_schedule(found_for(sure, columns, owned)), search.best(pair_points=16)
    assert (schedule is None) <= (rival is None)
    assert schedule is None or rival is None or schedule.cost.expected <= rival.micros + 3
    if schedule is not None:
        _, used, steps = again(search, schedule)
        for near in neighbours(random.Random(seed), steps, 40 if len(steps) > 1 else 0):
            other = search.priced(used, near)
            assert not search.allowed(other) or schedule.cost.expected <= other.micros + 3


@settings(deadline=None)
@given(st.floats(0.5, 0.999999), st.floats(0.0, 1.5), st.floats(-4.0, 4.0), st.floats(0.01, 2.0))
def test_confident_hours_rise_and_are_concave_below_the_sigma_that_is_told(
    confidence: float, estimate: float, log_losses: float, step: float
) -> None:
    hours = np.array([1.0, 1.0 + step, 1.0 + 2 * step])
    sigma = np.sqrt(estimate**2 + np.log1p(np.exp(log_losses) / hours))
    confident = hours * np.exp(NormalDist().inv_cdf(confidence) * sigma)
    if sigma[0] <= concave_below_sigma(confidence):
        assert confident[0] <= confident[1] <= confident[2]
        assert confident[0] + confident[2] <= 2 * confident[1] * (1 + 1e-12)


@pytest.mark.slow(reason="120 cases")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wait_hours", [0.0, 0.7])
@pytest.mark.parametrize("confidence", [None, 0.001, 0.05, 0.3, 0.49])
def test_linear_bounds_lie_below_cost_and_hours_of_every_share(
    seed: int, wait_hours: float, confidence: float | None
) -> None:
    job, columns, owned = rented_case(seed)
    job = replace(job, confidence=confidence or job.confidence)
    result = found_for(job, columns, owned, replace(SETTINGS, spot_wait_hours=wait_hours))
    if not len(result.shares):
        return
    linear_bounds = phase_columns(result, result.shares)
    draw = np.random.default_rng(seed)
    at = np.repeat(np.arange(len(linear_bounds)), 60)
    steps = np.exp(draw.uniform(0, np.log(STEPS), len(at))).astype(np.int64)
    exact = priced(linear_bounds, moves(linear_bounds), at[:, None], steps[:, None])
    share = steps / STEPS
    for below in (linear_bounds.linear_bounds, linear_bounds.linear_bounds.early):
        usd = below.fixed_usd[at] + below.slope_usd[at] * share + below.data_usd[at]
        hours = below.fixed_hours[at] + below.slope_hours[at] * share
        assert (usd <= exact.micros / 1e6 * (1 + 1e-12) + 1e-6).all()
        assert (hours <= exact.hours * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_lie_below_every_plan_that_is_in_time(seed: int) -> None:
    job, columns, owned = booked_case(seed)
    result = found_for(job, columns, owned)
    if len(result.shares) < 3:
        return
    linear_bounds = phase_columns(result, result.shares)
    draw = np.random.default_rng(seed)
    pairs = np.array([draw.choice(len(linear_bounds), 2, replace=False) for _ in range(600)])
    first = draw.integers(1, STEPS, 600)
    plans = priced(linear_bounds, moves(linear_bounds), pairs, np.stack((first, STEPS - first), axis=1))
    low = pair_usd(linear_bounds.linear_bounds, pairs[:, 0], pairs[:, 1])
    in_time = plans.hours <= linear_bounds.deadline_hours
    assert (low[in_time] <= plans.micros[in_time] / 1e6 * (1 + 1e-12) + 1e-5).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_some_of_all_columns_are_what_they_are_by_themselves(case: Case, seed: int) -> None:
    result = found_for(*case(seed, SETTINGS))
    which = np.flatnonzero(np.random.default_rng(seed).random(len(result.table)) < 0.3)
    if not len(which):
        return
    every, place = columns_of_table(result)
    alone, taken = phase_columns(result, result.table.take(which)), every.take(place[which])
    assert taken.machine == alone.machine
    np.testing.assert_array_equal(taken.place, alone.place)
    np.testing.assert_array_equal(taken.linear_bounds.values, alone.linear_bounds.values)
    np.testing.assert_array_equal(taken.linear_bounds.whole, alone.linear_bounds.whole)
    np.testing.assert_array_equal(taken.run.usd_per_node_hour, alone.run.usd_per_node_hour)


@pytest.mark.slow(reason="19 cases")
@pytest.mark.parametrize("seed", MOVES[rented_case])
def test_shares_between_the_steps_save_no_more_than_the_certificate_says(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    outcome = plan(job, columns, owned=owned, settings=SETTINGS)
    result = found_for(job, columns, owned)
    chosen = cheapest(result.table, over(result.table, job.deadline_hours, job.budget_usd) == 0)
    searched = search_phases(result, limit_micros(result, chosen))
    assert isinstance(outcome, Planned)
    assert searched.best is not None
    assert searched.open_ is not None
    (warning,) = [line for line in outcome.proof.certificate.over if "finer shares" in line]
    might_save = float(warning.split("$")[1].split(",")[0])
    assert might_save >= searched.finer_usd > 0
    best, finer = searched.best, 100
    run = best.columns.run
    for order in ((0, 1), (1, 0)):
        sequence = np.array([[best.plan.sequence[i] for i in order]])
        first = (best.plan.steps[order[0]] + np.arange(-finer, finer + 1) / finer)[:, None]
        steps = np.hstack((first, STEPS - first))
        # Shares between the steps are parts of a step here, which plans never have.
        plans = priced(best.columns, best.moving, np.repeat(sequence, len(steps), axis=0), steps)  # type: ignore[arg-type]
        in_time = plans.hours <= best.columns.deadline_hours
        billing_usd = float((run.nodes * run.usd_per_node_hour * run.billing_step_hours)[sequence[0]].max())
        least = plans.micros[in_time].min(initial=np.inf) / 1e6
        assert least >= best.plan.micros / 1e6 - might_save - billing_usd
