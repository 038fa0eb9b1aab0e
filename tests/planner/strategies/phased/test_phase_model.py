"""The linear model of plans of two phases: against the search over medium catalogues, and closed forms on small ones."""

import random
from dataclasses import replace

import numpy as np
import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuplan.planner.model.job import Constraints, DataSource
from gpuplan.planner.strategies.phased import phase_model
from gpuplan.planner.strategies.phased.linear_underestimators import STEPS, LinearUnderestimator
from gpuplan.planner.strategies.phased.phase_columns import phase_columns
from gpuplan.planner.strategies.phased.phase_model import formulate, irreplaceable, relaxed
from tests.planner.small_catalogues import random_columns, random_job
from tests.planner.strategies.phased.cases import SETTINGS, best_schedule, found_for

Floats = NDArray[np.float64]


def lines(
    deadline_hours: float, *, data_usd: Floats, caps: Floats, migration_class: NDArray[np.int64], **given: Floats
) -> LinearUnderestimator:
    """Columns with one line each, and as many steps as their caps allow."""
    line = (given["fixed_usd"], given["slope_usd"], given["fixed_hours"], given["slope_hours"])
    return LinearUnderestimator.of(
        line,
        line,
        data_usd=data_usd,
        caps=caps,
        migration_class=migration_class,
        most_steps=np.floor(caps * STEPS).astype(np.int64),
        deadline_hours=deadline_hours,
    )


def two(deadline_hours: float, **changes: np.ndarray) -> LinearUnderestimator:
    """A slow column at 10 USD in 20 h and a fast one at 30 USD in 4 h, an hour and a dollar each to start."""
    given = {
        "fixed_usd": np.ones(2),
        "slope_usd": np.array([10.0, 30.0]),
        "fixed_hours": np.ones(2),
        "slope_hours": np.array([20.0, 4.0]),
        "data_usd": np.zeros(2),
        "caps": np.ones(2),
        "migration_class": np.zeros(2, np.int64),
    }
    return lines(deadline_hours, **given | changes)


def test_the_deadline_shares_the_work_between_slow_and_fast() -> None:
    # 2 h of starts leave 8 h: 20 x + 4 (1 - x) = 8 gives x = 1/4.
    assert relaxed(two(10.0)).usd == pytest.approx(2 + 10 / 4 + 30 * 3 / 4)


@pytest.mark.parametrize("deadline", [21.0, np.inf])
def test_one_column_is_enough_where_time_says_so(deadline: float) -> None:
    assert relaxed(two(deadline)).usd == pytest.approx(11.0)


def test_the_model_uses_no_more_than_two_columns() -> None:
    # A third column at 1 USD may do a tenth of the work: beside the slow one it would save 1.1 USD less its start of 1.
    given = {
        "fixed_usd": np.array([1.0, 1.0, 0.0]),
        "slope_usd": np.array([10.0, 30.0, 1.0]),
        "fixed_hours": np.array([1.0, 1.0, 0.0]),
        "slope_hours": np.array([20.0, 4.0, 1.0]),
        "data_usd": np.zeros(3),
        "caps": np.array([1.0, 1.0, 0.1]),
        "migration_class": np.zeros(3, np.int64),
    }
    without = relaxed(two(10.0)).usd
    beside_the_fast = 1 + 30 * 0.9 + 1 * 0.1
    assert relaxed(lines(10.0, **given)).usd == pytest.approx(min(without, beside_the_fast))


def test_nothing_that_is_in_time_is_no_bound_at_all() -> None:
    assert relaxed(two(4.0)).usd == np.inf


def test_columns_of_different_migration_classes_are_never_mixed() -> None:
    assert relaxed(two(10.0, migration_class=np.array([0, 1]))).usd == pytest.approx(31.0)


def test_a_cap_holds_a_column_to_its_share() -> None:
    assert relaxed(two(21.0, caps=np.array([0.1, 1.0]))).usd == pytest.approx(2 + 1 + 27)


def test_data_are_brought_once_for_the_dearest_place() -> None:
    apart, free = relaxed(two(10.0, data_usd=np.array([3.0, 2.0]))).usd, relaxed(two(10.0)).usd
    assert apart == pytest.approx(free + 3.0)


@pytest.mark.parametrize("count", [3, 40])
def test_the_relaxation_of_many_columns_allows_no_more_than_the_whole_model(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(count)
    given = {name: draw.uniform(0.5, 2.0, count) for name in ("fixed_usd", "fixed_hours")}
    # Slow and cheap to fast and dear, so that none replaces another.
    given["slope_hours"] = np.linspace(40.0, 4.0, count)
    given["slope_usd"] = 100.0 / given["slope_hours"]
    linear_bounds = lines(
        12.0, **given, data_usd=np.zeros(count), caps=np.ones(count), migration_class=np.arange(count) % 2
    )
    whole = relaxed(linear_bounds)
    monkeypatch.setattr(phase_model, "MOST_WHOLE", 1)
    mixed = relaxed(linear_bounds)
    assert (whole.whole, mixed.whole) == (True, False)
    assert 0.5 * whole.usd < mixed.usd <= whole.usd * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(16))
def test_a_plan_costs_what_the_unpruned_model_of_a_medium_catalogue_allows_but_for_rounding(seed: int) -> None:
    draw = random.Random(f"medium {seed}")
    catalogue = random_columns(draw, types=2, offers=24)
    job = replace(
        random_job(draw),
        budget_usd=None,
        data=DataSource(),
        constraints=Constraints(price_kinds=("on_demand",), max_nodes=3),
    )
    whole = found_for(replace(job, deadline_hours=None), catalogue).table
    if not len(whole):
        return
    fast, cheap = (
        whole.cost_breakdown.hours_at_confidence.min(),
        whole.cost_breakdown.hours_at_confidence[np.argmin(whole.cost_breakdown.cost_usd)],
    )
    job = replace(job, deadline_hours=float(fast * max(cheap / fast, 1.2) ** draw.uniform(0.1, 0.9)))
    result = found_for(job, catalogue)
    columns, schedule = phase_columns(result, result.shares), best_schedule(result)
    assert schedule is not None
    bound = relaxed(columns.linear_bounds).usd
    usd = schedule.cost.expected / 1e6
    assert bound <= usd * (1 + 1e-9)
    # The model knows no moves: the best plan without them costs at most a step of shares, a second of bills, writing.
    per_hour = float((columns.run.nodes * columns.run.usd_per_node_hour).max())
    write = float(columns.write_hours.max())
    moved = columns.checkpoint_gb * 0.2 + write * per_hour
    slow = float(columns.slope_usd.max()) * (write / float(columns.slope_hours.min()) + 2 / STEPS)
    far = columns.checkpoint_gb / SETTINGS.move_gbs / 3600 / float(columns.slope_hours.min())
    slack = moved + slow + far * float(columns.slope_usd.max()) + 2 * per_hour * (60 / 3600)
    assert usd <= bound + slack


@pytest.mark.slow(reason="one long case")
@given(
    columns=st.lists(st.tuples(*(st.integers(1, 6) for _ in range(5)), st.sampled_from((0.4, 1.0)), st.integers(0, 1))),
    deadline=st.sampled_from((6.0, 9.0, 14.0, np.inf)),
)
@settings(deadline=None, max_examples=40)
def test_columns_that_others_of_their_migration_class_replace_change_nothing(
    columns: list[tuple[float, ...]], deadline: float
) -> None:
    names = ("fixed_usd", "slope_usd", "fixed_hours", "slope_hours", "data_usd", "caps")
    table = np.array([*columns, (9, 9, 9, 9, 9, 1.0, 0)])
    arrays = {name: table[:, i] for i, name in enumerate(names)}
    given_ = lines(deadline, **arrays, migration_class=table[:, 6].astype(np.int64))
    problem = formulate(given_)
    stats = problem.solve(pulp.HiGHS(msg=False, threads=1, gapRel=0.0, gapAbs=0.0))
    whole = np.inf if stats.status == pulp.LpSolveStatus.Infeasible else stats.objective
    assert relaxed(given_).usd == pytest.approx(whole, abs=1e-6)
    values = np.array([arrays[name] for name in names[:5]])

    def replaced(one: int, other: int) -> bool:
        """By one that is able, of its kin and no worse; of two that are alike by the first."""
        able, alike = given_.caps[other] >= 1.0, bool((values[:, one] == values[:, other]).all())
        no_worse = given_.migration_class[one] == given_.migration_class[other] and bool(
            (values[:, other] <= values[:, one]).all()
        )
        return bool(able and no_worse and (other < one or not alike or given_.caps[one] < 1.0))

    numbers = range(len(given_))
    needed = [one for one in numbers if not any(replaced(one, other) for other in numbers if other != one)]
    assert irreplaceable(given_).tolist() == needed
