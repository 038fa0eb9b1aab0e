"""Pairs of a spot run and its standby for the tests, and a plain simulation of the rule that they are priced by."""

import math
import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.exact_standby_run import PricedRun, StandbyRun
from gpuplan.planner.strategies.standby.offered_pairs import Offered, Standbys
from gpuplan.planner.strategies.standby.spot_standby_pairs import Pairs, Spots, StandbyTerms

SECOND = 1 / 3600


def terms(*, deadline: float = 60.0, confidence: float = 0.9) -> StandbyTerms:
    return StandbyTerms(deadline_hours=deadline, confidence=confidence, restart_hours=0.25)


def a_pair(
    *,
    work: float = 40.0,
    sigma: float = 0.0,
    zones: float = 0.0,
    rate: float = 0.3,
    wait: float = 0.0,
    write: float = 0.03,
    usd: float = 3.0,
    standby_work: float = 36.0,
    standby_usd: float = 10.0,
    changeover: float = 0.25,
    setup: float = 0.25,
) -> Pairs:
    one = np.ones(1)
    return Pairs(
        spot=np.zeros(1, np.int64),
        setup_hours=setup * one,
        work_hours=work * one,
        log_sigma=sigma * one,
        wall_log_sigma=math.hypot(sigma, zones) * one,
        rate=rate * one,
        wait_hours=wait * one,
        checkpoint_hours=write * one,
        usd_per_hour=usd * one,
        storage_usd_per_hour=0 * one,
        fixed_usd=0 * one,
        step_hours=SECOND * one,
        minimum_hours=0 * one,
        standby=np.zeros(1, np.int64),
        standby_work_hours=standby_work * one,
        standby_log_sigma=sigma * one,
        standby_usd_per_hour=standby_usd * one,
        standby_storage_usd_per_hour=0 * one,
        standby_fixed_usd=0 * one,
        standby_step_hours=SECOND * one,
        standby_minimum_hours=0 * one,
        changeover_hours=changeover * one,
    )


def standby_run(pairs: Pairs, terms: StandbyTerms, interval_hours: float) -> StandbyRun:
    """The exact outcome of a single pair at an interval."""
    return PricedRun.of(pairs, terms, interval_hours).outcome()


def some_offers(seed: int, spots: int, standbys: int, wait: float = 0.0) -> Offered:
    """Spots and standbys at random, some of which may not be paired."""
    rng = np.random.default_rng(seed)
    sigma, zones = 0.15 * (seed % 3 > 0), 0.5 * (wait > 0)

    def drawn(low: float, high: float, count: int) -> NDArray[np.float64]:
        return rng.uniform(low, high, count)

    return Offered(
        spots=Spots(
            setup_hours=np.linspace(0.15, 0.35, spots),
            work_hours=drawn(5, 80, spots),
            log_sigma=np.full(spots, sigma),
            wall_log_sigma=np.full(spots, math.hypot(sigma, zones)),
            rate=drawn(0.01, 1, spots),
            wait_hours=wait * np.linspace(0.5, 1.5, spots),
            checkpoint_hours=drawn(0.002, 0.1, spots),
            usd_per_hour=drawn(1, 10, spots),
            storage_usd_per_hour=drawn(0, 0.1, spots),
            fixed_usd=drawn(0, 5, spots),
            step_hours=np.full(spots, SECOND),
            minimum_hours=np.full(spots, 1 / 60),
        ),
        standbys=Standbys(
            work_hours=drawn(5, 60, standbys),
            log_sigma=np.full(standbys, sigma),
            usd_per_hour=drawn(4, 30, standbys),
            storage_usd_per_hour=drawn(0, 0.1, standbys),
            fixed_usd=drawn(0, 5, standbys),
            step_hours=np.full(standbys, SECOND),
            minimum_hours=np.full(standbys, 1 / 60),
            changeover_hours=drawn(0.2, 0.8, standbys),
        ),
        origin=np.arange(spots),
        moving_usd=rng.uniform(0, 5, (spots, standbys)),
        moving_hours=rng.uniform(0, 0.5, (spots, standbys)),
        allowed=rng.random((spots, standbys)) < 0.8,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """Per run: hours paid on spot and on the standby, whether that was called, when the run ended, its factor."""

    spot_hours: NDArray[np.float64]
    standby_hours: NDArray[np.float64]
    called: NDArray[np.bool_]
    ends: NDArray[np.float64]
    factor: NDArray[np.float64]


def simulate(pair: Pairs, terms: StandbyTerms, interval: float, runs: int, seed: int) -> Simulated:
    """The rule, preemption by preemption, with everything counted as it happens."""
    draw = random.Random(seed)
    rows = np.array([_one(pair, terms, interval, draw) for _ in range(runs)])
    return Simulated(
        spot_hours=rows[:, 0], standby_hours=rows[:, 1], called=rows[:, 2] > 0, ends=rows[:, 3], factor=rows[:, 4]
    )


def _one(pair: Pairs, terms: StandbyTerms, interval: float, draw: random.Random) -> tuple[float, ...]:
    rate, write, changeover = (float(figure[0]) for figure in (pair.rate, pair.checkpoint_hours, pair.changeover_hours))
    sigma, z = float(pair.log_sigma[0]), draw.gauss(0, 1)
    factor = math.exp(sigma * z)
    slower = math.exp((float(pair.wall_log_sigma[0]) - sigma) * z)
    mean_wait = max((1.0 + rate * float(pair.wait_hours[0])) * slower - 1.0, 0.0) / rate
    work = float(pair.work_hours[0]) * factor
    standby = float(pair.standby_work_hours[0]) * math.exp(float(pair.standby_log_sigma[0]) * z)
    segments = max(1, math.ceil(work / interval - 1e-9))
    length = work / segments + write
    clock = paid = float(pair.setup_hours[0])
    if clock + length + changeover + standby > terms.deadline_hours:
        return paid + length, changeover + standby, 1.0, clock + length + changeover + standby, factor
    done, called = 0, False
    while done < segments and not called:
        last = terms.deadline_hours - length - changeover - standby * (1 - done / segments)
        called = clock > last + 1e-9
        if called:
            break
        until = draw.expovariate(rate)
        clock, paid = clock + min(until, length), paid + min(until, length)
        if until >= length:
            done += 1
            continue
        up = False
        while not up and not called:
            wait = draw.expovariate(1 / mean_wait) if mean_wait else 0.0
            if clock + wait + terms.restart_hours > last:
                clock, called = max(clock, min(clock + wait, last - terms.restart_hours)), True
                break
            clock += wait
            restart = min(draw.expovariate(rate), terms.restart_hours)
            clock, paid, up = clock + restart, paid + restart, restart == terms.restart_hours
    rest = changeover + standby * (1 - done / segments) if called else 0.0
    return paid, rest, float(called), clock + rest, factor


def node_counts_of_one_machine(spots: range, standbys: range) -> Offered:
    """So many nodes of one machine for a job of an hour, taken away often: pairs that cost nearly the same."""
    spot, standby = np.array(spots, np.float64), np.array(standbys, np.float64)
    alike, others = np.ones(len(spot)), np.ones(len(standby))
    return Offered(
        spots=Spots(
            setup_hours=0.25 * alike,
            work_hours=8.5 / spot,
            log_sigma=0.05 * alike,
            wall_log_sigma=0.05 * alike,
            rate=0.11 * spot,
            wait_hours=0 * alike,
            checkpoint_hours=0.235 / spot,
            usd_per_hour=13.0 * spot,
            storage_usd_per_hour=0 * alike,
            fixed_usd=0 * alike,
            step_hours=SECOND * alike,
            minimum_hours=0 * alike,
        ),
        standbys=Standbys(
            work_hours=6.6 / standby,
            log_sigma=0.05 * others,
            usd_per_hour=114.0 * standby,
            storage_usd_per_hour=0 * others,
            fixed_usd=0 * others,
            step_hours=SECOND * others,
            minimum_hours=0 * others,
            changeover_hours=0.25 * others,
        ),
        origin=np.arange(len(spot)),
        moving_usd=np.zeros((len(spot), len(standby))),
        moving_hours=np.zeros((len(spot), len(standby))),
        allowed=np.ones((len(spot), len(standby)), np.bool_),
    )
