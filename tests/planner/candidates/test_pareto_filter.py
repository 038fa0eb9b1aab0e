"""The Pareto frontier in three measures, compared with a check of all pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.candidates.pareto_filter import nondominated

few = settings(max_examples=60, deadline=None)


def by_comparing_all(points: np.ndarray) -> set[int]:
    """Elements that no other beats; of equal points the first."""
    no_worse = (points[:, :, None] <= points[:, None, :]).all(axis=0)
    equal = no_worse & no_worse.T
    earlier = np.triu(equal, 1)
    beaten = ((no_worse & ~equal) | earlier).any(axis=0)
    return set(np.flatnonzero(~beaten).tolist())


@few
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(2, 9))
def test_exactly_the_points_are_kept_that_no_other_beats(seed: int, count: int, levels: int) -> None:
    points = np.floor(np.random.default_rng(seed).uniform(0, levels, (3, count)))
    assert set(nondominated(*points).tolist()) == by_comparing_all(points)


@few
@given(st.integers(0, 10**6), st.sampled_from([4, 30]))
def test_dropping_most_points_early_changes_nothing(seed: int, levels: int) -> None:
    points = np.floor(np.random.default_rng(seed).uniform(0, levels, (3, 260)))
    assert set(nondominated(*points).tolist()) == by_comparing_all(points)


def test_points_come_in_order_of_the_first_measure() -> None:
    points = np.random.default_rng(7).uniform(0, 1, (3, 500))
    first = points[0, nondominated(*points)]
    assert (np.diff(first) > 0).all()


def test_nothing_has_no_best_points() -> None:
    assert len(nondominated(np.zeros(0), np.zeros(0), np.zeros(0))) == 0


@few
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(2, 9))
def test_points_equal_in_the_third_measure_within_each_group_are_compared_in_two(
    seed: int, count: int, levels: int
) -> None:
    draw = np.random.default_rng(seed)
    first, second = np.floor(draw.uniform(0, levels, (2, count)))
    group = draw.integers(0, 3, count)
    third = np.array([5.0, 1.0, 5.0])[group]
    front = set(nondominated(first, second, third, group=group).tolist())
    for number in range(3):
        mine = np.flatnonzero(group == number)
        points = np.stack((first, second, third))[:, mine]
        assert front & set(mine.tolist()) == set(mine[sorted(by_comparing_all(points))].tolist())
