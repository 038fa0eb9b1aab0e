"""When a run under preemption ends, against simulations of the same process and closed forms."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval, expected_hours
from gpuplan.planner.spot_policy.finish_distribution import SpotRun, finish
from gpuplan.planner.spot_policy.latest_switch import Rescue, in_time, latest_switch, spot_first

RUNS = 2500


def a_run(work: float = 20.0, interval: float = 0.7, rate: float = 0.2, restart: float = 0.25) -> SpotRun:
    return SpotRun(
        work_hours=work,
        interval_hours=interval,
        checkpoint_hours=0.03,
        restart_hours=restart,
        preemptions_per_hour=rate,
    )


def saved_at(run: SpotRun, draw: random.Random) -> list[float]:
    """When each segment of one run was saved."""
    whole, rest = run.segments
    clock, times = 0.0, []
    for length in [run.interval_hours] * whole + ([rest] if rest else []):
        while (until := draw.expovariate(run.preemptions_per_hour)) < length + run.checkpoint_hours:
            clock += until
            while (failed := draw.expovariate(run.preemptions_per_hour)) < run.restart_hours:
                clock += failed
            clock += run.restart_hours
        clock += length + run.checkpoint_hours
        times.append(clock)
    return times


@pytest.mark.parametrize("run", [a_run(), a_run(rate=0.9), a_run(work=3.3, interval=1.0, rate=0.5)])
def test_the_whole_distribution_agrees_with_a_simulation(run: SpotRun) -> None:
    draw = random.Random(11)
    ends = np.sort([saved_at(run, draw)[-1] for _ in range(RUNS)])
    predicted = finish(run)
    # Kolmogorov-Smirnov: exceeded by chance once in a thousand; just before and after each atom.
    shares = np.arange(1, RUNS + 1) / RUNS
    gaps = [abs(predicted.probability_by(ends[i]) - shares[i]) for i in range(RUNS - 1) if ends[i + 1] - ends[i] > 2e-3]
    assert max(gaps, default=0.0) < 1.95 / math.sqrt(RUNS)
    assert predicted.mean == pytest.approx(ends.mean(), abs=4 * ends.std() / math.sqrt(RUNS))


@given(st.integers(1, 60), st.floats(0.01, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_the_mean_is_dalys_to_a_few_digits(segments: int, rate: float, restart: float) -> None:
    run = a_run(work=segments * 0.5, interval=0.5, rate=rate, restart=restart)
    exact = segments * math.exp(rate * restart) * math.expm1(rate * 0.53) / rate
    assert finish(run).mean == pytest.approx(exact, rel=1e-4)


def test_the_mean_is_what_plans_are_costed_with() -> None:
    work, checkpoint, rate = np.array([40.0]), np.array([0.02]), np.array([0.1])
    interval = float(checkpoint_interval(work, checkpoint, rate)[0])
    run = SpotRun(
        work_hours=40.0,
        interval_hours=interval,
        checkpoint_hours=0.02,
        restart_hours=0.25,
        preemptions_per_hour=0.1,
    )
    assert finish(run).mean == pytest.approx(float(expected_hours(work, checkpoint, 0.25, rate)[0]), rel=2e-3)


def test_without_preemption_the_end_is_certain() -> None:
    certain = finish(a_run(work=7.0, interval=2.0, rate=0.0))
    assert certain.mean == pytest.approx(7.0 + 4 * 0.03)
    assert len(certain.hours[certain.mass > 0]) == 1


def test_more_nodes_end_later_at_every_probability() -> None:
    one, eight = finish(a_run(rate=0.02)), finish(a_run(rate=8 * 0.02))
    for probability in (0.1, 0.5, 0.9, 0.99):
        assert one.quantile(probability) <= eight.quantile(probability)


def test_an_uncertain_estimate_widens_the_end_and_leaves_its_median() -> None:
    sure, unsure = finish(a_run()), finish(a_run(), log_sigma=0.2)
    narrow, wide = (run.quantile(0.9) - run.quantile(0.1) for run in (sure, unsure))
    assert wide > 2 * narrow
    assert unsure.quantile(0.5) == pytest.approx(sure.quantile(0.5), rel=0.03)


def test_a_run_that_never_ends_is_refused_by_name() -> None:
    with pytest.raises(UnusableInput, match=r"preemptions_per_hour: .* never ends"):
        finish(a_run(rate=100.0))
    with pytest.raises(UnusableInput, match="work_hours: -1"):
        finish(a_run(work=-1.0))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_latest_moment_to_switch_keeps_the_confidence_and_no_later_one_does(confidence: float) -> None:
    run, rescue, deadline = a_run(rate=0.3), Rescue(changeover_hours=0.5, usd_per_hour=1.0), 22.5
    latest = latest_switch(run, rescue, deadline, confidence)
    assert latest is not None
    draw = random.Random(5)
    ends = []
    for _ in range(RUNS):
        saved = sum(when <= latest + 1e-9 for when in saved_at(run, draw))
        left = max(run.work_hours - saved * run.interval_hours, 0.0)
        ends.append(latest + (rescue.changeover_hours + left if left else 0.0))
    share = np.mean(np.array(ends) <= deadline + 1e-6)
    assert share >= confidence - 4 * math.sqrt(confidence * (1 - confidence) / RUNS)
    assert in_time(run, rescue, deadline, latest + run.interval_hours) < confidence


@pytest.mark.parametrize("speed", [0.6, 1.0, 1.7])
def test_the_latest_moment_is_the_latest_of_all_that_keep_the_confidence(speed: float) -> None:
    run = a_run(work=6.0, interval=0.5, rate=0.4)
    rescue, deadline = Rescue(changeover_hours=0.3, usd_per_hour=1.0, speed=speed), 7.0
    # More can be saved only as segments end, so the last of all moments lies at one of these.
    moments = [deadline - 0.3 - (6.0 - 0.5 * k) / speed for k in range(13)]
    good = [s for s in moments if s >= 0 and in_time(run, rescue, deadline, s) >= 0.9]
    switch = latest_switch(run, rescue, deadline, 0.9)
    assert switch == (pytest.approx(max(good)) if good else None)
    assert bool(good) == (speed >= 1.0)


def test_no_moment_is_named_where_even_on_demand_is_too_slow() -> None:
    assert latest_switch(a_run(), Rescue(changeover_hours=0.5, usd_per_hour=1.0), 20.2, 0.9) is None
    with pytest.raises(UnusableInput, match=r"deadline_hours: 20\.2 h is too short even on-demand"):
        spot_first(a_run(), Rescue(changeover_hours=0.5, usd_per_hour=1.0), 20.2, 0.3)


def test_a_long_deadline_needs_no_switch() -> None:
    assert latest_switch(a_run(), Rescue(changeover_hours=0.5, usd_per_hour=1.0), 60.0, 0.95) == 60.0


@pytest.mark.parametrize(("rate", "deadline"), [(0.2, 22.0), (0.6, 24.0), (0.05, 21.5)])
def test_the_cost_of_spot_first_agrees_with_a_simulation(rate: float, deadline: float) -> None:
    run, rescue, price = a_run(rate=rate), Rescue(changeover_hours=0.5, usd_per_hour=1.0), 0.3
    predicted = spot_first(run, rescue, deadline, price)
    draw, slack, costs, switched = random.Random(3), deadline - 0.5 - run.work_hours, [], 0
    for _ in range(RUNS):
        times, done = saved_at(run, draw), 0.0
        cost = times[-1] * price
        for i, when in enumerate(times):
            after = min((i + 1) * run.interval_hours, run.work_hours)
            if when - after > slack:
                cost, switched = (done + slack) * price + 0.5 + run.work_hours - done, switched + 1
                break
            done = after
        costs.append(cost)
    assert predicted.usd == pytest.approx(np.mean(costs), abs=4 * np.std(costs) / math.sqrt(RUNS) + 1e-3)
    share = switched / RUNS
    assert predicted.switch_probability == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / RUNS) + 2e-3)


def test_waits_are_on_the_clock_of_spot_first_and_not_in_its_cost() -> None:
    run, rescue = a_run(), Rescue(changeover_hours=0.25, usd_per_hour=1.0)
    waiting = SpotRun(**{name: getattr(run, name) for name in run.__dataclass_fields__} | {"wait_hours": 3.0})
    cost_breakdowns = [spot_first(run_case, rescue, 500.0, 0.3).usd for run_case in (run, waiting)]
    assert cost_breakdowns[1] == pytest.approx(cost_breakdowns[0], rel=5e-3)
    # Each of the failures waits: 1 + lambda v.
    assert finish(waiting).mean == pytest.approx(finish(run).mean * (1 + 0.2 * 3.0), rel=1e-4)
    assert spot_first(waiting, rescue, 30.0, 0.3).usd > spot_first(run, rescue, 30.0, 0.3).usd


def test_a_run_that_waits_ends_as_a_simulation_of_it() -> None:
    draw, run = random.Random(12), a_run(rate=0.3)
    waiting = SpotRun(**{name: getattr(run, name) for name in run.__dataclass_fields__} | {"wait_hours": 1.5})
    ends = []
    for _ in range(RUNS):
        clock = 0.0
        for length in [0.7] * 28 + [0.4]:
            while (until := draw.expovariate(0.3)) < length + 0.03:
                clock += until + draw.expovariate(1 / 1.5)
                while (failed := draw.expovariate(0.3)) < 0.25:
                    clock += failed + draw.expovariate(1 / 1.5)
                clock += 0.25
            clock += length + 0.03
        ends.append(clock)
    ends_sorted = np.sort(ends)
    predicted = finish(waiting)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert predicted.probability_by(float(np.quantile(ends_sorted, share))) == pytest.approx(share, abs=0.03)
