"""Small random portfolios in which capacity binds, and their optimum by trying everything."""

import itertools
import random

import numpy as np

from gpuplan.planner.portfolio.plan_violations import violations
from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, Instance, Plan


def small_instance(draw: random.Random, *, jobs: int, slots: int = 6, kinds: int = 3, budget: bool = False) -> Instance:
    """Two pools of a few units, sometimes closed for a while, and rent at a price; some jobs optional."""
    capacity = np.full((3, slots), np.inf)
    for pool in range(2):
        capacity[pool] = draw.randint(2, 3)
        if draw.random() < 0.4:
            opens = draw.randrange(slots)
            capacity[pool, opens : opens + draw.randint(1, 3)] = draw.randint(0, 1)
    rows: list[tuple[int, float, int, tuple[int, int], tuple[float, float]]] = []
    release, due, penalty = [], [], []
    for job in range(jobs):
        release.append(draw.randrange(max(1, slots // 3)))
        due.append(min(slots, release[-1] + draw.randint(3, 5)))
        penalty.append(round(draw.uniform(8, 30), 2))
        for _ in range(draw.randint(1, kinds)):
            first = draw.choice((0, 0, 1, 1, 2))
            second = draw.choice((2, 2, 1 - first if first < 2 else 2))
            units = (
                0.0 if first == 2 else float(draw.randint(1, 3)),
                0.0 if second == 2 else float(draw.randint(1, 2)),
            )
            rows.append(
                (
                    job,
                    round(draw.uniform(1, 6) * (3 if first == 2 else 1), 2),
                    draw.randint(1, 3),
                    (first, second),
                    units,
                )
            )
    spent = sum(min(row[1] for row in rows if row[0] == job) for job in range(jobs))
    return Instance(
        capacity=capacity,
        release=np.array(release),
        due=np.array(due),
        penalty_usd=np.array(penalty),
        job=np.array([row[0] for row in rows]),
        cost_usd=np.array([row[1] for row in rows]),
        duration=np.array([row[2] for row in rows]),
        pool=np.array([row[3] for row in rows]),
        units=np.array([row[4] for row in rows]),
        budget_usd=round(spent * draw.uniform(0.5, 1.3), 2) if budget else np.inf,
    )


def least_cost(instance: Instance) -> float:
    """The optimum over every configuration and start of every job, each plan put to the independent check."""
    choices: list[list[tuple[int, int]]] = []
    for job in range(instance.jobs):
        mine = [(LEFT_OUT, -1)]
        for kind in np.flatnonzero(instance.job == job).tolist():
            last = min(int(instance.due[job]), instance.slots) - int(instance.duration[kind])
            mine += [(kind, start) for start in range(int(instance.release[job]), last + 1)]
        choices.append(mine)
    best = float(instance.penalty_usd.sum())
    for assignment in itertools.product(*choices):
        cost = sum(
            float(instance.penalty_usd[job]) if kind == LEFT_OUT else float(instance.cost_usd[kind])
            for job, (kind, _) in enumerate(assignment)
        )
        if cost < best - 1e-9:
            kinds, starts = np.array([kind for kind, _ in assignment]), np.array([start for _, start in assignment])
            if not violations(instance, Plan(configuration=kinds, start=starts, cost_usd=cost)):
                best = cost
    return best
