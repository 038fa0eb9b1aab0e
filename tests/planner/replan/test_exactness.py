"""What is told to do with a job under way against loops over everything that could be done."""

import pytest

from gpuplan.planner.model.outcome import Planned
from tests.planner.replan.plain import After, as_planned, drawn


@pytest.mark.slow(reason="40 cases")
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("up", [True, False])
def test_nothing_that_could_be_done_is_cheaper_and_what_is_told_costs_what_it_says(seed: int, up: bool) -> None:
    case = drawn(seed, up=up)
    if case is None:
        return
    answer, plain = case.answer(), After(case)
    tried = plain.best_from_now(7)
    if not isinstance(answer.best, Planned):
        assert tried is None
        return
    if tried is not None:
        # A share of a step, and the second that a bill is rounded up by.
        assert answer.best.cost.expected <= tried.micros + 100
    if all(phase.role == "planned" for phase in answer.best.phases):
        again = plain.priced_as(answer.best, up=up and answer.best.phases[0].moved is None)
        assert answer.best.cost.expected == pytest.approx(again.micros, rel=1e-6, abs=20)
        assert answer.best.hours.confident == pytest.approx(again.hours, rel=1e-9)
        assert plain.allowed(again)


@pytest.mark.slow(reason="one long case")
def test_some_of_these_cases_say_each_of_the_things_that_can_be_said() -> None:
    actions = set()
    for seed in range(16):
        for up in (True, False):
            case = drawn(seed, up=up)
            if case is not None:
                actions.add(case.answer().action)
        planned = as_planned(seed)
        if planned is not None:
            actions.add(planned[1].answer().action)
    assert {"continue", "move", "move_later", "restart", "none"} <= actions
