"""Expected billed hours of a run of uncertain length, where billing rounds up.

A run is billed for X = a + L hours: `a` are certain (set-up), L is lognormal, L = m e^(sigma z) with mean
m e^(sigma^2 / 2), from the error of the estimate. Billing counts whole steps of s hours, at least a minimum of k_0 s:

    E[billed] = k_0 s + s sum_(k >= k_0) P(X > k s)

If X certainly exceeds the minimum and steps are narrow compared with the spread, this is E[X] + s / 2 to the last digit
of a float (Poisson summation: the error falls as e^(-2 (pi sigma m / s)^2)). Otherwise `_DIRECT` terms are summed
directly and the rest by the Euler-Maclaurin formula: integral + half of the first term + s^2 / 12 of the density there.

Expected wall hours on machines with availability windows: busy hours plus the waits between windows.

Waits jump where a run just misses the end of a window, so the mean is taken over `RUNS` equally likely errors of the
estimate, each at the middle of its share of the probability. Runs that no window is long enough for are left out of the
mean: the planner refuses a run if its expected hours, or those of 19 of 20 runs, never end.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.cost.normal_tail import upper_tail

Floats = NDArray[np.float64]

#: Steps are narrow if the spread sigma m of the hours is at least this many steps.
_NARROW = 2.0
#: Most terms of the sum that are added one by one.
_DIRECT = 64
#: Runs whose terms are worked out at once: few enough for their arrays to stay in the cache.
_TOGETHER = 256
#: Standard deviations beyond which the tail of a normal variable is below the precision of a float.
_CERTAIN = 8.3
#: Tolerance for rounding errors that put hours above a whole number of steps.
_ROUNDING = 1e-9


def mean_factor(log_sigma: Floats) -> Floats:
    """e^(sigma^2 / 2): the mean of a lognormal per unit of its median (Aitchison and Brown 1957)."""
    return np.asarray(np.exp(0.5 * log_sigma * log_sigma))


def expected_billed(certain: Floats, mean: Floats, sigma: Floats, step: Floats, minimum: Floats) -> Floats:
    """Expected hours billed for `certain` hours plus lognormal hours of this mean and sigma, in whole steps.

    `minimum` is a whole number of steps. All are arrays of the same length; the result is inf where `mean` is.
    """
    billed = np.asarray(certain + mean + step / 2)
    plain = (certain >= minimum) & (sigma * mean >= _NARROW * step)
    if not plain.all():
        at = np.flatnonzero(~plain & np.isfinite(mean))
        billed[at] = _summed(certain[at], mean[at], sigma[at], step[at], minimum[at])
    return billed


def whole_steps(hours: Floats, step: Floats, minimum: Floats) -> Floats:
    """Billed hours of a run of certain length."""
    return np.asarray(np.maximum(np.ceil(hours / step - _ROUNDING) * step, minimum))


def _summed(certain: Floats, mean: Floats, sigma: Floats, step: Floats, minimum: Floats) -> Floats:
    """`expected_billed` by the sum over steps."""
    billed = whole_steps(certain + mean, step, minimum)
    unsure = np.flatnonzero((sigma > 0) & (mean > 0))
    if not len(unsure):
        return billed
    certain, mean, sigma, step, minimum = (values[unsure] for values in (certain, mean, sigma, step, minimum))
    median = mean / mean_factor(sigma)
    least, most = certain + median * np.exp(-_CERTAIN * sigma), certain + median * np.exp(_CERTAIN * sigma)
    first = np.maximum(np.ceil(minimum / step - _ROUNDING), np.floor(least / step - _ROUNDING))
    hours, last = first * step, first.copy()
    for begin in range(0, len(hours), _TOGETHER):
        rows = slice(begin, begin + _TOGETHER)
        ends = (first[rows, None] + np.arange(_DIRECT)) * step[rows, None]
        added = ends < most[rows, None]
        at, _ = np.nonzero(added)
        over = (ends[added] - certain[rows][at]) / median[rows][at]
        terms = np.zeros((len(ends), 1 + int(added.sum(axis=1).max(initial=0))))
        terms[:, 0] = hours[rows]
        terms[:, 1:][added[:, : terms.shape[1] - 1]] = step[rows][at] * _beyond(over, sigma[rows][at])
        hours[rows] = np.cumsum(terms, axis=1)[:, -1]
        last[rows] += added.sum(axis=1)
    left = np.flatnonzero(last * step < most)
    if len(left):
        hours[left] += _tail(last[left] * step[left] - certain[left], median[left], sigma[left], step[left])
    billed[unsure] = hours
    return billed


def _beyond(ratio: Floats, sigma: Floats) -> Floats:
    """P(L > ratio x median)."""
    with np.errstate(divide="ignore"):
        return np.where(ratio > 0, upper_tail(np.log(np.maximum(ratio, 1e-300)) / sigma), 1.0)


def _tail(over: Floats, median: Floats, sigma: Floats, step: Floats) -> Floats:
    """s sum_(k >= 0) P(L > over + k s), by the Euler-Maclaurin formula."""
    z = np.log(over / median) / sigma
    integral = median * mean_factor(sigma) * upper_tail(z - sigma) - over * upper_tail(z)
    density = np.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * sigma * over)
    return np.asarray(integral + step / 2 * upper_tail(z) + step * step / 12 * density)


#: Number of sampled errors: the expected end is exact to 0.4 % of the longest wait.
RUNS = 128
_Z = np.array([NormalDist().inv_cdf((number + 0.5) / RUNS) for number in range(RUNS)])


def equally_likely(certain_hours: Floats, mean_hours: Floats, log_sigma: Floats) -> Floats:
    """Busy hours of equally likely runs, [RUNS, ...]: certain hours plus lognormal hours of this mean and sigma."""
    factor = np.exp(np.multiply.outer(_Z, log_sigma))
    return np.asarray(certain_hours + mean_hours / mean_factor(log_sigma) * factor)


def mean_wait(elapsed_hours: Floats, busy_hours: Floats) -> float:
    """Mean hours that runs wait in addition to their busy hours; one element per run, inf if none ends."""
    ends = np.isfinite(elapsed_hours)
    return float(np.mean(elapsed_hours[ends] - busy_hours[ends])) if ends.any() else float("inf")
