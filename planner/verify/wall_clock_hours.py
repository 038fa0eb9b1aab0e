"""Hours on the clock of runs with preemption: expectation and spread, for one machine at several node counts.

Failures of all n nodes together arrive with rate r. With w hours of work, checkpoints of d hours and R
hours per restart, the interval is t = sqrt(2 d / r) (Young 1974), at most w, and

    E = (w / t) e^(r R) (e^(r (t + d)) - 1) / r                                   (Daly 2006, equation 13)

The spread combines the estimate's lognormal band s with that of preemption: each of r E failures loses R and a time
uniform on [0, t + d], so the variance is r E (R^2 + R (t + d) + (t + d)^2 / 3), taken as a lognormal of that
coefficient of variation c: sigma^2 = s^2 + ln(1 + c^2). Where each failure also waits, exponentially, v hours on
average for a machine, unpaid, the clock shows (1 + r v) E, and each loss squared grows by 2 v (R + (t + d) / 2 + v).
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.interruption_rates import MOST_WAIT_LOG_SPREAD, WAIT_LOG_SPREAD
from gpuplan.planner.verify.billed_hours import mean_of, means_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A thousand years of 365.25 days: the longest run that counts as ending.
NEVER_HOURS = 8_766_000.0
#: exp() of more than this overflows.
_OVERFLOWS = 700.0
_NORMAL = NormalDist()
#: Quantiles at equally likely errors of an estimate.
_ERRORS = [_NORMAL.inv_cdf((number + 0.5) / 128) for number in range(128)]


class _Hours[Hours: (float, Floats)](NamedTuple):
    """Hours of one run: `run` as estimated, without set-up; then, from the start of set-up, expected, median, at the
    requested confidence, and at 95 %.

    `sigma` is the spread of ln(run) and `log_sigma` that of the estimate, so the mean of `run` is e^(log_sigma^2 / 2)
    times it. `paid` is the share of `run` that is not spent waiting for machines, and `paid_sigma` its spread. `fixed` are the hours outside the
    work: set-up, and the checkpoint that is handed over.
    """

    run: Hours
    sigma: Hours
    expected: Hours
    median: Hours
    confident: Hours
    p95: Hours
    paid: Hours
    fixed: Hours
    log_sigma: Hours
    paid_sigma: Hours


class Clock(_Hours[float]):
    """The hours of one run."""

    __slots__ = ()

    @property
    def up(self) -> float:
        """Expected hours in which machines are up, without the fixed ones."""
        return mean_of(self.run, self.log_sigma) * self.paid

    def equally_likely(self) -> list[float]:
        """Busy hours at equally likely errors of the estimate."""
        return [self.fixed + self.run * math.exp(self.log_sigma * z) for z in _ERRORS]


class Clocks(_Hours[Floats]):
    """The hours of one machine at several node counts: arrays of equal length."""

    __slots__ = ()

    @property
    def up(self) -> Floats:
        """Expected hours in which machines are up, without the fixed ones."""
        return means_of(self.run, self.log_sigma) * self.paid

    def at(self, index: int) -> Clock:
        """The clock at this index."""
        return Clock(*(float(column[index]) for column in self))

    def take(self, which: NDArray[np.bool_]) -> "Clocks":
        """The marked ones."""
        return Clocks(*(column[which] for column in self))

    @staticmethod
    def of(clock: Clock) -> "Clocks":
        """A single clock as arrays."""
        return Clocks(*(np.array([hours]) for hours in clock))


def interval_hours(work: Floats, checkpoint: Floats, rate: Floats) -> Floats:
    """Hours of work between two checkpoints, at rates above 0."""
    return np.minimum(np.maximum(np.sqrt(2.0 * checkpoint / rate), 1e-9), work)


def interval_hours_of(work: float, checkpoint: float, rate: float) -> float:
    """`interval_hours` of a single run."""
    return float(interval_hours(np.array(work), np.array(checkpoint), np.array(rate)))


def wall_hours(work: Floats, checkpoint: Floats, restart: float, rate: Floats) -> Floats:
    """Expected hours of runs at rates above 0; inf where a run never ends."""
    interval = interval_hours(work, checkpoint, rate)
    exponent, restarts = rate * (interval + checkpoint), rate * restart
    with np.errstate(over="ignore"):
        hours = work / interval * np.exp(restarts) * np.expm1(exponent) / rate
    return np.where(exponent + restarts > _OVERFLOWS, np.inf, hours)


def spread(
    run: Floats, work: Floats, checkpoint: Floats, restart: float, rate: Floats, *, log_sigma: Floats, wait: Floats
) -> Floats:
    """sigma of the lognormal distribution of hours: `run` is paid hours, finite, and `wait` hours per failure."""
    step = interval_hours(work, checkpoint, rate) + checkpoint
    squared = restart * restart + restart * step + step * step / 3.0 + 2 * wait * (restart + step / 2 + wait)
    mean = run * (1 + rate * wait)
    chance = np.log1p(rate * run * squared / (mean * mean))
    return np.asarray(np.sqrt(log_sigma * log_sigma + chance + between_zones(rate, wait) ** 2))


def between_zones(rate: Floats, wait: Floats) -> Floats:
    """How the logarithm of hours spreads between zones and weeks: by the part of them that is waiting, up to a limit."""
    return np.minimum(WAIT_LOG_SPREAD * (1 - 1 / (1 + rate * wait)), MOST_WAIT_LOG_SPREAD)


def quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return _NORMAL.inv_cdf(probability)


def probability_by(hours: float, run: float, sigma: float) -> float:
    """Probability that a run of median `run` ends within `hours`, both without set-up."""
    if hours <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if hours >= run else 0.0
    return _NORMAL.cdf(math.log(hours / run) / sigma)


def normal_probability(sigmas: float) -> float:
    """Cumulative distribution function of the standard normal."""
    return _NORMAL.cdf(sigmas)
