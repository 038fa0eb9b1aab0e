"""The mathematical instance of a portfolio: jobs, configurations, pools of units per slot, a budget.

Sets and data
    slots t = 0..T-1 of equal length; pools r with capacity b_rt (inf: unlimited)
    jobs j with first slot a_j, end slot e_j (nothing of j runs in or after it) and the loss p_j of leaving it out
    configurations k of job j: cost c_k, d_k slots without a break, u_kr units of pool r in each of them
A plan gives each job one configuration and a start slot s with a_j <= s and s + d_k <= e_j, or leaves it out:
    minimise   sum of c_k over the jobs that run + sum of p_j over those left out
    capacity   in every slot the units in use of pool r are at most b_rt
    budget     the c_k of the jobs that run sum to at most B

A *column* is one (configuration, start): the variables of the time-indexed model, listed once and shared by
bounds, search and solver. Money is in USD.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Small = NDArray[np.int32]

#: Units compare with this slack: capacities and units are counts, so a billionth is rounding.
ROUNDING = 1e-9

LEFT_OUT = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """One portfolio. Shapes: pools R, slots T, jobs J, configurations K, uses of a configuration M.

    `capacity` (R + 1, T), the last row infinite: what a configuration uses of nothing. `release`, `due`,
    `penalty_usd` (J,). `job` (K,) rises: configurations stand job by job; `cost_usd`, `duration` (K,); `pool`,
    `units` (K, M), padded with pool R and no units. `budget_usd` is inf where there is none.
    """

    capacity: Floats
    release: Ints
    due: Ints
    penalty_usd: Floats
    job: Ints
    cost_usd: Floats
    duration: Ints
    pool: Ints
    units: Floats
    budget_usd: float = np.inf

    def __post_init__(self) -> None:
        """Raise `ValueError` for inconsistent data; the caller has already refused user errors."""
        jobs, kinds = len(self.release), len(self.job)
        if self.due.shape != (jobs,) or self.penalty_usd.shape != (jobs,):
            raise ValueError("release, due and penalty_usd need one element per job")
        if self.cost_usd.shape != (kinds,) or self.duration.shape != (kinds,):
            raise ValueError("job, cost_usd and duration need one element per configuration")
        if self.pool.shape != self.units.shape or self.pool.shape[:1] != (kinds,):
            raise ValueError("pool and units need one row per configuration")
        if np.any(np.diff(self.job) < 0) or (kinds and not 0 <= self.job[0] <= self.job[-1] < jobs):
            raise ValueError("configurations must stand in the order of their jobs")
        if not np.isposinf(self.capacity[-1]).all() or np.isnan(self.capacity).any() or (self.capacity < 0).any():
            raise ValueError("capacity must not be negative, and its last row is infinite")
        if kinds and (self.duration.min() < 1 or not np.isfinite(self.cost_usd).all() or self.cost_usd.min() < 0):
            raise ValueError("a configuration takes at least a slot and costs a finite amount, at least 0")
        if jobs and not (np.isfinite(self.penalty_usd).all() and self.penalty_usd.min() >= 0):
            raise ValueError("leaving a job out must cost a finite amount, at least 0")

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return len(self.release)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return int(self.capacity.shape[1])

    @property
    def pools(self) -> int:
        """The number of pools."""
        return len(self.capacity) - 1

    @cached_property
    def columns(self) -> "Columns":
        """Every (configuration, start) within a job's dates that fits the pools and the budget by itself."""
        return _columns(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """The time-indexed variables, job by job: `configuration`, `start`, `end`, `job` and `cost_usd` have one element each.

    The columns of job j are `first[j]` to `first[j + 1]`, the last excluded.
    """

    configuration: Small
    start: Small
    end: Small
    job: Small
    cost_usd: Floats
    first: Ints

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.start)


def _columns(instance: Instance) -> Columns:
    latest = np.minimum(instance.due[instance.job], instance.slots) - instance.duration
    earliest = np.maximum(instance.release[instance.job], 0)
    affordable = instance.cost_usd <= instance.budget_usd + ROUNDING
    count = np.where(affordable, np.maximum(0, latest - earliest + 1), 0)
    configuration = np.repeat(np.arange(len(count)), count)
    start = np.arange(len(configuration)) - np.repeat(np.cumsum(count) - count, count) + earliest[configuration]
    end = start + instance.duration[configuration]
    fits = np.ones(len(start), np.bool_)
    for use in range(instance.pool.shape[1]):
        fits &= _alone(instance, use, configuration, start, end)
    configuration, start, end = configuration[fits], start[fits], end[fits]
    job = instance.job[configuration]
    return Columns(
        configuration=configuration.astype(np.int32),
        start=start.astype(np.int32),
        end=end.astype(np.int32),
        job=job.astype(np.int32),
        cost_usd=instance.cost_usd[configuration],
        first=np.searchsorted(job, np.arange(instance.jobs + 1)),
    )


def _alone(instance: Instance, use: int, configuration: Ints, start: Ints, end: Ints) -> NDArray[np.bool_]:
    """Whether a column fits its pools without other jobs: no slot in it is too small."""
    fits = np.ones(len(start), np.bool_)
    pool, units = instance.pool[:, use], instance.units[:, use]
    pairs, which = np.unique(np.stack((pool.astype(np.float64), units)), axis=1, return_inverse=True)
    small = instance.capacity[pairs[0].astype(np.int64)] < pairs[1][:, None] - ROUNDING
    short = np.zeros((small.shape[0], instance.slots + 1), np.int32)
    np.cumsum(small, axis=1, out=short[:, 1:])
    row = which.reshape(-1)[configuration]
    fits &= short[row, end] == short[row, start]
    return fits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The `configuration` (-1: left out) and `start` slot (-1) of each job, and the total cost with penalties."""

    configuration: Ints
    start: Ints
    cost_usd: float
