"""Runs with so much slack that nobody calls the standby are told as such, and cost what they cost by moments."""

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.spot_only_runs import never_called, priced_alone
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_switching import intervals, priced_finely
from tests.planner.strategies.standby.standby_cases import a_pair, standby_run, terms

FAR = {
    "few preemptions": (a_pair(rate=0.05), terms(deadline=400)),
    "many preemptions": (a_pair(rate=2.0, write=0.01), terms(deadline=600)),
    "waits": (a_pair(wait=3.0), terms(deadline=900)),
    "an estimate that may be wrong": (a_pair(sigma=0.3, wait=1.0), terms(deadline=1500)),
    "waits that differ between zones": (a_pair(sigma=0.1, zones=0.4, rate=0.1, wait=0.3), terms(deadline=5000)),
    "a single segment": (a_pair(work=0.4, standby_work=0.2, rate=0.01, write=0.1), terms(deadline=50)),
}


@pytest.mark.parametrize("case", FAR)
def test_a_run_far_from_its_deadline_costs_the_same_without_a_look_at_its_slack(case: str) -> None:
    pair, asked = FAR[case]
    assert never_called(pair, asked, intervals(pair)[0].tolist())
    alone, whole = priced_alone(pair, asked), priced_finely(pair, asked)
    for one, other in ((alone.legs.usd, whole.legs.usd), (alone.legs.wall_hours, whole.legs.wall_hours)):
        assert one == pytest.approx(other, rel=1e-8)
    first, second = (run.at_best(asked.confidence) for run in (alone, whole))
    assert first.interval_hours == pytest.approx(second.interval_hours, rel=1e-12)
    assert first.switch_probability[0] == second.switch_probability[0] == 0.0
    assert first.in_time[0] == second.in_time[0] == 1.0


@pytest.mark.slow(reason="12 cases")
@pytest.mark.parametrize("sigma", [0.0, 0.2])
@pytest.mark.parametrize("standby_work", [15.0, 36.0, 70.0])
@pytest.mark.parametrize("wait", [0.0, 2.0])
def test_calls_are_ruled_out_only_where_the_whole_distribution_has_none(
    sigma: float, standby_work: float, wait: float
) -> None:
    pair = a_pair(sigma=sigma, standby_work=standby_work, wait=wait)
    tried, decided = intervals(pair)[0].tolist(), []
    for deadline in (80.0, 120.0, 180.0, 300.0, 500.0, 900.0):
        asked = terms(deadline=deadline)
        decided.append(never_called(pair, asked, tried))
        if decided[-1]:
            assert all(
                standby_run(pair, asked, interval).switch_probability < 1e-9 for interval in (tried[0], tried[-1])
            )
    assert decided == sorted(decided)
    assert decided[-1]
    assert not decided[0]


def test_a_standby_that_may_come_too_late_is_not_ruled_out() -> None:
    pair: Pairs = a_pair(work=10, sigma=0.4, rate=0.001, standby_work=60)
    asked: StandbyTerms = terms(deadline=100)
    assert not never_called(pair, asked, intervals(pair)[0].tolist())
    assert np.array_equal(priced_alone(pair, asked).in_time, priced_finely(pair, asked).in_time)
