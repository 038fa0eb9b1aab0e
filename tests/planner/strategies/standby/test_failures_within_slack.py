"""The share of the work that waits leave to spot, counted loss by loss, against runs that are simulated."""

import math

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun
from gpuplan.planner.strategies.standby.failures_within_slack import most_share
from gpuplan.planner.strategies.standby.standby_bound import least_at, least_by_losses
from gpuplan.planner.strategies.standby.standby_switching import intervals
from tests.planner.strategies.standby.standby_cases import a_pair, simulate, terms

RUNS = 2000


# Spot takes 20 h: slack falls, stays and grows.
@pytest.mark.parametrize(("standby_hours", "within"), [(8.0, 0.05), (20.0, 0.05), (34.0, 0.12)])
@pytest.mark.parametrize(("rate", "wait"), [(0.03, 20.0), (0.2, 12.0), (0.2, 5.0)])
def test_no_more_is_done_on_spot_than_its_bound_and_hardly_less(
    standby_hours: float, within: float, rate: float, wait: float
) -> None:
    pair = a_pair(work=20, rate=rate, wait=wait, write=0.005, standby_work=standby_hours)
    asked, interval = terms(deadline=45), 0.2
    bound = float(most_share(pair, asked, np.zeros(1), np.array([interval]))[0, 0])
    seen = simulate(pair, asked, interval, RUNS, seed=3)
    shares = 1 - (seen.standby_hours - seen.called * float(pair.changeover_hours[0])) / standby_hours
    error = 4 * shares.std() / math.sqrt(RUNS)
    assert shares.mean() - error <= bound < shares.mean() + error + within


@pytest.mark.parametrize("standby_hours", [20.0, 34.0])
def test_counting_losses_halves_what_a_bound_misses_where_waits_are_few_and_long(standby_hours: float) -> None:
    pair = a_pair(
        work=20, sigma=0.17, zones=1.0, rate=0.12, wait=1.5, write=0.01, usd=20, standby_work=standby_hours, standby_usd=60
    )  # fmt: skip
    asked = terms(deadline=60.0)
    for interval in np.unique(intervals(pair)).tolist():
        usd = PricedRun.of(pair, asked, interval).usd
        loose, close = (float(bound(pair, asked, np.array([interval]))[0]) for bound in (least_at, least_by_losses))
        assert (loose + usd) / 2 < close <= usd
