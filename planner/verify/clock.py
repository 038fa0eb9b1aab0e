"""How long a run takes on the clock, one configuration at a time: preemption, restarts, spread.

Failures of all n nodes together arrive with rate r = n r_node. With w hours of work, checkpoints of d hours and R hours
per restart, the interval is t = sqrt(2 d / r) (Young 1974), at most w, and

    E = (w / t) e^(r R) (e^(r (t + d)) - 1) / r                                   (Daly 2006, equation 13)

The spread joins the estimate's lognormal band s with what preemption adds: each of r E failures loses R and a time
uniform on [0, t + d], so the variance is r E (R^2 + R (t + d) + (t + d)^2 / 3), taken as a lognormal of that
coefficient of variation c: sigma^2 = s^2 + ln(1 + c^2). Where each failure also waits, exponentially, v hours on average
for a machine, unpaid, the clock shows (1 + r v) E, and each loss squared grows by 2 v (R + (t + d) / 2 + v).
"""

import math
from statistics import NormalDist
from typing import NamedTuple

from planner.verify.billing import mean_of

#: A thousand years of 365.25 days: a run that is longer never ends.
NEVER_HOURS = 8_766_000.0
#: exp() of more than this is no number of hours.
_OVERFLOWS = 700.0
_NORMAL = NormalDist()
#: Deviations of equally likely errors of an estimate.
_ERRORS = [_NORMAL.inv_cdf((number + 0.5) / 128) for number in range(128)]


class Clock(NamedTuple):
    """Hours: `run` as estimated, without set-up, then from the start of set-up expected, at the median, with the asked
    confidence, and with 95 %.

    `log_sigma` is the spread of the estimate, so that the mean of `run` is e^(log_sigma^2 / 2) times it; `sigma` is the spread of ln(run); `paid` is the share of `run` that is not spent waiting for machines; `fixed` are
    the hours before the work and after it: set-up, and the checkpoint that is handed over.
    """

    run: float
    sigma: float
    expected: float
    median: float
    kept: float
    p95: float
    paid: float
    fixed: float
    log_sigma: float

    @property
    def up(self) -> float:
        """Expected hours beside the fixed ones in which machines are up."""
        return mean_of(self.run, self.log_sigma) * self.paid

    def equally_likely(self) -> list[float]:
        """Busy hours of so many runs whose estimates err as they may, each as likely as the others."""
        return [self.fixed + self.run * math.exp(self.log_sigma * z) for z in _ERRORS]


def interval_hours(work: float, checkpoint: float, rate: float) -> float:
    """Hours of work between two checkpoints."""
    return min(max(math.sqrt(2.0 * checkpoint / rate), 1e-9), work)


def wall_hours(work: float, checkpoint: float, restart: float, rate: float) -> float:
    """Expected hours of a run; inf where it never ends."""
    if rate <= 0 or work <= 0:
        return work
    interval = interval_hours(work, checkpoint, rate)
    exponent = rate * (interval + checkpoint)
    if exponent + rate * restart > _OVERFLOWS:
        return math.inf
    return work / interval * math.exp(rate * restart) * math.expm1(exponent) / rate


def spread(
    run: float, work: float, checkpoint: float, restart: float, rate: float, *, log_sigma: float, wait: float = 0.0
) -> float:
    """sigma of the lognormal that the hours of a run follow: `run` paid ones and `wait` hours per failure."""
    if rate <= 0 or not math.isfinite(run):
        return log_sigma
    step = interval_hours(work, checkpoint, rate) + checkpoint
    squared = restart * restart + restart * step + step * step / 3.0 + 2 * wait * (restart + step / 2 + wait)
    mean = run * (1 + rate * wait)
    return math.sqrt(log_sigma * log_sigma + math.log1p(rate * run * squared / (mean * mean)))


def quantile(probability: float) -> float:
    """Of the standard normal."""
    return _NORMAL.inv_cdf(probability)


def probability_by(hours: float, run: float, sigma: float) -> float:
    """Probability that a run of median `run` ends within `hours`, both without set-up."""
    if hours <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if hours >= run else 0.0
    return _NORMAL.cdf(math.log(hours / run) / sigma)


def normal_probability(sigmas: float) -> float:
    """That a normal variable lies no more than so many standard deviations above its mean."""
    return _NORMAL.cdf(sigmas)
