"""Seeded portfolios in which capacity is short: own pools, quotas in accelerators and vCPUs, rent at a price.

Everything is drawn from one seed. A job has an amount of work (lognormal), a way it scales, and a taste for some
accelerators; its configurations are accelerator counts on the pools, cheap own machines first, then spot under a
quota, then on-demand machines without one. Capacities are a share of what the jobs would take of each pool if all
got their favourite, so the share says how short it is. Seeds below `REPORTING` are for development.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import Instance

#: Seeds from here on are for the tables that are shown, and were not used while the search was tuned.
REPORTING = 9000

#: What is to be had: (speed, USD per accelerator-hour, accelerator-quota pool, second pool, units of it each).
#: Own machines cost their power; spot stands at a third to a half of on-demand, as in the catalogue.
OWNED, SPOT, RENT = "own", "spot", "rent"
KINDS: tuple[tuple[str, float, float, int, int, float], ...] = (
    (OWNED, 1.0, 0.70, 0, -1, 0.0),
    (OWNED, 2.2, 1.60, 1, -1, 0.0),
    (OWNED, 0.45, 0.30, 2, -1, 0.0),
    (SPOT, 1.0, 1.10, 3, 6, 12.0),
    (SPOT, 2.3, 2.60, 4, 6, 24.0),
    (SPOT, 2.3, 2.40, 5, 7, 24.0),
    (SPOT, 0.45, 0.42, 8, 7, 8.0),
    (RENT, 1.0, 2.30, -1, -1, 0.0),
    (RENT, 2.3, 5.00, -1, -1, 0.0),
)
POOLS = 9
COUNTS = np.array([1, 2, 4, 8, 16])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How tight: capacity as a share of what favourites would take, dates as multiples of a job's usual duration.

    `optional` is the share of jobs with a value; the others are lost at ten times their rent, and as much again for
    each of up to `priorities` steps. `budget` is a share of what all favourites together cost, which no plan of a tight
    instance keeps without leaving jobs out; None: no budget.
    """

    jobs: int
    slots: int
    share: tuple[float, float] = (0.5, 0.9)
    slack: tuple[float, float] = (1.05, 1.7)
    optional: float = 0.3
    priorities: int = 0
    budget: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    job: list[int]
    cost: list[float]
    duration: list[int]
    pool: list[tuple[int, int]]
    units: list[tuple[float, float]]


def portfolio(recipe: Recipe, seed: int) -> Instance:
    """The instance of a recipe and a seed, the same on every machine."""
    rng = np.random.default_rng((seed, recipe.jobs, recipe.slots))
    jobs = recipe.jobs
    rows = _Rows(job=[], cost=[], duration=[], pool=[], units=[])
    release, due, penalty = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs)
    must = np.zeros(jobs, np.bool_)
    for j in range(jobs):
        release[j], due[j], penalty[j], must[j] = _job(rng, j, recipe, rows)
    cost, duration = np.array(rows.cost), np.array(rows.duration)
    job, pool, units = np.array(rows.job), np.array(rows.pool), np.array(rows.units)
    favourite = np.full(jobs, np.inf)
    np.minimum.at(favourite, job, cost)
    # Drawn apart, so that an instance without priorities is the same as ever.
    steps = np.random.default_rng((seed, 1)).integers(0, recipe.priorities + 1, jobs)
    penalty[must] *= 1 + steps[must]
    return Instance(
        capacity=_capacity(rng, recipe, job, cost, duration, pool, units),
        release=release,
        due=due,
        penalty_usd=penalty,
        job=job,
        cost_usd=cost,
        duration=duration,
        pool=np.where(pool < 0, POOLS, pool),
        units=units,
        budget_usd=np.inf
        if recipe.budget is None
        else round(recipe.budget * float(favourite[np.isfinite(favourite)].sum()), 2),
    )


def _job(rng: np.random.Generator, number: int, recipe: Recipe, rows: _Rows) -> tuple[int, int, float, bool]:
    """Append the configurations of one job; its first slot, end slot, loss if left out, and whether it must run."""
    work = float(rng.lognormal(np.log(60.0), 0.8))
    usual = float(rng.choice(COUNTS[:4]))
    loss = float(rng.uniform(0.02, 0.12))
    taste = rng.uniform(0.75, 1.35, len(KINDS))
    most_hours = recipe.slots * 0.5
    length = min(max(2.0, work / usual * usual**loss), most_hours)
    fastest = min(
        work / (speed * taste[kind] * COUNTS[-1] ** (1.0 - loss)) + 0.25
        for kind, (what, speed, *_) in enumerate(KINDS)
        if what == RENT
    )
    window = max(2, int(np.ceil(fastest)), int(np.ceil(length * rng.uniform(*recipe.slack))))
    release = int(rng.integers(0, max(1, recipe.slots - window)))
    due = min(recipe.slots, release + window)
    configurations: list[tuple[float, int, tuple[int, int], tuple[float, float]]] = []
    dearest = 0.0
    for kind, (what, speed, price, pool, second, item) in enumerate(KINDS):
        for count in COUNTS[:4] if what == OWNED else COUNTS:
            hours = work / (speed * taste[kind] * count ** (1.0 - loss)) + 0.25
            slots = int(np.ceil(hours))
            if slots > due - release:
                continue
            cost = round(price * float(count) * hours, 6)
            configurations.append((cost, slots, (pool, second), (float(count), item * float(count))))
            if what == RENT:
                dearest = max(dearest, cost)
    configurations = _undominated(configurations)
    retained = int(rng.integers(5, 21))
    if len(configurations) > retained:
        chosen = np.sort(rng.choice(len(configurations), retained, replace=False))
        rented = [row for row in configurations if row[2][0] < 0]
        configurations = [configurations[int(i)] for i in chosen]
        if rented and not any(row[2][0] < 0 for row in configurations):
            configurations.append(rented[0])
    for cost, slots, pools, units in configurations:
        rows.job.append(number)
        rows.cost.append(cost)
        rows.duration.append(slots)
        rows.pool.append(pools)
        rows.units.append(units)
    rent = [cost for cost, _, (pool, _), _ in configurations if pool < 0]
    reference = min(rent) if rent else max((cost for cost, *_ in configurations), default=work)
    # What can be rented without a quota need never be left out; the rest has a value, as the optional jobs do.
    optional = not rent or rng.random() < recipe.optional
    return release, due, round(reference * float(rng.uniform(0.6, 1.3) if optional else 10.0), 6), not optional


def _undominated(
    configurations: list[tuple[float, int, tuple[int, int], tuple[float, float]]],
) -> list[tuple[float, int, tuple[int, int], tuple[float, float]]]:
    """Configurations of a job that no other on the same pools beats in cost, slots and units."""
    return [
        a
        for a in configurations
        if not any(
            b is not a
            and b[2] == a[2]
            and b[0] <= a[0]
            and b[1] <= a[1]
            and b[3] <= a[3]
            and (b[:2], b[3]) != (a[:2], a[3])
            for b in configurations
        )
    ]


def _capacity(
    rng: np.random.Generator,
    recipe: Recipe,
    job: np.ndarray,
    cost: np.ndarray,
    duration: np.ndarray,
    pool: np.ndarray,
    units: np.ndarray,
) -> np.ndarray:
    """Per pool and slot a share of the mean demand that favourites would put on it, own pools smaller by day."""
    demand = np.zeros(POOLS)
    for kind in range(POOLS):
        uses = pool == kind
        at = np.flatnonzero(uses.any(axis=1))
        if not len(at):
            continue
        order = np.lexsort((cost[at], job[at]))
        _, first = np.unique(job[at][order], return_index=True)
        best = at[order][first]
        column = uses[best].argmax(axis=1)
        demand[kind] = float((units[best, column] * duration[best]).sum()) / recipe.slots
    capacity = np.full((POOLS + 1, recipe.slots), np.inf)
    for kind in range(POOLS):
        base = demand[kind] * rng.uniform(*recipe.share) * (0.4 if kind < 3 else 0.16)
        smallest = (8.0 if kind < 3 else 16.0) if kind not in (6, 7) else 512.0
        step = 4.0 if kind not in (6, 7) else 32.0
        capacity[kind] = max(smallest, step * round(base / step))
    day = (np.arange(recipe.slots) % 24 >= 8) & (np.arange(recipe.slots) % 24 < 20)
    capacity[2, day] = step_down(capacity[2, 0])
    return capacity


def step_down(units: float) -> float:
    """What is left of a pool while its owners use the other half."""
    return float(np.floor(units / 2))
