"""The load-duration curve: what is known in closed form, what is conserved, and a simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.procurement.load_duration import (
    Blocks,
    busy_hours,
    duration_levels,
    fluctuating,
    level_probabilities,
    together,
)


@given(mean=st.floats(0.01, 400))
@settings(max_examples=40, deadline=None)
def test_one_job_is_in_progress_as_often_as_the_poisson_law_says(mean: float) -> None:
    probabilities = level_probabilities(np.array([mean]), np.array([1]))
    for n in (0, 1, int(mean), int(mean) + 3):
        law = math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))
        assert probabilities[n] == pytest.approx(law, rel=1e-9, abs=1e-12)


rates = st.lists(st.tuples(st.floats(0.001, 2), st.floats(0.1, 40), st.integers(1, 9)), min_size=1, max_size=4)


@given(jobs=rates, most=st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_blocks_hold_all_the_work_and_all_the_hours(jobs: list[tuple[float, float, int]], most: int) -> None:
    rate, hours, units = (np.array(column) for column in zip(*jobs, strict=True))
    blocks = fluctuating(rate, hours, units, most)
    assert len(blocks.share) <= most
    assert blocks.share.sum() == pytest.approx(1.0)
    assert blocks.share @ blocks.runs_per_hour == pytest.approx(rate, rel=1e-6)
    assert (blocks.runs_per_hour >= 0).all()


def test_levels_of_several_sizes_are_those_of_a_simulated_queue() -> None:
    rate, hours, units = np.array([0.05, 0.02]), np.array([20.0, 40.0]), np.array([1, 4])
    rng, horizon = np.random.default_rng(5), 400_000.0
    change: list[tuple[float, int]] = []
    for job_rate, mean, size in zip(rate, hours, units, strict=True):
        starts = rng.uniform(0, horizon, rng.poisson(job_rate * horizon))
        lengths = rng.exponential(mean, len(starts))
        change += [(t, int(size)) for t in starts] + [(t, -int(size)) for t in starts + lengths]
    times, steps = zip(*sorted(change), strict=True)
    level = np.cumsum(steps)[:-1]
    span = np.diff(times)
    simulated = np.bincount(level, weights=span, minlength=12)[:12] / span.sum()
    # Some 8,000 independent spells of 50 h: a share of 0.2 has a standard error of half a per cent.
    assert level_probabilities(rate * hours, units)[:12] == pytest.approx(simulated, abs=0.02)


def test_levels_put_together_keep_their_mean() -> None:
    level = np.arange(100)
    share = np.full(100, 0.01)
    blocks = together(Blocks(share=share, runs_per_hour=level[:, None].astype(float)), level, 10)
    assert len(blocks.share) == 10
    assert blocks.runs_per_hour[:, 0] == pytest.approx(np.arange(10) * 10 + 4.5)


@given(
    demand=st.lists(st.lists(st.integers(0, 7), min_size=3, max_size=3), min_size=1, max_size=40),
    weight=st.sampled_from((None, (0.2, 0.3, 0.5))),
)
@settings(max_examples=40, deadline=None)
def test_the_duration_curve_counts_hours_one_by_one(
    demand: list[list[int]], weight: tuple[float, float, float] | None
) -> None:
    table = np.array(demand)
    chances = (1 / 3,) * 3 if weight is None else weight
    levels, hours = duration_levels(table, None if weight is None else np.array(weight))
    for level, hours_at_level in zip(levels.tolist(), hours.tolist(), strict=True):
        assert hours_at_level == pytest.approx(sum(c * (table[:, s] == level).sum() for s, c in enumerate(chances)))
    for i, busy in enumerate(busy_hours(levels, hours).tolist(), start=1):
        assert busy == pytest.approx(sum(c * (table[:, s] >= i).sum() for s, c in enumerate(chances)))


def test_negative_demand_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        duration_levels(np.array([[1, 2], [-1, 3]]))
