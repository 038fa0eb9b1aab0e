"""No plan breaks a cut, and cuts raise the bound: over random plans of small portfolios, and on a medium one."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.portfolio.cutting_planes import Cut, broken, coefficients, paid_for
from gpuplan.planner.portfolio.portfolio_instance import Instance, Ints
from gpuplan.planner.portfolio.time_indexed_model import TimeIndexed
from gpuplan.planner.portfolio.timetable import Timetable, fill
from tests.planner.portfolio.small_instances import small_instance
from tools.benchmarks.portfolio_instances import Recipe, portfolio


def some_plan(instance: Instance, rng: np.random.Generator) -> Ints:
    """A column per job, as many jobs in as fit in a random order, each where it happened to like it."""
    table = Timetable(instance, instance.columns)
    fill(table, rng.permutation(instance.jobs), rng.random(len(instance.columns)))
    return table.column


def any_cut(instance: Instance, draw: random.Random) -> Cut:
    first = draw.randrange(instance.slots)
    last = min(instance.slots - 1, first + draw.randint(0, 3))
    pool = draw.randrange(instance.pools)
    return Cut(
        pool=pool,
        grain=draw.choice((1.0, 1.5, 2.0, 3.0)),
        first=first,
        last=last,
        job=draw.randrange(instance.jobs),
        capacity=float(instance.capacity[pool, first : last + 1].max()),
    )


@pytest.mark.slow(reason="one long case")
@given(st.integers(0, 100_000))
@settings(max_examples=40, deadline=None)
def test_no_plan_breaks_any_cut(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    instance = small_instance(draw, jobs=7, slots=8)
    every = np.arange(len(instance.columns))
    plans = [some_plan(instance, rng) for _ in range(5)]
    for _ in range(25):
        cut = any_cut(instance, draw)
        which, value = coefficients(instance, instance.columns, every, cut)
        weight = np.zeros(len(every))
        weight[which] = value
        for column in plans:
            assert weight[column[column >= 0]].sum() <= cut.most + 1e-9


def relaxed(instance: Instance, cuts: list[Cut]) -> tuple[float, np.ndarray]:
    every = np.arange(len(instance.columns))
    model = TimeIndexed(
        instance,
        instance.columns,
        every,
        np.arange(instance.jobs),
        left=instance.capacity,
        budget_left=instance.budget_usd,
    )
    for cut in cuts:
        model.add_cut(*coefficients(instance, instance.columns, every, cut), cut.most)
    solved = model.relaxed(stop=lambda: False)
    assert solved is not None
    return solved.value_usd, solved.x


def test_what_is_said_to_be_broken_is_broken_and_its_cuts_raise_the_bound() -> None:
    instance = portfolio(Recipe(jobs=20, slots=48), 3)
    value, x = relaxed(instance, [])
    every = np.arange(len(instance.columns))
    cuts = broken(instance, instance.columns, every, x)
    assert cuts
    for cut in cuts:
        which, weight = coefficients(instance, instance.columns, every, cut)
        assert float((weight * x[which]).sum()) > cut.most * 1.019
    assert relaxed(instance, cuts)[0] > value * 1.001


def test_a_large_job_in_the_whole_of_an_interval_shuts_out_a_small_one_that_touches_it() -> None:
    instance = Instance(
        capacity=np.array([[8.0] * 6, [np.inf] * 6]),
        release=np.array([0, 0]),
        due=np.array([6, 6]),
        penalty_usd=np.array([9.0, 9.0]),
        job=np.array([0, 1]),
        cost_usd=np.array([1.0, 1.0]),
        duration=np.array([5, 2]),
        pool=np.array([[0], [0]]),
        units=np.array([[8.0], [1.0]]),
    )
    cut = Cut(pool=0, grain=8.0, first=1, last=4, job=1, capacity=8.0)
    which, weight = coefficients(instance, instance.columns, np.arange(len(instance.columns)), cut)
    columns = instance.columns
    chosen = {(int(columns.job[i]), int(columns.start[i])): float(w) for i, w in zip(which, weight, strict=True)}
    assert chosen == {(0, 0): 1.0, (0, 1): 1.0, **{(1, start): 1.0 for start in range(5)}}
    assert cut.most == 1.0
    assert paid_for(instance, columns, ((cut, 2.5),)).tolist() == [2.5] * 7


@pytest.mark.parametrize("seed", range(3))
def test_cuts_are_looked_for_where_capacity_changes_and_where_it_is_nothing(seed: int) -> None:
    instance = small_instance(random.Random(200 + seed), jobs=8, slots=10)
    value, x = relaxed(instance, [])
    cuts = broken(instance, instance.columns, np.arange(len(instance.columns)), x)
    assert all(cut.capacity == instance.capacity[cut.pool, cut.first : cut.last + 1].max() for cut in cuts)
    assert relaxed(instance, cuts)[0] >= value - 1e-6
