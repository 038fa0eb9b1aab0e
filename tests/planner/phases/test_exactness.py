"""A plan in phases is the cheapest there is: against loops over all offers, orders and shares that prune nothing."""

import random
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.columns import Columns
from catalog.owned import OwnedMachine
from planner.answer import Planned
from planner.candidates.gather import over
from planner.choice import cheapest
from planner.job import TrainingJob
from planner.phases.bounds import pair_usd, triple_usd
from planner.phases.cheapest import limit_micros
from planner.phases.columns import columns_of_table, concave_below_sigma, every_column, phase_columns
from planner.phases.course import Course
from planner.phases.moves import moves
from planner.phases.price import priced
from planner.phases.search import search_phases
from planner.phases.straight import STEPS
from planner.plan import plan
from tests.planner.phases.cases import SETTINGS, best_course, booked_case, found_for, rented_case
from tests.planner.phases.plain import Column, Plain, Search, neighbours

Case = Callable[[int], tuple[TrainingJob, Columns, tuple[OwnedMachine, ...]]]
#: Seeds whose best plan has several phases, and others for which the same must not happen.
MOVES: dict[Case, tuple[int, ...]] = {
    rented_case: (8, 20, 24, 37, 65, 82, 83, 91, 98, 106, 114, 139, 150, 151, 164, 171, 232, 237, 254),
    booked_case: (1, 16, 24, 29, 39, 67, 98, 112, 114, 123, 128, 130, 143, 154, 156, 160, 178, 200, 250),
}
THREE_PHASES: tuple[Case, int] = (booked_case, 178)
CASES = [(case, seed) for case, seeds in MOVES.items() for seed in sorted({*seeds, *range(0, 36, 2)})]


def again(search: Search, course: Course) -> tuple[Plain, tuple[Column, ...], tuple[int, ...]]:
    """The course priced the plain way."""
    known = {(each.key, each.nodes): each for each in search.columns}
    columns = tuple(known[each.choice.offer.key, each.choice.nodes] for each in course.phases)
    steps = tuple(round(each.share * STEPS) for each in course.phases)
    return search.priced(columns, steps), columns, steps


@pytest.mark.parametrize(("case", "seed"), CASES)
def test_no_order_of_offers_and_no_share_on_a_grid_is_cheaper_than_the_plan(case: Case, seed: int) -> None:
    job, columns, owned = case(seed)
    search = Search(job, columns, SETTINGS, owned)
    course = best_course(found_for(job, columns, owned))
    rival = search.best(pair_points=16, triple_points=6 if len(search.columns) < 8 else 0)
    if course is None:
        assert rival is None
        return
    assert (len(course.phases) > 1) == (seed in MOVES[case])
    assert (len(course.phases) == 3) == ((case, seed) == THREE_PHASES)
    plain, used, steps = again(search, course)
    assert plain.micros == pytest.approx(course.cost.expected, abs=3)
    assert plain.hours == pytest.approx(course.hours.confident, rel=1e-9)
    assert search.allowed(plain)
    assert rival is None or course.cost.expected <= rival.micros + 3
    for near in neighbours(random.Random(seed), steps, 40 if len(steps) > 1 else 0):
        other = search.priced(used, near)
        assert not search.allowed(other) or course.cost.expected <= other.micros + 3


@pytest.mark.parametrize("seed", [*MOVES[rented_case][:8], 0, 2])
def test_no_plan_is_cheaper_where_hours_are_asked_for_with_a_confidence_at_which_they_need_not_rise(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    sure = replace(job, confidence=0.9999, deadline_hours=(job.deadline_hours or 1.0) * 1.5)
    search = Search(sure, columns, SETTINGS, owned)
    course, rival = best_course(found_for(sure, columns, owned)), search.best(pair_points=16, triple_points=0)
    assert (course is None) <= (rival is None)
    assert course is None or rival is None or course.cost.expected <= rival.micros + 3
    if course is not None:
        _, used, steps = again(search, course)
        for near in neighbours(random.Random(seed), steps, 40 if len(steps) > 1 else 0):
            other = search.priced(used, near)
            assert not search.allowed(other) or course.cost.expected <= other.micros + 3


@settings(deadline=None)
@given(st.floats(0.5, 0.999999), st.floats(0.0, 1.5), st.floats(-4.0, 4.0), st.floats(0.01, 2.0))
def test_confident_hours_rise_and_are_concave_below_the_sigma_that_is_told(
    confidence: float, estimate: float, log_losses: float, step: float
) -> None:
    hours = np.array([1.0, 1.0 + step, 1.0 + 2 * step])
    sigma = np.sqrt(estimate**2 + np.log1p(np.exp(log_losses) / hours))
    kept = hours * np.exp(NormalDist().inv_cdf(confidence) * sigma)
    if sigma[0] <= concave_below_sigma(confidence):
        assert kept[0] <= kept[1] <= kept[2]
        assert kept[0] + kept[2] <= 2 * kept[1] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wait_hours", [0.0, 0.7])
@pytest.mark.parametrize("confidence", [None, 0.001, 0.05, 0.3, 0.49])
def test_straight_lines_lie_below_cost_and_hours_of_every_share(
    seed: int, wait_hours: float, confidence: float | None
) -> None:
    job, columns, owned = rented_case(seed)
    job = replace(job, confidence=confidence or job.confidence)
    found = found_for(job, columns, owned, replace(SETTINGS, spot_wait_hours=wait_hours))
    if not len(found.shares):
        return
    lines = phase_columns(found, found.shares)
    draw = np.random.default_rng(seed)
    at = np.repeat(np.arange(len(lines)), 60)
    steps = np.exp(draw.uniform(0, np.log(STEPS), len(at))).astype(np.int64)
    exact = priced(lines, moves(lines), at[:, None], steps[:, None])
    share = steps / STEPS
    for below in (lines.lines, lines.lines.early):
        usd = below.fixed_usd[at] + below.slope_usd[at] * share + below.data_usd[at]
        hours = below.fixed_hours[at] + below.slope_hours[at] * share
        assert (usd <= exact.micros / 1e6 * (1 + 1e-12) + 1e-6).all()
        assert (hours <= exact.hours * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_lie_below_every_plan_that_is_in_time(seed: int) -> None:
    job, columns, owned = booked_case(seed)
    found = found_for(job, columns, owned)
    if len(found.shares) < 3:
        return
    lines = phase_columns(found, found.shares)
    draw = np.random.default_rng(seed)
    for count in (2, 3):
        sets = np.array([draw.choice(len(lines), count, replace=False) for _ in range(300)])
        cuts = np.sort(draw.integers(1, STEPS, (300, count - 1)), axis=1)
        steps = np.diff(np.concatenate((np.zeros((300, 1)), cuts, np.full((300, 1), STEPS)), axis=1), axis=1)
        kept = (steps > 0).all(axis=1)
        plans = priced(lines, moves(lines), sets[kept], steps[kept].astype(np.int64))
        below = lines.lines
        low = pair_usd(below, sets[kept][:, 0], sets[kept][:, 1]) if count == 2 else triple_usd(below, sets[kept])
        in_time = plans.hours <= lines.deadline_hours
        assert (low[in_time] <= plans.micros[in_time] / 1e6 * (1 + 1e-12) + 1e-5).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("case", [rented_case, booked_case])
def test_some_of_all_columns_are_what_they_are_by_themselves(case: Case, seed: int) -> None:
    found = found_for(*case(seed))
    which = np.flatnonzero(np.random.default_rng(seed).random(len(found.table)) < 0.3)
    if not len(which):
        return
    every, place = columns_of_table(found)
    alone, taken = phase_columns(found, found.table.take(which)), every.take(place[which])
    assert taken.machine == alone.machine
    np.testing.assert_array_equal(taken.place, alone.place)
    np.testing.assert_array_equal(taken.lines.values, alone.lines.values)
    np.testing.assert_array_equal(taken.lines.whole, alone.lines.whole)
    np.testing.assert_array_equal(taken.run.usd_per_node_hour, alone.run.usd_per_node_hour)
    assert every_column(found) is every_column(found)


@pytest.mark.parametrize("seed", MOVES[rented_case])
def test_shares_between_the_steps_save_no_more_than_the_certificate_says(seed: int) -> None:
    job, columns, owned = rented_case(seed)
    outcome = plan(job, columns, owned=owned, settings=SETTINGS)
    found = found_for(job, columns, owned)
    chosen = cheapest(found.table, over(found.table, job.deadline_hours, job.budget_usd) == 0)
    searched = search_phases(found, limit_micros(found, chosen))
    assert isinstance(outcome, Planned)
    assert searched.best is not None
    assert searched.open_ is not None
    (said,) = [each for each in outcome.proof.certificate.over if "finer shares" in each]
    might_save = float(said.split("$")[1].split(",")[0])
    assert might_save >= searched.finer_usd > 0
    best, finer = searched.best, 100
    run = best.columns.run
    for order in ((0, 1), (1, 0)):
        sequence = np.array([[best.found.sequence[i] for i in order]])
        first = (best.found.steps[order[0]] + np.arange(-finer, finer + 1) / finer)[:, None]
        steps = np.hstack((first, STEPS - first))
        # Shares between the steps are parts of a step here, which plans never have.
        plans = priced(best.columns, best.moving, np.repeat(sequence, len(steps), axis=0), steps)  # type: ignore[arg-type]
        in_time = plans.hours <= best.columns.deadline_hours
        billing_usd = float((run.nodes * run.usd_per_node_hour * run.billing_step_hours)[sequence[0]].max())
        least = plans.micros[in_time].min(initial=np.inf) / 1e6
        assert least >= best.found.micros / 1e6 - might_save - billing_usd
