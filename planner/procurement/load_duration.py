"""The load-duration curve of a forecast: the number of concurrent runs by share of the time.

Runs of job j start at random at a rate lambda_j and each holds g_j units for T_j hours wherever it runs, so the number
of runs in progress is Poisson with mean rho_j = lambda_j T_j whatever the spread of T_j (the infinite-server queue
M/G/infinity), and the units in use W = sum g_j N_j follow a compound Poisson law (Panjer 1981):

    P(0) = exp(-sum rho_j),   w P(w) = sum_j g_j rho_j P(w - g_j)
    E[N_j | W = w] = rho_j P(w - g_j) / P(w)

Each level w is a block of time: its share of the hours, and the runs of each job in progress then. The second line is
exact on average; within a level the mix of jobs is its mean. With one job nothing is averaged.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Levels rarer than this share of the time (an hour in 1,000 years) are omitted.
RAREST = 1e-7
#: Above this average number of concurrent units the load counts as even: it varies by a few per cent only.
MOST_UNITS = 5_000.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Blocks of time: `share` (of the hours, summing to 1) and `runs_per_hour` [blocks, jobs] to be served in each."""

    share: Floats
    runs_per_hour: Floats


def even(rate_per_hour: Floats) -> Blocks:
    """A single block for jobs that can wait: the load is the same in every hour."""
    return Blocks(share=np.ones(1), runs_per_hour=rate_per_hour[None, :].copy())


def fluctuating(rate_per_hour: Floats, run_hours: Floats, units: Ints, most: int) -> Blocks:
    """At most `most` blocks for jobs that start on arrival; each array has one element per job.

    If there are more levels, they are merged into `most` equal steps; hours and work stay the same.
    """
    rho = rate_per_hour * run_hours
    mean = float((rho * units).sum())
    if mean <= 0 or mean > MOST_UNITS:
        return even(rate_per_hour)
    probability = level_probabilities(rho, units)
    likely = np.flatnonzero(probability > RAREST)
    in_progress = np.zeros((len(likely), len(rho)))
    for j, (load, size) in enumerate(zip(rho.tolist(), units.tolist(), strict=True)):
        below = likely - size
        in_progress[:, j] = np.where(below >= 0, load * probability[np.maximum(below, 0)] / probability[likely], 0.0)
    share = probability[likely] / probability[likely].sum()
    # Spread the runs of the omitted levels over the others, so that all runs are served.
    expected = share @ in_progress
    in_progress *= np.divide(rho, expected, out=np.ones_like(rho), where=expected > 0)
    in_progress[:, expected == 0] = rho[expected == 0]
    served = np.divide(in_progress, run_hours, out=np.zeros_like(in_progress), where=run_hours > 0)
    return together(Blocks(share=share, runs_per_hour=served), likely, most)


def level_probabilities(rho: Floats, units: Ints) -> Floats:
    """P(W = w) for w = 0, 1, ... up to more than ten standard deviations above the mean."""
    mean, spread = float((rho * units).sum()), float(np.sqrt((rho * units**2).sum()))
    levels = int(np.ceil(mean + 10 * spread + 10 * units.max(initial=1))) + 1
    probabilities = np.zeros(levels)
    probabilities[0] = 1.0
    weights = list(zip(units.tolist(), (rho * units).tolist(), strict=True))
    for w in range(1, levels):
        probabilities[w] = sum(weight * probabilities[w - size] for size, weight in weights if size <= w) / w
        if probabilities[w] > 1e200:
            probabilities[: w + 1] *= 1e-200
    return probabilities / probabilities.sum()


def together(blocks: Blocks, level: Ints, most: int) -> Blocks:
    """Adjacent levels merged in equal steps into at most `most` blocks, each at its mean."""
    if len(level) <= most:
        return blocks
    step = (level - level[0]) * most // (level[-1] - level[0] + 1)
    _, group = np.unique(step, return_inverse=True)
    share = np.bincount(group, weights=blocks.share)
    runs = np.stack([np.bincount(group, weights=blocks.share * column) for column in blocks.runs_per_hour.T], axis=1)
    return Blocks(share=share, runs_per_hour=runs / share[:, None])


def duration_levels(demand: NDArray[np.integer], weight: Floats | None = None) -> tuple[Ints, Floats]:
    """The load-duration curve of hourly demand [hours, scenarios] in whole machines.

    `weight` is the probability of each scenario, equal if omitted. Returns the distinct levels in ascending order, and
    the expected hours at each level. Raises `ValueError` for negative demand.
    """
    if demand.size and int(demand.min()) < 0:
        raise ValueError("demand is negative in some hour")
    scenarios = demand.shape[1]
    chances = np.full(scenarios, 1.0 / scenarios) if weight is None else weight
    top = int(demand.max(initial=0)) + 1
    hours = np.zeros(top)
    for s in range(scenarios):
        hours += chances[s] * np.bincount(demand[:, s], minlength=top)
    levels = np.flatnonzero(hours)
    return levels.astype(np.int64), hours[levels]


def busy_hours(levels: Ints, hours: Floats) -> Floats:
    """h_i for i = 1, 2, ...: the hours in which at least i machines are needed."""
    top = int(levels.max(initial=0))
    at_least = np.zeros(top + 2)
    np.add.at(at_least, levels, hours)
    return np.cumsum(at_least[::-1])[::-1][1 : top + 1]
