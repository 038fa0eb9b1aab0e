"""Spot under a net: when the standby is called, on a failure or between segments, and what is paid until then."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import outcomes
from gpuplan.planner.verify.standby_replay import Pair, Rule, figures, replayed
from tests.planner.strategies.standby.standby_cases import a_pair, simulate, standby_run, terms

RUNS = 3000
#: Slack that segments use up themselves, slack that only losses use up, slack that grows, and all of it soon.
CASES = {
    "a standby four times as fast, hardly a failure": (
        a_pair(work=8, standby_work=2, rate=0.01, write=0.01),
        terms(deadline=4),
    ),
    "a standby four times as fast, many failures": (
        a_pair(work=8, standby_work=2, rate=1.5, write=0.01, wait=1.0),
        terms(deadline=5),
    ),
    "called after one of many segments": (
        a_pair(work=30, standby_work=10, rate=3.0, write=1e-4, wait=1.7),
        terms(deadline=16),
    ),
    "a standby half as fast, long waits": (
        a_pair(work=30, standby_work=60, rate=0.2, write=0.002, wait=1.7),
        terms(deadline=64),
    ),
    "a single segment": (a_pair(work=0.4, standby_work=0.2, rate=0.3, write=0.1), terms(deadline=2)),
}


def standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std()) / math.sqrt(RUNS)


def at_its_interval(case: str) -> tuple[Pairs, StandbyTerms, float]:
    pair, asked = CASES[case]
    return pair, asked, float(outcomes(pair, asked).interval_hours[0])


@pytest.mark.parametrize("case", CASES)
def test_hours_on_either_machine_and_calls_are_those_of_the_rule(case: str) -> None:
    pair, asked, interval = at_its_interval(case)
    run, seen = standby_run(pair, asked, interval), simulate(pair, asked, interval, RUNS, seed=8)
    for predicted, values in (
        (run.spot_hours, seen.spot_hours),
        (run.standby_hours, seen.standby_hours),
        (run.switch_probability, seen.called.astype(np.float64)),
    ):
        assert abs(predicted - values.mean()) <= 3.5 * standard_error(values) + 0.003


def test_a_restart_is_spared_only_where_a_failure_calls_the_standby() -> None:
    """Nobody fails here, so whoever calls the standby has paid all hours until then, however long a restart is."""
    pair = a_pair(work=8, standby_work=2, rate=1e-6, write=0.01)
    brief, long = (StandbyTerms(deadline_hours=4, confidence=0.9, restart_hours=restart) for restart in (0.01, 0.5))
    interval = 0.1
    first, second = standby_run(pair, brief, interval), standby_run(pair, long, interval)
    assert first.switch_probability == pytest.approx(1.0, abs=1e-4)
    assert second.spot_hours == pytest.approx(first.spot_hours, abs=1e-4)
    seen = outcomes(pair, long)
    assert seen.spot_hours[0] == pytest.approx(standby_run(pair, long, seen.interval_hours[0]).spot_hours, rel=0.02)


def by_rule(pair: Pairs, asked: StandbyTerms) -> tuple[Pair, Rule]:
    """The pair and the terms as the replay of `verify` takes them."""

    def of(name: str) -> float:
        return float(getattr(pair, name)[0])

    alone = Pair(
        work_hours=of("work_hours"),
        log_sigma=of("log_sigma"),
        preemptions_per_hour=of("rate"),
        checkpoint_hours=of("checkpoint_hours"),
        usd_per_hour=of("usd_per_hour"),
        clock_usd_per_hour=of("storage_usd_per_hour"),
        fixed_usd=of("fixed_usd"),
        standby_work_hours=of("standby_work_hours"),
        standby_log_sigma=of("standby_log_sigma"),
        standby_usd_per_hour=of("standby_usd_per_hour"),
        standby_fixed_usd=of("standby_fixed_usd"),
        changeover_hours=of("changeover_hours"),
        zone_log_sigma=math.sqrt(of("wall_log_sigma") ** 2 - of("log_sigma") ** 2),
    )
    return alone, Rule(asked.deadline_hours, of("setup_hours"), asked.restart_hours, of("wait_hours"))


#: Waits that end in a call, none, a standby twice and four times as fast, and one half as fast.
SPREAD = {
    "waits of an hour": (a_pair(sigma=0.2, wait=1.0), terms(deadline=60)),
    "back at once": (a_pair(sigma=0.2), terms(deadline=55)),
    "a standby twice as fast": (a_pair(work=20, sigma=0.3, rate=0.5, wait=0.3, standby_work=10), terms(deadline=18)),
    "a standby four times as fast, long waits": (
        a_pair(work=8, sigma=0.2, rate=0.2, wait=1.7, write=0.01, standby_work=2),
        terms(deadline=6),
    ),
    "a standby half as fast, long waits": (
        a_pair(work=30, sigma=0.2, rate=0.2, wait=1.7, write=0.002, standby_work=60),
        terms(deadline=70, confidence=0.7),
    ),
    "waits that differ between zones": (a_pair(sigma=0.2, zones=0.8, rate=0.1, wait=1.0), terms(deadline=65)),
}
#: Waits of most different means, after few and many preemptions.
ZONES = {
    "rarely preempted": (a_pair(work=5, sigma=0.2, zones=1.6, rate=0.12, wait=2.0, standby_work=5), terms(deadline=12)),
    "often preempted": (a_pair(sigma=0.3, zones=1.2, rate=0.5, wait=0.5, standby_work=20), terms(deadline=80)),
    "waits that most zones do not have": (
        a_pair(work=3.3, sigma=0.38, zones=2.0, rate=0.44, wait=1.8, write=0.001, standby_work=14),
        terms(deadline=634),
    ),
    "a standby slower than spot": (
        a_pair(work=30, sigma=0.2, zones=2.0, rate=0.1, wait=4.0, standby_work=50),
        terms(deadline=75, confidence=0.7),
    ),
}


@pytest.mark.parametrize("case", ZONES)
def test_waits_that_differ_between_zones_take_time_but_are_not_paid(case: str) -> None:
    pair, asked = ZONES[case]
    run = PricedRun.of(pair, asked, float(outcomes(pair, asked).interval_hours[0]))
    stated, replay = run.outcome(), replayed(*by_rule(pair, asked), run.interval_hours, batches=8)
    rescued = np.where(replay.called, pair.changeover_hours[0] + replay.standby, 0.0)
    usd = pair.usd_per_hour[0] * replay.paid + pair.standby_usd_per_hour[0] * rescued
    assert stated.usd == pytest.approx(float(usd.mean()), rel=0.01)
    assert stated.hours == pytest.approx(float(replay.end.mean()), rel=0.015)
    assert stated.spot_wall_hours == pytest.approx(float(replay.on_clock.mean()), rel=0.015)
    assert stated.switch_probability == pytest.approx(float(replay.called.mean()), abs=0.02)
    assert stated.hours_median == pytest.approx(float(np.median(replay.end)), rel=0.03)


@pytest.mark.parametrize("case", SPREAD)
def test_runs_end_and_call_when_replayed_ones_do(case: str) -> None:
    """A run that calls ends before the deadline by what its segment, its restart and its wait leave."""
    pair, asked = SPREAD[case]
    run = PricedRun.of(pair, asked, float(outcomes(pair, asked).interval_hours[0]))
    stated, spread, replay = run.outcome(), run.spread(), replayed(*by_rule(pair, asked), run.interval_hours, batches=8)
    for before in (4.0, 2.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.02):
        share = float((replay.end <= asked.deadline_hours - before).mean())
        assert spread.probability_by(asked.deadline_hours - before) == pytest.approx(share, abs=0.045)
    assert stated.hours == pytest.approx(float(replay.end.mean()), rel=0.002)
    called_at = float(replay.called_at[replay.called & ~replay.late].mean())
    assert stated.switch_hours == pytest.approx(called_at, rel=0.015)


@pytest.mark.parametrize("deadline", [1.5, 1.7, 1.9, 2.1, 2.3, 2.5])
def test_a_run_of_few_segments_is_priced_by_whole_ones_whatever_the_error_of_the_estimate(deadline: float) -> None:
    """How many segments are passed before the standby is called steps up and down with the estimate's error."""
    pair, asked = a_pair(work=3.2, standby_work=0.8, sigma=0.4, rate=0.002, write=0.02), terms(deadline=deadline)
    seen = figures(*by_rule(pair, asked), 0.4, 0.9).paid_hours
    assert seen.allows(standby_run(pair, asked, 0.4).spot_hours, share=0.04)
