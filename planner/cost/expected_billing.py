"""The expectation of billed hours, where billing rounds up and the length of the run is uncertain.

A run is billed for X = a + L hours: `a` are certain (set-up), L is lognormal, L = m e^(sigma z) of mean m e^(sigma^2 / 2),
by the error of the estimate. Billing counts whole steps of s hours, and at least a minimum of k_0 s. As a whole number of
steps is exceeded step by step,

    E[billed] = k_0 s + s sum_(k >= k_0) P(X > k s)

Where the minimum is certain to be exceeded and steps are narrow beside the spread, that is E[X] + s / 2 to the last digit
of a float (Poisson summation: the error falls as e^(-2 (pi sigma m / s)^2)). Elsewhere `_DIRECT` terms are summed, and
the rest by Euler and Maclaurin, integral + half of the first term + s^2 / 12 of the density there.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Steps are narrow if the spread sigma m of the hours is that many of them.
_NARROW = 2.0
#: Terms of the sum that are taken one by one at most.
_DIRECT = 64
#: Deviations of a normal variable beyond which nothing is left in a float.
_CERTAIN = 8.3
#: What a rounding may put hours above a whole number of steps.
_ROUNDING = 1e-9


def mean_factor(log_sigma: Floats) -> Floats:
    """e^(sigma^2 / 2): the mean of a lognormal per unit of its median (Aitchison and Brown 1957)."""
    return np.asarray(np.exp(0.5 * log_sigma * log_sigma))


def expected_billed(certain: Floats, mean: Floats, sigma: Floats, step: Floats, minimum: Floats) -> Floats:
    """Expected hours billed for `certain` hours and lognormal ones of this mean and sigma, in whole steps.

    `minimum` is a whole number of steps. All are arrays of the same length; the result is inf where `mean` is.
    """
    billed = np.asarray(certain + mean + step / 2)
    plain = (certain >= minimum) & (sigma * mean >= _NARROW * step)
    if not plain.all():
        at = np.flatnonzero(~plain & np.isfinite(mean))
        billed[at] = _summed(certain[at], mean[at], sigma[at], step[at], minimum[at])
    return billed


def whole_steps(hours: Floats, step: Floats, minimum: Floats) -> Floats:
    """Hours billed for hours that are certain."""
    return np.asarray(np.maximum(np.ceil(hours / step - _ROUNDING) * step, minimum))


def _summed(certain: Floats, mean: Floats, sigma: Floats, step: Floats, minimum: Floats) -> Floats:
    """The same by the sum over steps."""
    billed = whole_steps(certain + mean, step, minimum)
    unsure = np.flatnonzero((sigma > 0) & (mean > 0))
    if not len(unsure):
        return billed
    certain, mean, sigma, step, minimum = (each[unsure] for each in (certain, mean, sigma, step, minimum))
    median = mean / mean_factor(sigma)
    least, most = certain + median * np.exp(-_CERTAIN * sigma), certain + median * np.exp(_CERTAIN * sigma)
    first = np.maximum(np.ceil(minimum / step - _ROUNDING), np.floor(least / step - _ROUNDING))
    found, last = first * step, first.copy()
    for _ in range(_DIRECT):
        active = np.flatnonzero(last * step < most)
        if not len(active):
            break
        over = (last[active] * step[active] - certain[active]) / median[active]
        found[active] += step[active] * _beyond(over, sigma[active])
        last[active] += 1
    left = np.flatnonzero(last * step < most)
    if len(left):
        found[left] += _tail(last[left] * step[left] - certain[left], median[left], sigma[left], step[left])
    billed[unsure] = found
    return billed


def _beyond(ratio: Floats, sigma: Floats) -> Floats:
    """P(L > ratio x median)."""
    with np.errstate(divide="ignore"):
        return np.where(ratio > 0, _upper(np.log(np.maximum(ratio, 1e-300)) / sigma), 1.0)


def _tail(over: Floats, median: Floats, sigma: Floats, step: Floats) -> Floats:
    """s sum_(k >= 0) P(L > over + k s) of hours above `over`, by Euler and Maclaurin."""
    z = np.log(over / median) / sigma
    integral = median * mean_factor(sigma) * _upper(z - sigma) - over * _upper(z)
    density = np.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * sigma * over)
    return np.asarray(integral + step / 2 * _upper(z) + step * step / 12 * density)


def _upper(z: Floats) -> Floats:
    """P(Z > z) of a standard normal Z, to the last digit."""
    return np.array([0.5 * math.erfc(each / math.sqrt(2)) for each in z.tolist()])
