"""Laws that hold of a job under way whatever it is and wherever it runs."""

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from gpuplan.catalog.snapshots.offer_columns import columns_of
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.replan.replan_answer import Replanned
from gpuplan.planner.replan.replan_decision import replan
from gpuplan.planner.replan.running_job import Amount, UnderWay
from tests.planner.replan.plain import SETTINGS, After, Case, as_planned, drawn
from tests.planner.small_catalogues import START
from tests.planner.strategies.phased.cases import rented_case
from tests.planner.strategies.phased.plain import STEPS

#: Rounding of bills up to a second, and of shares to a step.
WITHIN = 1e-4


def least(answer: Replanned) -> float:
    return answer.best.cost.expected if isinstance(answer.best, Planned) else float("inf")


def cases(count: int) -> list[Case]:
    return [case for seed in range(count) if (case := drawn(seed)) is not None]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_done_and_nothing_running_is_a_plan(seed: int) -> None:
    job, columns, _ = rented_case(seed)
    answer = replan(job, columns, running=UnderWay(now=START), settings=SETTINGS)
    planned = plan(job, columns, settings=SETTINGS)
    assert type(answer.best) is type(planned)
    if isinstance(planned, Planned) and isinstance(answer.best, Planned):
        assert answer.best.phases == planned.phases
        assert answer.best.cost == planned.cost
        assert answer.action == "start"


@pytest.mark.slow(reason="one long case")
def test_going_on_is_never_cheaper_than_the_best_and_is_it_where_nothing_is() -> None:
    for case in cases(15):
        answer = case.answer()
        if answer.going_on is not None and answer.going_on.possible:
            assert least(answer) <= answer.going_on.schedule.cost.expected
            if least(answer) == answer.going_on.schedule.cost.expected:
                assert answer.action == "continue"
        if answer.action == "continue":
            assert answer.going_on is not None
            assert answer.going_on.possible
            assert answer.going_on.schedule.cost == answer.best.cost  # type: ignore[union-attr]


@pytest.mark.slow(reason="one long case")
def test_more_done_is_never_dearer() -> None:
    for case in cases(8):
        done = case.running.done.value
        costs = [least(case.answer(done=Amount(value=share))) for share in (done * 0.5, done, (1 + done) / 2)]
        assert all(costlier <= less * (1 + WITHIN) + 100 for less, costlier in pairwise(costs))


@pytest.mark.slow(reason="one long case")
def test_a_later_moment_with_as_much_done_is_never_cheaper() -> None:
    for case in cases(8):
        later = case.answer(now=case.running.now + timedelta(minutes=30)) if _has_time(case, 0.5) else None
        if later is not None:
            assert least(later) >= least(case.answer()) * (1 - WITHIN) - 100


def _has_time(case: Case, hours: float) -> bool:
    return (case.running.now - START).total_seconds() / 3600 + hours < (case.job.deadline_hours or 0.0)


@pytest.mark.slow(reason="one long case")
def test_what_was_spent_changes_nothing_until_the_budget_binds() -> None:
    for case in cases(9):
        free = case.answer()
        rich = case.answer(spent_usd=1e6).best
        if not isinstance(free.best, Planned):
            assert not isinstance(rich, Planned)
            continue
        assert isinstance(rich, Planned)
        assert (rich.phases, rich.cost) == (free.best.phases, free.best.cost)
        cost = free.best.cost.expected / 1e6
        held = Case(replace(case.job, budget_usd=cost + 100.0), case.columns, case.running)
        same = held.answer(spent_usd=99.99)
        assert isinstance(same.best, Planned)
        assert same.best.phases == free.best.phases
        assert least(held.answer(spent_usd=100.0 + cost / 2)) == float("inf")


def test_work_that_was_lost_is_done_again() -> None:
    for seed in range(10):
        case = drawn(seed, up=False)
        if case is None or case.running.done.value == 0:
            continue
        all_saved = case.answer(saved=Amount(value=case.running.done.value))
        lost = case.answer(saved=Amount(value=case.running.done.value / 2))
        assert lost.left.share > all_saved.left.share
        assert least(lost) >= least(all_saved) * (1 - WITHIN) - 100
        assert least(all_saved) == least(case.answer())


def test_machines_that_still_run_are_never_worse_than_machines_that_are_gone() -> None:
    for seed in range(10):
        case = drawn(seed)
        if case is None:
            continue
        # Where the same would be started again: others need the checkpoint that gone machines are taken to have left.
        gone = case.answer(up=False)
        allowed = case.answer()
        if isinstance(gone.best, Planned) and gone.action == "restart":
            assert case.running.on is not None
            again = gone.best.phases[0].choice.nodes == case.running.on.nodes
            assert not again or least(allowed) <= least(gone)


@pytest.mark.slow(reason="2 cases")
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_a_run_that_goes_as_planned_goes_on_as_planned(confidence: float) -> None:
    """What is left costs what it was planned to, to the second that a bill is rounded up by, and is planned alike."""
    seen = 0
    for seed in range(20):
        drawn_case = as_planned(seed, confidence=confidence)
        if drawn_case is None:
            continue
        planned, case = drawn_case
        first, answer = planned.phases[0], case.answer()
        per_hour = first.choice.offer.usd_micros_per_hour * first.choice.nodes
        # Compute and storage that were expected of the work so far, at the mean of what it was estimated to take; the
        # checkpoint at the end of the phase is still to be written.
        mean = math.exp(first.log_sigma**2 / 2)
        up = first.setup_hours + mean * first.hours_with_goodput * case.running.done.value / first.share
        stored = first.choice.cost.storage * up / first.choice.hours.expected
        rest = planned.cost.expected - up * per_hour - stored - first.choice.cost.egress
        assert isinstance(answer.best, Planned)
        assert answer.best.cost.expected == pytest.approx(rest, rel=1e-3, abs=per_hour / 1800), seed
        assert answer.action == ("continue" if len(planned.phases) == 1 else "move_later"), seed
        seen += 1
    assert seen > 1


@pytest.mark.slow(reason="one long case")
def test_the_price_up_to_which_going_on_holds_is_where_something_else_ties() -> None:
    """Just below it going on is told still, just above it is not, with the offer's own price moved in the catalogue."""
    seen = 0
    for seed in range(20):
        drawn_case = as_planned(seed)
        answer = None if drawn_case is None else drawn_case[1].answer()
        if drawn_case is None or answer is None or answer.stays_optimal is None or answer.stays_optimal.price is None:
            continue
        assert _at_price(drawn_case[1], answer.stays_optimal.price / 1e6 * 0.995) == "continue"
        assert _at_price(drawn_case[1], answer.stays_optimal.price / 1e6 * 1.02) != "continue"
        seen += 1
    assert seen > 1


def _at_price(case: Case, usd: float) -> str:
    on = case.running.on
    assert on is not None
    key = (on.provider, on.region, on.zone, on.instance_type, on.price_kind)
    offers = [
        replace(offer, usd_micros_per_hour=round(usd * 1e6)) if offer.key == key else offer
        for offer in case.columns.offers
    ]
    moved = columns_of("moved", case.columns.observed_at, case.columns.instance_types, offers)
    return replan(case.job, moved, running=case.running, settings=SETTINGS).action


@pytest.mark.slow(reason="one long case")
def test_slower_than_going_on_holds_for_it_is_late_or_dearer_than_something_else() -> None:
    seen = 0
    for seed in range(20):
        drawn_case = as_planned(seed)
        answer = None if drawn_case is None else drawn_case[1].answer()
        if drawn_case is None or answer is None or answer.stays_optimal is None or answer.stays_optimal.slower is None:
            continue
        plain = After(drawn_case[1])
        before = plain.here
        for factor, stays_optimal in (
            (answer.stays_optimal.slower * 0.99, True),
            (answer.stays_optimal.slower * 1.05, False),
        ):
            plain.here = replace(before, work_hours=before.work_hours * factor)
            stays = plain.priced_from((plain.here,), (STEPS,), up=True)
            best = plain.best_from_now(9)
            assert best is not None or not stays_optimal
            if stays_optimal:
                assert plain.allowed(stays)
                assert best is not None
                assert stays.micros <= best.micros * (1 + WITHIN) + 100
            elif plain.allowed(stays) and best is not None:
                assert best.micros <= stays.micros
        seen += 1
    assert seen > 1
