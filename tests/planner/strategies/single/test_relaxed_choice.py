"""Duals of the relaxed choice: against finite differences, and against the slope of the hull where there is one limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.explain.sensitivity import hull_slope
from gpuplan.planner.strategies.single.choice_model import Relaxed, relaxed

few = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 10**6)


def drawn(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, np.sort(rng.uniform(1, 400, 14)), rng.uniform(20, 9e4, 14), rng.uniform(1, 2e3, 14)


def solved(usd: np.ndarray, hours: np.ndarray, deadline: float, kg: np.ndarray, cap: float) -> Relaxed | None:
    return relaxed(usd, {"deadline": (hours, deadline), "carbon": (kg, cap)})


@pytest.mark.slow(reason="one long case")
@few
@given(SEEDS)
def test_a_dual_is_what_a_little_more_of_the_limit_takes_off(seed: int) -> None:
    rng, hours, usd, kg = drawn(seed)
    deadline, cap = rng.uniform(60, 400), rng.uniform(100, 2e3)
    solution = solved(usd, hours, deadline, kg, cap)
    if solution is None:
        return
    for name, step in (("deadline", 1e-4), ("carbon", 1e-4)):
        relaxed_limit = solved(usd, hours, deadline + step * (name == "deadline"), kg, cap + step * (name == "carbon"))
        less = solved(usd, hours, deadline - step * (name == "deadline"), kg, cap - step * (name == "carbon"))
        if relaxed_limit is None or less is None:
            continue
        gained, lost = (solution.optimum - relaxed_limit.optimum) / step, (less.optimum - solution.optimum) / step
        # On a corner of the hull the two slopes differ, and the dual lies between them.
        slack = 1e-4 * (1 + abs(lost))
        assert gained - slack <= solution.worth[name] <= lost + slack


@few
@given(SEEDS)
def test_with_a_deadline_alone_the_dual_is_the_slope_of_the_hull(seed: int) -> None:
    rng, hours, usd, _ = drawn(seed)
    deadline = rng.uniform(hours[0], 400)
    relaxation = relaxed(usd, {"deadline": (hours, deadline)})
    assert relaxation is not None
    assert relaxation.worth["deadline"] == pytest.approx(hull_slope(hours, usd, deadline), rel=1e-6, abs=1e-6)


def test_a_limit_that_nothing_keeps_has_no_dual() -> None:
    assert relaxed(np.array([1.0, 2.0]), {"deadline": (np.array([5.0, 3.0]), 2.0)}) is None


def test_a_limit_that_does_not_bind_is_worth_nothing() -> None:
    relaxation = relaxed(np.array([1.0, 2.0]), {"deadline": (np.array([5.0, 3.0]), 9.0)})
    assert relaxation is not None
    assert relaxation.worth == {"deadline": 0.0}
    assert relaxation.optimum == pytest.approx(1.0)
