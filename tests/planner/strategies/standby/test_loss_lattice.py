"""Losses on a lattice by their transforms, against plain sums; runs by chances of sums against runs followed step by step."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.growing_slack import followed
from gpuplan.planner.strategies.standby.loss_lattice import (
    POINTS,
    SUMMED,
    chances_within,
    masses,
    segment_and_waits,
    segment_transform,
)
from gpuplan.planner.strategies.standby.preemption_losses import segment_losses
from gpuplan.planner.strategies.standby.run_segments import Segments
from gpuplan.planner.strategies.standby.segment_outcomes import segment_outcomes_of
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard, Pairs, StandbyTerms
from tests.planner.strategies.standby.standby_cases import a_pair, terms

Floats = NDArray[np.float64]

#: Hours of a segment, preemptions per hour, the wait for a new machine, the width of the lattice.
CASES = {
    "no waits": (0.8, 0.3, 0.0, 0.02),
    "waits": (0.8, 0.3, 0.7, 0.03),
    "a lattice wider than a segment": (0.05, 2.0, 0.2, 0.06),
    "preemptions in a million hours": (0.5, 1e-6, 0.5, 0.01),
}


def transform(case: str) -> tuple[Floats, NDArray[np.complex128]]:
    """The masses of what a segment loses, and their transform."""
    length, rate, wait, width = CASES[case]
    transforms = segment_transform(np.array([length]), np.array([wait]), Hazard(rate, 0.25), np.array([width]))
    return masses(transforms[0] * SUMMED), transforms


@pytest.mark.parametrize("case", CASES)
def test_a_segment_on_the_lattice_loses_as_many_hours_as_in_closed_form(case: str) -> None:
    length, rate, wait, width = CASES[case]
    mass, _ = transform(case)
    exact = segment_losses(np.array([length]), np.array([rate]), 0.25, np.array([wait]))
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert mass @ np.arange(POINTS) * width == pytest.approx(float(exact.mean_hours[0]), rel=1e-6, abs=1e-10)
    variance = mass @ (np.arange(POINTS) * width) ** 2 - (mass @ np.arange(POINTS) * width) ** 2
    # Every cell keeps its mean, not its spread: each of a few jumps adds up to a quarter of the width's square.
    assert variance == pytest.approx(float(exact.variance[0]), abs=4 * width**2)


def test_hours_waited_among_those_lost_are_those_of_runs_followed_failure_by_failure() -> None:
    length, rate, wait, width, runs, segments = 0.8, 0.6, 0.7, 0.02, 50_000, 3
    draw = np.random.default_rng(4)
    lost, waited = np.zeros((2, runs))
    for _ in range(segments):
        behind = np.arange(runs)
        while len(behind):
            until = draw.exponential(1 / rate, len(behind))
            behind, until = behind[until < length], until[until < length]
            lost[behind] += until
            down = behind
            while len(down):
                pause, up = draw.exponential(wait, len(down)), draw.exponential(1 / rate, len(down))
                waited[down] += pause
                lost[down] += pause + np.minimum(up, 0.25)
                down = down[up < 0.25]
    hazard = Hazard(rate, 0.25)
    one, waits = segment_and_waits(np.array([length]), np.array([wait]), hazard, np.array([width]))
    hours = np.cumsum(masses(segments * waits[0] * one[0] ** segments * SUMMED))
    assert one == pytest.approx(segment_transform(np.array([length]), np.array([wait]), hazard, np.array([width])))
    for within in (0.0, 0.4, 1.0, 2.0, 5.0, 20.0):
        some = np.where(lost <= within + width / 2, waited, 0.0)
        assert abs(hours[round(within / width)] - some.mean()) <= 4 * some.std() / runs**0.5 + 1e-9


@pytest.mark.parametrize("case", CASES)
def test_chances_of_sums_are_those_of_masses_added_up_one_by_one(case: str) -> None:
    mass, one = transform(case)
    added, power = np.eye(1, POINTS)[0], SUMMED[None]
    last = np.array([-1, 0, 1, 31, 32, 400, POINTS - 1])
    for _ in range(7):
        added, power = np.convolve(added, mass)[:POINTS], power * one
        chances = chances_within(np.repeat(power, len(last), axis=0), last)
        assert chances == pytest.approx([added[: end + 1].sum() for end in last], abs=1e-9)


def test_losses_far_beyond_the_lattice_do_not_come_back_as_small_ones() -> None:
    one = segment_transform(np.array([2.0]), np.array([5.0]), Hazard(3.0, 0.25), np.array([0.01]))
    power = (one**40 * SUMMED).repeat(2, axis=0)
    assert chances_within(power, np.array([0, POINTS - 1])) == pytest.approx([0.0, 0.0], abs=1e-9)


#: Slack that segments use up, that stays, and too little for a single loss.
FALLING = {
    "a faster standby": (a_pair(work=3, standby_work=1.5, rate=0.8, write=0.05, wait=0.3), terms(deadline=5.0), 0.3),
    "hardly any slack": (a_pair(work=3, standby_work=2.9, rate=0.5, write=0.05), terms(deadline=4.1), 0.3),
    "one that is as fast but for checkpoints": (
        a_pair(work=3, standby_work=3, rate=0.5, write=0.01),
        terms(deadline=6),
        0.5,
    ),
}


def segments(pair: Pairs, asked: StandbyTerms, interval: float) -> Segments:
    runs = Segments.of(pair, asked, np.array([[interval]]), np.zeros((1, 1, 1)))
    return runs.at(np.array([0])).where(np.ones((1, 1, 1), np.bool_))


@pytest.mark.parametrize("case", FALLING)
def test_runs_fare_as_they_do_when_followed_segment_by_segment(case: str) -> None:
    pair, asked, interval = FALLING[case]
    runs, hazard = segments(pair, asked, interval), Hazard.of(pair, asked)
    schedule = segment_outcomes_of(runs, hazard)
    lattice, count = float(schedule.lattice[0]), int(runs.count[0])
    segment = segment_transform(runs.length, runs.wait_hours, hazard, schedule.lattice)
    mass = masses(segment[0] * SUMMED)
    at, alive, passed, failed = np.arange(POINTS) * lattice, np.eye(1, POINTS)[0], 0.0, 0.0
    for done in range(count):
        slack = float(runs.slack[0] + done * runs.growth[0])
        fit = alive * (at <= slack + 1e-6 * lattice)
        after = np.convolve(fit, mass)[:POINTS] * (at <= slack + 1e-6 * lattice)
        failed, passed, alive = failed + fit.sum() - after.sum(), passed + after.sum(), after
    assert schedule.passed[0] == pytest.approx(passed, abs=1e-7)
    assert schedule.whole[0] == pytest.approx(alive.sum(), abs=1e-8)
    assert schedule.failed[0] == pytest.approx(failed, abs=1e-7)
    assert schedule.losses[0] == pytest.approx(alive, abs=1e-9)


def test_runs_whose_slack_stays_are_told_alike_by_sums_and_by_following_them() -> None:
    runs = segments(a_pair(work=6, standby_work=6, rate=0.6, write=0.0, wait=0.5), terms(deadline=9), 0.25)
    assert runs.growth[0] == 0
    schedule = segment_outcomes_of(runs, Hazard(0.6, 0.25))
    ends = np.concatenate((np.zeros((1, 1)), schedule.ends), axis=1)
    segment = segment_transform(runs.length, runs.wait_hours, Hazard(0.6, 0.25), schedule.lattice)
    on_spot, losses = followed(runs, np.arange(ends[0, -1] + 1)[None], segment, schedule.lattice)
    assert 0.1 < schedule.whole[0] < 0.9
    assert on_spot[0, ends[0].astype(np.int64)] == pytest.approx(
        1.0 - np.append(0.0, np.cumsum(schedule.called)), abs=1e-8
    )
    assert losses == pytest.approx(schedule.losses, abs=1e-8)
