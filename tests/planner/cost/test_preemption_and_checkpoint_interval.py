"""Expected time under preemption, against a simulation of the same process."""

import math
import random

import numpy as np
import pytest

from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval, expected_hours, interrupted


def simulated(work: float, checkpoint: float, restart: float, rate: float, draw: random.Random) -> float:
    """One run: segments of tau hours and a checkpoint, each begun again after a failure and a restart that may fail too."""
    tau = float(checkpoint_interval(np.array([work]), np.array([checkpoint]), np.array([rate]))[0])
    left, clock = work, 0.0
    while left > 1e-12:
        length = min(tau, left) + checkpoint
        until = draw.expovariate(rate)
        if until >= length:
            clock += length
            left -= min(tau, left)
            continue
        clock += until
        while (failure := draw.expovariate(rate)) < restart:
            clock += failure
        clock += restart
    return clock


@pytest.mark.slow(reason="3 cases")
@pytest.mark.parametrize(("work", "rate"), [(20.0, 0.05), (100.0, 0.1), (50.0, 0.5)])
def test_the_expected_hours_and_their_spread_agree_with_a_simulation(work: float, rate: float) -> None:
    checkpoint, restart, draw = 0.02, 0.25, random.Random(7)
    runs = [simulated(work, checkpoint, restart, rate, draw) for _ in range(3000)]
    mean, sd = float(np.mean(runs)), float(np.std(runs))
    predicted = expected_hours(np.array([work]), np.array([checkpoint]), restart, np.array([rate]))
    assert mean == pytest.approx(float(predicted[0]), abs=4 * sd / math.sqrt(len(runs)) + 0.01 * mean)
    spread = interrupted(
        np.array([work]), np.array([checkpoint]), restart, np.array([rate]), wait_hours=np.zeros(1)
    ).log_variance
    assert mean * math.sqrt(math.expm1(float(spread[0]))) == pytest.approx(sd, rel=0.25)


def test_without_preemption_the_work_takes_its_own_time() -> None:
    assert expected_hours(np.array([12.0]), np.array([0.1]), 0.25, np.array([0.0])).tolist() == [12.0]


def test_a_run_that_is_preempted_faster_than_it_restarts_never_ends() -> None:
    assert math.isinf(float(expected_hours(np.array([10.0]), np.array([0.1]), 50.0, np.array([30.0]))[0]))


def test_more_preemptions_never_shorten_a_run() -> None:
    rates = np.linspace(0.0, 2.0, 40)
    hours = expected_hours(np.full(40, 30.0), np.full(40, 0.05), 0.25, rates)
    assert (np.diff(hours) >= 0).all()


def test_the_interval_is_that_of_young_and_never_longer_than_the_work() -> None:
    interval = checkpoint_interval(np.array([100.0, 0.5]), np.array([0.02, 0.02]), np.array([0.01, 0.01]))
    assert interval.tolist() == pytest.approx([2.0, 0.5])
