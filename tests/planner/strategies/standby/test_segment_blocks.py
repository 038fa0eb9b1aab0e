"""Blocks of segments that are drawn together change nothing."""

import math

import numpy as np
import pytest

from gpuplan.planner.strategies.standby import segment_blocks, segment_outcomes
from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun
from gpuplan.planner.strategies.standby.run_segments import Segments
from gpuplan.planner.strategies.standby.segment_blocks import ends_of_blocks, log_chance_of_a_call, merged
from gpuplan.planner.strategies.standby.spot_standby_pairs import Hazard, Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import deviations, outcomes
from tests.planner.strategies.standby.standby_cases import a_pair, standby_run, terms

CASES = {
    "far from the deadline": (a_pair(rate=0.1), terms(deadline=400)),
    "waits": (a_pair(wait=2.0), terms()),
    "an estimate that may be wrong": (a_pair(sigma=0.15, wait=1.0), terms()),
    "a standby slower than spot": (a_pair(work=30, standby_work=45, wait=2.0), terms(deadline=56)),
    "a standby four times as fast": (a_pair(work=80, standby_work=20, rate=0.01, write=0.01), terms(deadline=50)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_run_comes_to_does_not_rest_on_blocks_in_which_nobody_calls_the_standby(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, asked = CASES[case]
    interval = float(outcomes(pair, asked).interval_hours[0])
    run = standby_run(pair, asked, interval)
    monkeypatch.setattr(segment_blocks, "_NEVER_CALLED", -math.inf)
    single_run = standby_run(pair, asked, interval)
    for name in ("usd", "usd_p95", "hours", "hours_at_confidence", "spot_hours", "switch_hours"):
        assert getattr(run, name) == pytest.approx(getattr(single_run, name), rel=1e-7)
    # A chance that is none is one of rounding, and so are the hours that go with it.
    assert run.switch_probability == pytest.approx(single_run.switch_probability, abs=1e-8)
    assert run.standby_hours == pytest.approx(single_run.standby_hours, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_a_run_calls_its_standby_no_more_often_than_its_bound_says(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, asked = CASES[case]
    monkeypatch.setattr(segment_outcomes, "_NEVER_CALLED", -math.inf)
    bounded = 0
    for deadline in np.linspace(0.8, 4.0, 5) * asked.deadline_hours:
        run = PricedRun.of(pair, terms(deadline=deadline), 0.5)
        bound = np.exp(np.minimum(log_chance_of_a_call(run.runs, Hazard.of(pair, asked)), 0.0))
        assert (1.0 - run.schedule.whole <= bound + 1e-9).all()
        bounded += int((bound < 0.5).sum())
    assert bounded


def test_runs_that_call_no_standby_have_the_outcome_of_following_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, asked = a_pair(sigma=0.15, wait=1.0), terms(deadline=110)
    run = PricedRun.of(pair, asked, 0.5)
    assert 0 < run.schedule.without_losses.sum() < len(run.schedule.without_losses)
    stated = run.outcome()
    monkeypatch.setattr(segment_outcomes, "_NEVER_CALLED", -math.inf)
    followed = standby_run(pair, asked, 0.5)
    for name in ("usd", "usd_median", "usd_p95", "hours", "hours_median", "hours_p95", "spot_hours"):
        assert getattr(stated, name) == pytest.approx(getattr(followed, name), rel=1e-6)
    assert stated.switch_probability == pytest.approx(followed.switch_probability, abs=1e-8)


def test_a_standby_is_priced_only_where_it_may_be_called_more_often_than_asked() -> None:
    pair, asked = a_pair(rate=0.1), terms(deadline=90)
    chance = float(PricedRun.of(pair, asked, 0.5).legs.switch_probability[0, 0])
    assert PricedRun.if_called(pair, asked, 0.5, chance * 0.9) is not None
    assert PricedRun.if_called(pair, asked, 0.5, 0.5) is None
    assert PricedRun.if_called(pair, terms(deadline=400), 0.5, 1e-9) is None


def blocks(pair: Pairs, asked: StandbyTerms) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], ...]:
    """The ends of blocks at the middle deviation, before and after."""
    tried = np.array([[0.5]])
    z = deviations(pair, asked, tried, np.array([0.5]), np.ones(1)).z
    runs = Segments.of(pair, asked, tried, z)
    flat = Segments(
        count=runs.count[0, 0],
        length=runs.length[0, 0],
        losses=runs.losses.at((0, 0)),
        wait_hours=runs.wait_hours[0, 0],
        standby_hours=runs.standby_hours[0, 0],
        slack=runs.slack[0, 0],
        growth=runs.growth[0, 0],
    )
    ends = ends_of_blocks(flat)
    return ends[0], merged(ends, flat, Hazard.of(pair, asked))[0]


def test_a_run_with_slack_to_spare_is_a_single_block() -> None:
    before, after = blocks(a_pair(), terms(deadline=4000))
    assert len(np.unique(before)) > 20
    assert np.unique(after).tolist() == [0.0, before[-1]]


def test_blocks_where_a_call_is_likely_stay() -> None:
    before, after = blocks(a_pair(work=80, standby_work=20, rate=0.3), terms(deadline=50))
    likely = before > 0.5 * before[-1]
    assert (after[likely] == before[likely]).all()
    assert (after[~likely] == 0).sum() > (before[~likely] == 0).sum()
