"""Waits for preempted machines: longer and less certain runs, which cost only more storage."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.model.capacity_prior import OLD
from gpuplan.catalog.model.interruption_rates import (
    DEFAULT_INTERRUPTIONS_PER_HOUR,
    MOST_WAIT_LOG_SPREAD,
    WAIT_LOG_SPREAD,
)
from gpuplan.catalog.model.spot_waits import spot_waits
from gpuplan.planner.cost.cost_breakdown import CostBreakdown, cost_breakdown, deadline_probability
from gpuplan.planner.cost.run_inputs import Run
from tests.planner.spot_settings import replaced_at_once

WORK, RATE, WRITE = 40.0, 0.2, 0.02


def billed(wait: float, rate: float = RATE) -> CostBreakdown:
    one = np.ones(1)
    run = Run(
        nodes=2 * one,
        setup_hours=0.25 * one,
        work_hours=WORK * one,
        beside_hours=0 * one,
        log_sigma=0 * one,
        cluster_rate=rate * one,
        wait_hours=wait * one,
        checkpoint_hours=WRITE * one,
        usd_per_node_hour=3 * one,
        power_usd_per_node_hour=0 * one,
        egress_usd=0 * one,
        storage_usd_per_hour=0.1 * one,
        billing_step_hours=one / 3600,
        billing_minimum_hours=0 * one,
        term_hours=0 * one,
        longest_hours=np.full(1, np.inf),
    )
    return cost_breakdown(run, 0.9, replace(replaced_at_once(least_saving_of_a_move_percent=0.0), spot_wait_hours=wait))


def test_one_wait_per_preemption_adds_wall_hours_and_no_compute_cost() -> None:
    without, waiting = billed(0.0), billed(2.0)
    paid = float(without.run_hours[0])
    assert float(waiting.run_hours[0]) == paid
    assert float(waiting.hours[0]) == pytest.approx(0.25 + paid * (1 + RATE * 2.0))
    assert float(waiting.compute_usd[0]) == float(without.compute_usd[0])
    assert float(waiting.storage_usd[0]) == pytest.approx(0.1 * float(waiting.hours[0]))


def test_machines_that_nobody_takes_away_wait_for_nothing() -> None:
    assert float(billed(5.0, rate=0.0).hours[0]) == float(billed(0.0, rate=0.0).hours[0])


def test_the_spread_is_that_of_a_simulation_with_zones_that_differ() -> None:
    waiting, draw = billed(2.0), random.Random(3)
    interval = math.sqrt(2 * WRITE / RATE)
    ends = np.array([one_end(interval, draw) for _ in range(3000)])
    mean, deviation = float(ends.mean()), float(ends.std())
    assert float(waiting.hours[0]) - 0.25 == pytest.approx(mean, rel=0.01)
    between_zones = min(WAIT_LOG_SPREAD * RATE * 2.0 / (1 + RATE * 2.0), MOST_WAIT_LOG_SPREAD)
    in_zone = math.sqrt(float(waiting.sigma[0]) ** 2 - between_zones**2)
    assert in_zone == pytest.approx(math.sqrt(math.log1p((deviation / mean) ** 2)), rel=0.06)
    zones = np.exp(np.random.default_rng(4).normal(0.0, between_zones, len(ends)))
    # The lognormal has the mean as its median, so it errs towards late.
    by = deadline_probability(waiting, 0, 0.25 + mean * 2.0, before_hours=0.25)
    assert by == pytest.approx((ends * zones <= mean * 2.0).mean(), abs=0.04)


def test_runs_in_one_zone_are_in_time_as_often_as_in_the_public_traces() -> None:
    """Shares of 16,018, 16,888 and 10,540 starts in the traces of one node, at their mean rate (docs/accuracy.md)."""
    run = billed(spot_waits().of_one_node(OLD, 1), rate=DEFAULT_INTERRUPTIONS_PER_HOUR)
    chances = [deadline_probability(run, 0, WORK * slack, before_hours=0.25) for slack in (1.25, 1.5, 2.0)]
    assert chances == pytest.approx([0.546, 0.603, 0.748], abs=0.05)


def one_end(interval: float, draw: random.Random) -> float:
    clock, left = 0.0, WORK
    while left > 1e-9:
        step = min(interval, left)
        while (until := draw.expovariate(RATE)) < step + WRITE:
            clock += until + draw.expovariate(1 / 2.0)
            while (failed := draw.expovariate(RATE)) < 0.25:
                clock += failed + draw.expovariate(1 / 2.0)
            clock += 0.25
        clock, left = clock + step + WRITE, left - step
    return clock
