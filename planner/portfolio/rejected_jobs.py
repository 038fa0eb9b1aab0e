"""Why a job is not in the plan, and the smallest single change that would admit it if the other jobs stay."""

import math
from dataclasses import dataclass

import numpy as np

from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, Floats, Instance, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WayIn:
    """One change: of `what` (pool, deadline, budget) by `amount` (units, slots, USD), for a run that costs `cost_usd`."""

    what: str
    pool: int | None
    amount: float
    cost_usd: float


def in_use(instance: Instance, plan: Plan) -> Floats:
    """Units of each pool in use in each slot, (R, T)."""
    used = np.zeros((instance.pools + 1, instance.slots))
    for job in np.flatnonzero(plan.configuration != LEFT_OUT).tolist():
        kind, start = int(plan.configuration[job]), int(plan.start[job])
        for pool, units in zip(instance.pool[kind], instance.units[kind], strict=True):
            used[pool, start : start + instance.duration[kind]] += units
    return used[:-1]


def ways_in(instance: Instance, plan: Plan, job: int) -> tuple[WayIn, ...]:
    """The least single changes that admit a rejected job, the cheapest run first; may be empty."""
    left = instance.capacity.copy()
    left[:-1] -= in_use(instance, plan)
    runs = plan.configuration != LEFT_OUT
    budget_left = instance.budget_usd - float(instance.cost_usd[plan.configuration[runs]].sum())
    best: dict[tuple[str, int | None], WayIn] = {}
    for kind in np.flatnonzero(instance.job == job).tolist():
        cost = float(instance.cost_usd[kind])
        for start in range(int(instance.release[job]), instance.slots - int(instance.duration[kind]) + 1):
            way = _way(instance, left, budget_left, kind, start)
            if way is None:
                continue
            key = way.what, way.pool
            known = best.get(key)
            if known is None or (way.amount, cost) < (known.amount, known.cost_usd):
                best[key] = way
    return tuple(sorted(best.values(), key=lambda way: (way.cost_usd, way.what, way.pool or 0)))


def _way(instance: Instance, left: Floats, budget_left: float, kind: int, start: int) -> WayIn | None:
    """The single change that lets configuration `kind` start at `start`, or None."""
    job, end, cost = int(instance.job[kind]), start + int(instance.duration[kind]), float(instance.cost_usd[kind])
    short: list[tuple[str, int | None, float]] = []
    for pool, units in zip(instance.pool[kind].tolist(), instance.units[kind].tolist(), strict=True):
        missing = units - float(left[pool, start:end].min())
        if missing > 1e-6:
            short.append(("pool", pool, missing))
    if end > instance.due[job]:
        short.append(("deadline", None, float(end - instance.due[job])))
    if cost > budget_left + 1e-6 and math.isfinite(budget_left):
        short.append(("budget", None, cost - budget_left))
    if len(short) != 1:
        return None
    what, pool, amount = short[0]
    return WayIn(what=what, pool=pool, amount=amount, cost_usd=cost)
