"""Pairs that are too dear are told before all of their run is priced, and only those."""

import numpy as np
import pytest

from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun
from gpuplan.planner.strategies.standby.standby_bound import least_at
from gpuplan.planner.strategies.standby.standby_switching import intervals, outcomes
from tests.planner.strategies.standby.standby_cases import a_pair, some_offers, terms


@pytest.mark.slow(reason="3 cases")
@pytest.mark.parametrize("seed", range(6))
def test_a_pair_is_too_dear_where_its_whole_price_is_and_else_comes_to_that(seed: int) -> None:
    offered, asked = some_offers(seed, 3, 3, wait=float(seed % 2)), terms(deadline=20.0 + 8 * seed)
    spot, standby = np.nonzero(offered.allowed)
    pairs = offered.pairs(spot, standby)
    outcome = outcomes(pairs, asked)
    compared = 0
    for i in np.flatnonzero(np.isfinite(outcome.usd)):
        pair, interval = pairs.take(np.array([i])), float(outcome.interval_hours[i])
        whole = PricedRun.of(pair, asked, interval)
        for part in (0.8, 0.97, 0.999, 1.001, 1.2):
            run = PricedRun.below(pair, asked, interval, whole.usd * part)
            if run is None:
                assert part < 1
                compared += 1
                continue
            assert run.usd == pytest.approx(whole.usd, rel=1e-12)
            assert run.outcome().usd_p95 == pytest.approx(whole.outcome().usd_p95, rel=1e-9)
    assert compared > 0 or not np.isfinite(outcome.usd).any()


@pytest.mark.parametrize("seed", range(4))
def test_no_pair_comes_to_less_at_an_interval_than_its_bound_there(seed: int) -> None:
    offered, asked = some_offers(seed, 2, 2, wait=1.0), terms(deadline=60.0, confidence=0.3)
    pairs, close = offered.pairs(np.array([0, 0, 1]), np.array([0, 1, 1])), 0
    for i in range(len(pairs)):
        pair = pairs.take(np.array([i]))
        for interval in np.unique(intervals(pair)).tolist():
            bound = float(least_at(pair, asked, np.array([interval]))[0])
            if not np.isfinite(bound):
                continue
            usd = PricedRun.of(pair, asked, interval).usd
            assert bound <= usd
            close += bound > 0.85 * usd
    assert close > 0


@pytest.mark.parametrize("billing_hours", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_a_slow_run_counts_the_hours_on_spot_until_its_call(seed: int, billing_hours: float) -> None:
    """Slow runs cost more than their standby, but may not call it before their slack is used up."""
    pair = a_pair(
        work=19.6, sigma=0.22, rate=0.05 + 0.03 * seed, wait=1.05, write=0.001, usd=0.516, standby_work=23.5, standby_usd=0.6,
        changeover=0.16, setup=0.15,
    )  # fmt: skip
    pair.log_sigma[:] = 0.5 + 0.1 * seed
    pair.step_hours[:] = pair.standby_step_hours[:] = billing_hours
    for interval in np.unique(intervals(pair)).tolist():
        bound = float(least_at(pair, terms(deadline=48.0), np.array([interval]))[0])
        usd = PricedRun.of(pair, terms(deadline=48.0), interval).usd
        assert 0.93 * usd < bound <= usd
