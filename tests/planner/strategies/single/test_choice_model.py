"""The choice of one configuration: the relaxation's proof against plain enumeration."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.strategies.single.choice_model import choose_least, choose_one

_WHOLE = st.integers(1, 10_000_000_000)
_COLUMNS = st.lists(st.tuples(_WHOLE, st.integers(1, 50)), min_size=1, max_size=40)


@pytest.mark.slow(reason="one long case")
@given(columns=_COLUMNS, deadline=st.none() | st.integers(1, 60), budget=st.none() | st.sampled_from(range(40)))
@settings(deadline=None, max_examples=60)
def test_the_solver_proves_what_enumeration_finds(
    columns: list[tuple[int, int]], deadline: int | None, budget: int | None
) -> None:
    cost, hours = (np.array(column, np.float64) for column in zip(*columns, strict=True))
    cost /= 1e6
    most = None if budget is None else float(cost[budget % len(cost)])
    proven = choose_one(cost, hours, deadline_hours=deadline, budget_usd=most)
    feasible = (hours <= (np.inf if deadline is None else deadline)) & (cost <= (np.inf if most is None else most))
    if not feasible.any():
        assert proven is None
        return
    assert proven is not None
    assert feasible[proven.chosen]
    assert proven.objective_usd == cost[proven.chosen] == cost[feasible].min()
    assert (proven.bound_usd, proven.gap) == (proven.objective_usd, 0.0)


def test_of_equal_times_the_cheaper_is_chosen_and_its_bound_is_of_time() -> None:
    choice = choose_least("time", np.array([3.0, 2.0, 2.0]), np.array([1.0, 9.0, 8.0]), np.array([3.0, 2.0, 2.0]))
    assert choice is not None
    assert (choice.chosen, choice.objective_usd, choice.objective, choice.bound) == (2, 8.0, 2.0, 2.0)


@pytest.mark.parametrize("short_by", [1e-12, 3e-10, 1e-7])
def test_a_limit_below_every_column_leaves_none(short_by: float) -> None:
    assert choose_one(np.array([1.0, 2.0]), np.array([10.0, 20.0]), deadline_hours=10.0 * (1 - short_by)) is None


def test_threads_that_solve_at_the_same_time_and_again_do_not_share_a_model() -> None:
    draw = np.random.default_rng(7)
    models = [(np.sort(draw.integers(1, 10**9, size))[::-1] / 1e6, np.arange(1.0, size + 1)) for size in range(2, 60)]

    def proven(model: tuple[np.ndarray, np.ndarray]) -> float:
        cost, hours = model
        choice = choose_one(cost, hours, deadline_hours=len(cost) / 2)
        assert choice is not None
        return choice.objective_usd

    with ThreadPoolExecutor(4) as threads:
        proofs = list(threads.map(proven, models * 3))
    assert proofs == [float(cost[len(cost) // 2 - 1]) for cost, _ in models] * 3
