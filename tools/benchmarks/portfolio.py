"""How good the portfolio search is on tight instances: proven gap and time, over seeds that it was not tuned on.

Tight means, of the plan that was found: own pools and quotas are busy for the shares shown, and of the jobs the shares
shown do not get their cheapest configuration, are rented at full price, or are left out; the budget rows say how much
of the budget is spent. Seconds are processor time of one core, and the load of the machine stands beside them: on a
busy machine a second of it does less. `python -m tools.benchmarks.portfolio [SEEDS [MOST_JOBS]]`.
"""

import os
import sys
import time
from dataclasses import dataclass

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import Instance
from gpuplan.planner.portfolio.portfolio_search import search
from gpuplan.planner.portfolio.search_progress import SearchOutcome
from tools.benchmarks.portfolio_instances import POOLS, REPORTING, Recipe, portfolio

#: (recipe, seconds, gap asked for); with a budget, half of the jobs have a value and the others one of four priorities.
ROWS = (
    (Recipe(jobs=10, slots=96), 10.0, 0.0),
    (Recipe(jobs=30, slots=96), 10.0, 0.0),
    (Recipe(jobs=50, slots=96), 10.0, 0.0),
    (Recipe(jobs=50, slots=96, budget=0.9, optional=0.5, priorities=3), 10.0, 0.0),
    (Recipe(jobs=100, slots=96), 60.0, 0.01),
    (Recipe(jobs=100, slots=96, budget=0.9, optional=0.5, priorities=3), 60.0, 0.01),
    (Recipe(jobs=1000, slots=168), 120.0, 0.02),
)


class ProcessorTime:
    """Seconds of processor time, looked at no more often than every 20 ms: a look can take a millisecond itself."""

    def __init__(self) -> None:
        """Looks at once."""
        self._looked, self._seconds = time.perf_counter(), time.process_time()

    def __call__(self) -> float:
        """As of 20 ms ago or later."""
        now = time.perf_counter()
        if now - self._looked > 0.02:
            self._looked, self._seconds = now, time.process_time()
        return self._seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightness:
    """Shares between 0 and 1."""

    own_busy: float
    quotas_busy: float
    budget_spent: float
    not_favourite: float
    rented: float
    left_out: float


def tightness(instance: Instance, search_outcome: SearchOutcome) -> Tightness:
    """The scarcity of capacity in the best plan."""
    kind, runs = search_outcome.plan.configuration, search_outcome.plan.configuration >= 0
    used = np.zeros(POOLS)
    for job in np.flatnonzero(runs):
        for pool, units in zip(instance.pool[kind[job]], instance.units[kind[job]], strict=True):
            if pool < POOLS:
                used[pool] += units * instance.duration[kind[job]]
    least = np.full(instance.jobs, np.inf)
    np.minimum.at(least, instance.job, instance.cost_usd)
    paid = np.where(runs, instance.cost_usd[kind], np.inf)
    first = np.where(runs, instance.pool[kind, 0], -1)
    busy = used / instance.capacity[:-1].sum(axis=1)
    return Tightness(
        own_busy=float(busy[:3].mean()),
        quotas_busy=float(busy[3:].mean()),
        budget_spent=float(instance.cost_usd[kind[runs]].sum() / instance.budget_usd),
        not_favourite=float((paid > least + 1e-9).mean()),
        rented=float((first == POOLS).mean()),
        left_out=float((~runs).mean()),
    )


def main(seeds: int = 3, most_jobs: int = 1000) -> None:
    """Print a row per instance."""
    print(
        f"{'jobs':>5} {'slots':>5} {'seed':>5} {'columns':>8} {'own':>5} {'quotas':>6} {'budget':>6} {'not fav.':>8}"
        f" {'rented':>6} {'out':>5} {'first s':>7} {'USD':>11} {'bound':>11} {'gap %':>6} {'asked':>5} {'s':>6} {'load':>5}"
        "  iterations",
        flush=True,
    )
    for recipe, seconds, asked in ROWS:
        for seed in range(REPORTING, REPORTING + seeds) if recipe.jobs <= most_jobs else ():
            instance = portfolio(recipe, seed)
            result = search(instance, time_limit_s=seconds, clock=ProcessorTime())
            tight = tightness(instance, result)
            print(
                f"{recipe.jobs:>5} {recipe.slots:>5} {seed:>5} {len(instance.columns):>8} {tight.own_busy:>5.2f}"
                f" {tight.quotas_busy:>6.2f} {tight.budget_spent:>6.2f} {tight.not_favourite:>8.2f} {tight.rented:>6.2f}"
                f" {tight.left_out:>5.2f} {result.first_plan_s:>7.2f} {result.plan.cost_usd:>11.2f} {result.bound_usd:>11.2f}"
                f" {100 * result.gap:>6.2f} {100 * asked:>5.1f} {result.elapsed_s:>6.1f} {os.getloadavg()[0]:>5.1f}"
                f"  {', '.join(f'{n} {what}' for what, n in result.iterations.items())}",
                flush=True,
            )


if __name__ == "__main__":
    main(*(int(item) for item in sys.argv[1:3]))
