"""How good the portfolio search is on tight instances: proven gap and time, over seeds that it was not tuned on.

Beside each row stands how tight its instances are: the busy share of own pools, of the jobs the share that does not
get its cheapest configuration, is rented at full price, or is left out. Seconds are processor time of one core,
so that a busy machine changes little; HiGHS' own limit is of the wall clock. `python -m benchmarks.portfolio [SEEDS]`.
"""

import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.portfolio_instances import POOLS, REPORTING, Recipe, portfolio
from planner.portfolio.instance import Instance
from planner.portfolio.search import Found, search

#: (jobs, slots, seconds, gap asked for)
ROWS = ((10, 96, 10.0, 0.0), (30, 96, 10.0, 0.0), (50, 96, 10.0, 0.0), (100, 96, 60.0, 0.01), (1000, 168, 120.0, 0.02))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightness:
    """Shares between 0 and 1."""

    own_busy: float
    not_favourite: float
    rented: float
    left_out: float


def tightness(instance: Instance, found: Found) -> Tightness:
    """How short things were in the plan that was found."""
    kind, runs = found.plan.configuration, found.plan.configuration >= 0
    used = np.zeros(POOLS)
    for job in np.flatnonzero(runs):
        for pool, units in zip(instance.pool[kind[job]], instance.units[kind[job]], strict=True):
            if pool < POOLS:
                used[pool] += units * instance.duration[kind[job]]
    least = np.full(instance.jobs, np.inf)
    np.minimum.at(least, instance.job, instance.cost_usd)
    paid = np.where(runs, instance.cost_usd[kind], np.inf)
    first = np.where(runs, instance.pool[kind, 0], -1)
    return Tightness(
        own_busy=float((used / instance.capacity[:-1].sum(axis=1))[:2].mean()),
        not_favourite=float((paid > least + 1e-9).mean()),
        rented=float((first == POOLS).mean()),
        left_out=float((~runs).mean()),
    )


def main(seeds: int = 3) -> None:
    """Print a row per instance."""
    print(
        f"{'jobs':>5} {'slots':>5} {'seed':>5} {'columns':>8} {'own busy':>8} {'not fav.':>8} {'rented':>6} {'out':>5}"
        f" {'first s':>7} {'USD':>11} {'bound':>11} {'gap %':>6} {'asked':>5} {'s':>6}  iterations",
        flush=True,
    )
    for jobs, slots, seconds, asked in ROWS:
        for seed in range(REPORTING, REPORTING + seeds):
            instance = portfolio(Recipe(jobs=jobs, slots=slots), seed)
            found = search(instance, time_limit_s=seconds, clock=time.process_time)
            tight = tightness(instance, found)
            print(
                f"{jobs:>5} {slots:>5} {seed:>5} {len(instance.columns):>8} {tight.own_busy:>8.2f}"
                f" {tight.not_favourite:>8.2f} {tight.rented:>6.2f} {tight.left_out:>5.2f} {found.first_plan_s:>7.2f}"
                f" {found.plan.cost_usd:>11.2f} {found.bound_usd:>11.2f} {100 * found.gap:>6.2f} {100 * asked:>5.1f}"
                f" {found.elapsed_s:>6.1f}  {', '.join(f'{n} {what}' for what, n in found.iterations.items())}",
                flush=True,
            )


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:2]))
