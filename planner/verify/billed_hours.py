"""Expected billed hours of a run whose length is uncertain, by a sum over the billing steps that it may reach.

The run takes X = a + L hours, L lognormal. With steps of s hours and a minimum of m, a whole number of them,

    E[billed] = m + s sum_(k >= m / s) P(X > k s)

which is E[X] + s / 2 where X surely exceeds the minimum and spreads over many steps (trapezoidal rule).
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: From a standard deviation of this many billing steps on, rounding up adds half a step on average.
_MANY_STEPS = 2.0
#: Most steps that are summed directly. The rest is the trapezoidal rule with its end correction s^2 / 12 of the
#: density.
_SUMMED = 500
#: exp() of more than this overflows.
_OVERFLOWS = 700.0
#: Standard deviations beyond which the normal tail is below the precision of a float.
_SURE = 8.3


def mean_of(median: float, sigma: float) -> float:
    """The mean of a lognormal variable; inf if it overflows."""
    return median * math.exp(sigma * sigma / 2) if sigma * sigma / 2 < _OVERFLOWS else math.inf


def means_of(medians: Floats, sigmas: Floats) -> Floats:
    """The means of lognormal variables; inf where one overflows."""
    exponents = sigmas * sigmas / 2
    return np.where(exponents < _OVERFLOWS, medians * np.exp(np.minimum(exponents, _OVERFLOWS)), np.inf)


def expected_billed(certain: float, median: float, sigma: float, step: float, minimum: float) -> float:
    """Expected billed hours of a run of `certain` hours plus lognormal ones with this median and sigma."""
    return float(all_expected_billed(np.array([certain]), np.array([median]), np.array([sigma]), step, minimum)[0])


def all_expected_billed(certain: Floats, median: Floats, sigma: Floats, step: float, minimum: float) -> Floats:
    """`expected_billed` of several runs: arrays of equal length."""
    mean, at_once = means_of(median, sigma), (sigma == 0) | (median == 0)
    many_steps = ~at_once & (certain >= minimum) & (sigma * mean >= _MANY_STEPS * step)
    billed = np.where(
        at_once, np.maximum(np.ceil((certain + median) / step - 1e-9) * step, minimum), certain + mean + step / 2
    )
    few = np.flatnonzero(~(at_once | many_steps))
    if len(few):
        billed[few] = _summed(certain[few], median[few], sigma[few], step, minimum)
    return billed


def _summed(certain: Floats, median: Floats, sigma: Floats, step: float, minimum: float) -> Floats:
    """Expected billed hours as a sum over billing steps."""
    shortest, longest = (certain + median * np.exp(side * _SURE * sigma) for side in (-1, 1))
    number = np.maximum(math.ceil(minimum / step - 1e-9), np.floor(shortest / step - 1e-9))
    billed, active = number * step, np.arange(len(number))
    for _ in range(_SUMMED):
        active = active[number[active] * step < longest[active]]
        if not len(active):
            return billed
        billed[active] += step * _exceeds(number[active] * step - certain[active], median[active], sigma[active])
        number[active] += 1
    active = active[number[active] * step < longest[active]]
    certain, median, sigma = certain[active], median[active], sigma[active]
    over = number[active] * step - certain
    z = np.log(over / median) / sigma
    above = _normal_above(z)
    partial = means_of(median, sigma) * _normal_above(z - sigma) - over * above
    density = np.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * sigma * over)
    billed[active] += partial + step / 2 * above + step * step / 12 * density
    return billed


def _exceeds(hours: Floats, median: Floats, sigma: Floats) -> Floats:
    """P(X > hours) of each lognormal variable."""
    probabilities, positive = np.ones(len(hours)), hours > 0
    probabilities[positive] = _normal_above(np.log(hours[positive] / median[positive]) / sigma[positive])
    return probabilities


def _normal_above(z: Floats) -> Floats:
    return np.array([math.erfc(value) for value in (z / math.sqrt(2)).tolist()]) / 2
