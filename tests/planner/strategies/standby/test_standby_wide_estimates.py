"""Spot under a net where the estimate may be far off: it, not preemption, then decides whether the standby is called."""

import math
from functools import cache

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.exact_standby_run import StandbyRun
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import finely, outcomes
from tests.planner.strategies.standby.standby_cases import Simulated, a_pair, simulate, standby_run, terms

RUNS = 3000
SECONDS = 5 / 3600
CASES = {
    "few losses": (a_pair(work=100, standby_work=90, sigma=0.4, rate=0.1), terms(deadline=179)),
    "a standby as slow as spot": (
        a_pair(work=60, standby_work=60, sigma=0.4, rate=0.2, write=0.05),
        terms(deadline=118),
    ),
    "waits that differ between zones": (
        a_pair(work=40, standby_work=36, sigma=0.2, zones=1.0, rate=0.1, wait=1.0),
        terms(deadline=75),
    ),
    "in time four times of five": (
        a_pair(work=60, standby_work=50, sigma=0.4, rate=0.2),
        terms(deadline=72, confidence=0.8),
    ),
}


@cache
def of(case: str) -> tuple[Pairs, StandbyTerms, StandbyRun, Simulated]:
    pair, asked = CASES[case]
    interval = float(outcomes(pair, asked).interval_hours[0])
    return pair, asked, standby_run(pair, asked, interval), simulate(pair, asked, interval, RUNS, seed=11)


@pytest.mark.parametrize("case", CASES)
def test_the_standby_is_called_as_often_as_in_a_simulation(case: str) -> None:
    _, _, run, seen = of(case)
    error = math.sqrt(seen.called.mean() * (1 - seen.called.mean()) / RUNS)
    assert abs(run.switch_probability - seen.called.mean()) < 3 * error


@pytest.mark.parametrize("case", CASES)
def test_nineteen_of_twenty_runs_cost_no_more_and_take_no_longer_than_is_said(case: str) -> None:
    pair, _, run, seen = of(case)
    usd = seen.spot_hours * pair.usd_per_hour[0] + seen.standby_hours * pair.standby_usd_per_hour[0]
    within = 3 * math.sqrt(0.95 * 0.05 / RUNS)
    assert abs((usd <= run.usd_p95).mean() - 0.95) < within
    # Runs that call the standby end within seconds of each other.
    assert (seen.ends <= run.hours_p95 - SECONDS).mean() - 0.95 < within
    assert (seen.ends <= run.hours_p95 + SECONDS).mean() - 0.95 > -within


@pytest.mark.parametrize("case", CASES)
def test_hours_at_a_chance_exceed_the_deadline_only_where_that_chance_is_not_reached(case: str) -> None:
    _, asked, run, _ = of(case)
    assert (run.hours_p95 > asked.deadline_hours) == (run.in_time < 0.95)
    assert run.hours_at_confidence <= asked.deadline_hours


def test_runs_that_are_rescued_at_the_last_moment_are_not_said_to_end_earlier_than_they_do() -> None:
    pair, asked = a_pair(work=6, standby_work=5, rate=0.3, write=0.3), terms(deadline=7.5, confidence=0.9)
    interval = float(outcomes(pair, asked).interval_hours[0])
    run, seen = standby_run(pair, asked, interval), simulate(pair, asked, interval, RUNS, seed=3)
    assert np.quantile(seen.ends, 0.9) <= run.hours_at_confidence <= asked.deadline_hours


@pytest.mark.parametrize("case", CASES)
def test_a_contingency_standby_is_said_to_be_needed_as_often_as_in_a_simulation(case: str) -> None:
    pair, asked, _, seen = of(case)
    chance = float(finely(pair, asked).switch_probability[0])
    assert abs(chance - seen.called.mean()) < 3 * math.sqrt(seen.called.mean() * (1 - seen.called.mean()) / RUNS)
