"""Spot under a net: the exact run against a simulation, moments against the exact run, the search against brute force."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.planner.cost.preemption_and_checkpoint_interval import expected_hours
from gpuplan.planner.strategies.standby import offered_pairs, standby_search
from gpuplan.planner.strategies.standby.normal_cells import COARSE
from gpuplan.planner.strategies.standby.offered_pairs import Offered
from gpuplan.planner.strategies.standby.preemption_losses import chance_within, normal_cdf, segment_losses
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, StandbyTerms
from gpuplan.planner.strategies.standby.standby_bound import least as bound_of_pairs
from gpuplan.planner.strategies.standby.standby_search import cheapest_pair
from gpuplan.planner.strategies.standby.standby_switching import Floats, intervals, outcomes
from tests.planner.strategies.standby.standby_cases import (
    a_pair,
    node_counts_of_one_machine,
    simulate,
    some_offers,
    standby_run,
    terms,
)

RUNS = 4000
CASES = {
    "waits": (a_pair(wait=2.0), terms()),
    "an estimate that may be wrong": (a_pair(sigma=0.15, wait=1.0), terms()),
    "a standby slower than spot": (a_pair(work=30, standby_work=45, wait=2.0), terms(deadline=56)),
    "hardly any slack": (a_pair(standby_work=40), terms(deadline=44)),
    "a standby twice as fast": (a_pair(work=55, standby_work=30, rate=0.1, wait=2.0), terms()),
    "long checkpoints": (a_pair(work=6, standby_work=5, rate=0.2, write=0.3, wait=1.0), terms(deadline=9)),
    # Runs whose hours lost are nearly all paid, beside calls after waits that nobody pays.
    "few losses with long waits": (
        a_pair(work=0.7, sigma=0.15, rate=0.4, wait=1.2, write=0.001, standby_work=0.5, standby_usd=6.0),
        terms(deadline=2.4),
    ),
}


@pytest.mark.slow(reason="7 cases")
@pytest.mark.parametrize("case", CASES)
def test_the_exact_run_agrees_with_a_simulation(case: str) -> None:
    pair, asked = CASES[case]
    interval = float(outcomes(pair, asked).interval_hours[0])
    run, seen = standby_run(pair, asked, interval), simulate(pair, asked, interval, RUNS, seed=5)

    def near(predicted: float, values: np.ndarray[tuple[int], np.dtype[np.float64]], within: float = 0.0) -> bool:
        return bool(abs(predicted - values.mean()) <= 4 * values.std() / math.sqrt(RUNS) + within)

    assert near(run.spot_hours, seen.spot_hours, within=0.05)
    assert near(run.standby_hours, seen.standby_hours, within=0.05)
    assert near(run.switch_probability, seen.called.astype(np.float64), within=1e-3)
    assert abs(run.in_time - (seen.ends <= asked.deadline_hours + 1e-9).mean()) < 0.01
    # A run that calls the standby ends between the deadline and an interval and a restart before it.
    apart = interval + float(pair.checkpoint_hours[0]) + asked.restart_hours
    assert run.hours == pytest.approx(seen.ends.mean(), abs=apart)
    for share, hours in ((0.5, run.hours_median), (0.9, run.hours_at_confidence), (0.95, run.hours_p95)):
        assert hours == pytest.approx(np.quantile(seen.ends, share), abs=apart)
    usd = seen.spot_hours * pair.usd_per_hour[0] + seen.standby_hours * pair.standby_usd_per_hour[0]
    # Whether a run calls the standby sets its cost apart, in the middle of the distribution.
    assert run.usd_median == pytest.approx(np.quantile(usd, 0.5), rel=0.08)
    assert run.usd_p95 == pytest.approx(np.quantile(usd, 0.95), rel=0.025)


@pytest.mark.parametrize("case", CASES)
def test_no_run_ends_late_whose_standby_is_fast_enough(case: str) -> None:
    pair, asked = CASES[case]
    interval = float(outcomes(pair, asked).interval_hours[0])
    seen = simulate(pair, asked, interval, 400, seed=6)
    late = seen.ends > asked.deadline_hours + 1e-9
    room = asked.deadline_hours - float(pair.setup_hours[0]) - float(pair.changeover_hours[0]) - interval
    assert not (late & (seen.factor * float(pair.standby_work_hours[0]) < room - 0.5)).any()


def test_moments_are_near_the_exact_run_where_the_slack_does_not_grow() -> None:
    for pair, asked in (named_case for name, named_case in CASES.items() if "slower" not in name):
        outcome = outcomes(pair, asked)
        exact = standby_run(pair, asked, float(outcome.interval_hours[0]))
        assert outcome.usd[0] == pytest.approx(exact.usd, rel=0.01)
        assert outcome.switch_probability[0] == pytest.approx(exact.switch_probability, abs=0.02)
        assert outcome.in_time[0] == pytest.approx(exact.in_time, abs=1e-9)


def test_moments_are_in_favour_of_a_standby_slower_than_spot() -> None:
    pair, asked = CASES["a standby slower than spot"]
    outcome = outcomes(pair, asked)
    assert outcome.usd[0] < standby_run(pair, asked, float(outcome.interval_hours[0])).usd


def test_with_time_to_spare_the_cost_is_that_of_spot_alone() -> None:
    pair, asked = a_pair(rate=0.1), terms(deadline=400)
    alone = float(expected_hours(pair.work_hours, pair.checkpoint_hours, 0.25, pair.rate)[0])
    run = standby_run(pair, asked, float(outcomes(pair, asked).interval_hours[0]))
    assert run.usd == pytest.approx(3.0 * (0.25 + alone), rel=2e-3)
    assert run.hours == pytest.approx(0.25 + alone, rel=2e-3)
    assert run.switch_probability < 1e-6


def test_waits_make_a_run_slower_and_no_dearer() -> None:
    runs = [standby_run(a_pair(rate=0.1, wait=wait), terms(deadline=900), 0.5) for wait in (0.0, 3.0)]
    assert runs[1].usd == pytest.approx(runs[0].usd, rel=1e-6)
    # 1 + lambda v, on the hours after set-up.
    assert runs[1].hours - 0.25 == pytest.approx((runs[0].hours - 0.25) * (1 + 0.1 * 3.0), rel=1e-3)


def test_a_standby_that_is_too_slow_is_refused_however_cheap() -> None:
    pair = a_pair(standby_work=59.6, standby_usd=0.1)
    assert np.isinf(outcomes(pair, terms(deadline=60)).usd[0])


def test_the_probability_of_being_in_time_is_that_of_the_standby() -> None:
    pair, asked = a_pair(sigma=0.2, standby_work=40, rate=0.05), terms(deadline=55, confidence=0.5)
    outcome = outcomes(pair, asked)
    interval = float(outcome.interval_hours[0]) + 0.03
    z = math.log((55 - 0.25 - interval - 0.25) / 40) / 0.2
    assert outcome.in_time[0] == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2)), abs=1e-6)


@given(st.floats(0.05, 4.0), st.floats(0.005, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 5.0))
@settings(max_examples=60, deadline=None)
def test_segments_cost_what_daly_says(length: float, rate: float, restart: float, wait: float) -> None:
    losses = segment_losses(np.array([length]), np.array([rate]), restart, np.array([wait]))
    paid = math.exp(rate * restart) * math.expm1(rate * length) / rate
    assert float(losses.paid_hours[0]) == pytest.approx(paid, rel=1e-6)
    assert length + float(losses.mean_hours[0]) == pytest.approx(paid * (1 + rate * wait), rel=1e-6)
    assert float(losses.variance[0]) >= 0


def test_the_chance_of_staying_within_the_slack_grows_with_it_from_none_to_all() -> None:
    losses = segment_losses(np.array([0.7]), np.array([0.3]), 0.25, np.array([1.0]))
    chance = chance_within(losses, np.array([40.0]), np.linspace(-1, 200, 400))
    assert chance[0] == 0
    assert (np.diff(chance) >= -1e-12).all()
    assert chance[-1] == pytest.approx(1.0, abs=1e-6)


def test_the_normal_distribution_function_is_good_to_seven_digits() -> None:
    z = np.linspace(-6, 6, 400)
    assert np.abs(normal_cdf(z) - [0.5 * math.erfc(-value / math.sqrt(2)) for value in z]).max() < 1e-7


def every_pair(offered: Offered, asked: StandbyTerms) -> tuple[Pairs, Floats]:
    """All pairs, and what each costs exactly at the best of the intervals that are tried; infinite where none is in time."""
    pairs = offered.pairs(*np.nonzero(offered.allowed))
    best = np.full(len(pairs), np.inf)
    for i in np.flatnonzero(np.isfinite(outcomes(pairs, asked).usd)):
        pair = pairs.take(np.array([i]))
        runs = [standby_run(pair, asked, interval) for interval in intervals(pair)[0].tolist()]
        best[i] = min(run.usd for run in runs if run.in_time >= asked.confidence)
    return pairs, best


@pytest.mark.slow(reason="10 cases")
@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_what_pricing_every_pair_exactly_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = terms(deadline=float(rng.uniform(20, 60)))
    offered = some_offers(seed, 4, 4, wait=float(rng.choice([0.0, 2.0])))
    pairs, least = every_pair(offered, asked)
    search = cheapest_pair(offered, asked)
    if np.isinf(least).all():
        assert search.best is None
        return
    assert search.best is not None
    assert search.best.run.usd == pytest.approx(least.min(), rel=1e-12)
    at = np.flatnonzero((pairs.spot == search.best.spot) & (pairs.standby == search.best.standby))
    assert search.best.run.usd == pytest.approx(float(least[at[0]]), rel=1e-12)
    assert search.left_open == 0
    # No pair costs less than its bound.
    bound = bound_of_pairs(pairs, asked, COARSE)
    assert (bound <= least * (1 + 1e-9)).all()


@pytest.mark.slow(reason="16 cases")
@pytest.mark.parametrize("seed", range(16))
def test_blocks_of_standbys_hide_no_pair(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standbys of several spreads, whose blocks are taken apart in three steps, beside a search without blocks."""
    offered, asked = some_offers(seed, 6, 90, wait=float(seed % 2)), terms(deadline=float(20 + 3 * seed))
    spreads = np.array([0.05, 0.15, 0.3])[np.random.default_rng(seed).integers(0, 3, 90)]
    offered = replace(offered, standbys=replace(offered.standbys, log_sigma=spreads))
    most_usd = float(np.random.default_rng(seed).uniform(100, 400))
    bounds_by_pair = []
    for blocks in ((), (32, 8, 2)):
        monkeypatch.setattr(offered_pairs, "_BLOCKS", blocks)
        spot, standby, bound = offered_pairs.pairs_below(offered, asked, most_usd)
        bounds_by_pair.append(dict(zip(zip(spot.tolist(), standby.tolist(), strict=True), bound.tolist(), strict=True)))
    assert 0 < len(bounds_by_pair[0]) < offered.allowed.sum()
    assert bounds_by_pair[0] == bounds_by_pair[1]
    assert all(offered.allowed[pair] for pair in bounds_by_pair[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_first_price_hides_no_cheaper_pair(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offered, asked = some_offers(seed, 5, 60, wait=1.0), terms(deadline=float(30 + 5 * seed))
    monkeypatch.setattr(offered_pairs, "_BLOCKS", (8, 2))
    monkeypatch.setattr(offered_pairs, "_MANY_BLOCKS", 10**9)
    without = cheapest_pair(offered, asked)
    monkeypatch.setattr(offered_pairs, "_MANY_BLOCKS", 0)
    monkeypatch.setattr(offered_pairs, "_FIRST_BLOCKS", 1)
    first = cheapest_pair(offered, asked)
    assert without.best is not None
    assert first.best is not None
    assert (first.best.spot, first.best.standby) == (without.best.spot, without.best.standby)
    assert first.best.run.usd == without.best.run.usd


@pytest.mark.slow(reason="one long case")
def test_no_pair_is_left_open_where_dozens_cost_nearly_the_same() -> None:
    offered, asked = node_counts_of_one_machine(range(9, 17), range(8, 16)), terms(deadline=1.664)
    _, least = every_pair(offered, asked)
    search = cheapest_pair(offered, asked)
    assert search.best is not None
    assert search.best.run.usd == pytest.approx(least.min(), rel=1e-12)
    assert search.left_open == 0
    assert search.exactly > 24


@pytest.mark.slow(reason="6 cases")
@pytest.mark.parametrize("sigma", [0.0, 0.4])
@pytest.mark.parametrize("deadline", [100.0, 150.0, 265.0])
def test_the_bound_holds_where_estimates_are_wide_and_preemptions_few(sigma: float, deadline: float) -> None:
    """A bound with kinks in the estimate's error, which few points of it do not see."""
    offered = some_offers(0, 6, 6)
    spots = replace(
        offered.spots,
        work_hours=np.linspace(60, 160, 6),
        log_sigma=np.full(6, sigma),
        wall_log_sigma=np.full(6, sigma),
        rate=np.full(6, 0.003),
    )
    standbys = replace(offered.standbys, work_hours=np.linspace(40, 120, 6), log_sigma=np.full(6, sigma))
    offered = replace(offered, spots=spots, standbys=standbys)
    asked = terms(deadline=deadline, confidence=0.3)
    spot, standby = np.nonzero(offered.allowed)
    pairs = offered.pairs(spot, standby)
    outcome = outcomes(pairs, asked)
    bound = bound_of_pairs(pairs, asked, COARSE)
    for i in np.flatnonzero(np.isfinite(outcome.usd))[::4]:
        assert bound[i] <= standby_run(pairs.take(np.array([i])), asked, float(outcome.interval_hours[i])).usd


@pytest.mark.slow(reason="one long case")
def test_pairs_that_only_estimates_rule_out_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    offered, asked = some_offers(8, 4, 4), terms(deadline=45)
    _, least = every_pair(offered, asked)
    monkeypatch.setattr(standby_search, "MOST_EXACT", 1)
    search = cheapest_pair(offered, asked)
    assert search.best is not None
    assert search.exactly == 1
    assert search.left_open > 0
    assert search.left_open_usd < search.best.run.usd
    assert least.min() >= search.left_open_usd


def test_a_run_is_put_aside_as_dearer_only_beside_one_alike_in_every_figure_that_is_no_price() -> None:
    compared = (*standby_search._DEARER, *standby_search._ALIKE)
    assert sorted(compared) == sorted({field.name for field in fields(Pairs)} - {"spot", "standby"})
    assert all("usd" in name for name in standby_search._DEARER)


def test_nothing_is_found_where_nothing_is_cheaper_than_what_there_is() -> None:
    offered, asked = some_offers(1, 4, 4), terms(deadline=50)
    best = cheapest_pair(offered, asked).best
    assert best is not None
    assert cheapest_pair(offered, asked, below_usd=best.run.usd * 0.99).best is None
    again = cheapest_pair(offered, asked, below_usd=best.run.usd * 1.05).best
    assert again is not None
    assert again.run.usd == best.run.usd


def test_pairs_that_may_not_be_are_never_taken() -> None:
    offered, asked = some_offers(1, 4, 4), terms(deadline=50)
    best = cheapest_pair(offered, asked).best
    assert best is not None
    assert offered.allowed[best.spot, best.standby]
