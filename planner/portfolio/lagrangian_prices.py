"""Lower bounds from prices on capacity: the Lagrangian dual of the portfolio, by a deflected subgradient.

With a price l_rt >= 0 on each unit of pool r in slot t and m >= 0 on each dollar of budget, every job chooses alone:
    L(l, m) = sum_j min(p_j, min over its columns of (1 + m) c_k + sum_r u_kr sum_{s <= t < s + d_k} l_rt)
              - sum_rt l_rt b_rt - m B
minus the cost of the cuts (`gpuplan.planner.portfolio.cutting_planes`: further rows at a price q >= 0 each). It is
below the cost of every plan at any prices (Geoffrion 1974), and its maximum is the value of the linear relaxation,
since one job's choice alone is integral. Steps are Polyak's, theta (U - L) / |g|^2, along a deflected direction g <- a
g + (1 - a) subgradient (Camerini, Fratta and Maffioli 1975; the weights are those of the volume algorithm, Barahona and
Anbil 2000). Rows are scaled by capacity, so that pools of vCPUs and of machines move alike.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.portfolio.cutting_planes import Priced, paid_for
from gpuplan.planner.portfolio.portfolio_instance import Columns, Floats, Instance, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prices:
    """`capacity` (R + 1, T) in USD per unit and slot, 0 where a pool is infinite; `budget` per dollar; of cuts."""

    capacity: Floats
    budget: float
    cuts: tuple[Priced, ...] = ()


def no_prices(instance: Instance) -> Prices:
    """Prices of zero for all capacity."""
    return Prices(capacity=np.zeros_like(instance.capacity), budget=0.0)


def reduced_costs(instance: Instance, columns: Columns, prices: Prices) -> Floats:
    """The cost of each column plus the price of the capacity that it uses."""
    running = np.zeros((instance.capacity.shape[0], instance.slots + 1))
    np.cumsum(prices.capacity, axis=1, out=running[:, 1:])
    flat, width = running.reshape(-1), instance.slots + 1
    total = columns.cost_usd * (1.0 + prices.budget)
    for use in range(instance.pool.shape[1]):
        offset = (instance.pool[:, use] * width)[columns.configuration]
        total += instance.units[columns.configuration, use] * (
            flat[offset + columns.end] - flat[offset + columns.start]
        )
    return total + paid_for(instance, columns, prices.cuts) if prices.cuts else total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """The jobs' choices at given prices: `bound_usd`, the column of each job (-1: left out), and all reduced costs."""

    bound_usd: float
    chosen: Ints
    least_usd: Floats
    reduced_usd: Floats


def answer_to(instance: Instance, columns: Columns, prices: Prices) -> Answered:
    """The best choice of each job at these prices, and the resulting bound."""
    reduced = reduced_costs(instance, columns, prices)
    least, chosen = instance.penalty_usd.copy(), np.full(instance.jobs, -1, np.int64)
    has = np.flatnonzero(np.diff(columns.first) > 0)
    if len(has):
        smallest = np.minimum.reduceat(reduced, columns.first[has])
        runs = smallest < least[has]
        least[has] = np.minimum(least[has], smallest)
        equal = np.flatnonzero(reduced == least[columns.job])
        jobs, at = np.unique(columns.job[equal], return_index=True)
        best = np.full(instance.jobs, -1, np.int64)
        best[jobs] = equal[at]
        chosen[has[runs]] = best[has[runs]]
    paid = float((prices.capacity[:-1] * _finite(instance)).sum())
    paid += prices.budget * instance.budget_usd if prices.budget else 0.0
    paid += sum(price * cut.most for cut, price in prices.cuts)
    return Answered(bound_usd=float(least.sum()) - paid, chosen=chosen, least_usd=least, reduced_usd=reduced)


def _finite(instance: Instance) -> Floats:
    return np.where(np.isfinite(instance.capacity[:-1]), instance.capacity[:-1], 0.0)


def usage(instance: Instance, columns: Columns, chosen: Ints) -> Floats:
    """Units in use (R + 1, T) if these columns run; -1 means no column."""
    at = chosen[chosen >= 0]
    change = np.zeros((instance.capacity.shape[0], instance.slots + 1))
    configuration, start, end = columns.configuration[at], columns.start[at], columns.end[at]
    for use in range(instance.pool.shape[1]):
        pool, units = instance.pool[configuration, use], instance.units[configuration, use]
        np.add.at(change, (pool, start), units)
        np.add.at(change, (pool, end), -units)
    used: Floats = np.cumsum(change, axis=1)[:, :-1]
    return used


class Ascent:
    """Subgradient ascent of the prices; the best so far are in `prices` and `best`."""

    def __init__(self, instance: Instance, columns: Columns) -> None:
        """Starts at prices of zero."""
        self.instance, self.columns = instance, columns
        self.finite: NDArray[np.bool_] = np.isfinite(instance.capacity)
        scale = np.where(self.finite, instance.capacity, 0.0).max(axis=1, keepdims=True)
        self._scale = np.maximum(scale, 1.0)
        self._capacity = np.where(self.finite, instance.capacity, 0.0)
        self._has_budget = bool(np.isfinite(instance.budget_usd))
        self.prices = no_prices(instance)
        self.best = answer_to(instance, columns, self.prices)
        self._at, self._last, self._theta, self._since = self.prices, self.best, 1.0, 0
        self._direction: tuple[Floats, float] | None = None
        self.steps = 0

    def step(self, upper_usd: float) -> Answered:
        """One step towards the cost of the best known plan; returns the jobs' choices at the new prices."""
        answered = self._last
        over, dear = self._subgradient(answered)
        if self._direction is not None:
            weight = 0.8
            over = weight * self._direction[0] + (1 - weight) * over
            dear = weight * self._direction[1] + (1 - weight) * dear
        self._direction = over, dear
        square = float((over * over).sum() + dear * dear)
        length = self._theta * max(1e-9, upper_usd - answered.bound_usd) / max(square, 1e-12)
        at = Prices(
            capacity=np.maximum(0.0, self._at.capacity + length * over / self._scale),
            budget=max(0.0, self._at.budget + length * dear / self._budget_scale()) if self._has_budget else 0.0,
        )
        self._last = answer_to(self.instance, self.columns, at)
        self._at = at
        self.steps += 1
        if self._last.bound_usd > self.best.bound_usd + 1e-9:
            self.best, self.prices, self._since = self._last, at, 0
        else:
            self._since += 1
            if self._since >= 15:
                self._theta, self._since = self._theta * 0.7, 0
                self._at, self._last, self._direction = self.prices, self.best, None
        return self._last

    def _budget_scale(self) -> float:
        return max(1.0, self.instance.budget_usd)

    def _subgradient(self, answered: Answered) -> tuple[Floats, float]:
        """Overuse of each pool and slot and of the budget, scaled; slack counts only if the price is above zero."""
        used = usage(self.instance, self.columns, answered.chosen)
        over = np.where(self.finite, (used - self._capacity) / self._scale, 0.0)
        over[(over < 0) & (self._at.capacity <= 0)] = 0.0
        if not self._has_budget:
            return over, 0.0
        at = answered.chosen[answered.chosen >= 0]
        spent = float(self.columns.cost_usd[at].sum())
        dear = (spent - self.instance.budget_usd) / self._budget_scale()
        return over, 0.0 if dear < 0 and self._at.budget <= 0 else dear
