"""Expected billed hours of a run whose length is uncertain, one at a time, by summing over the billing steps it may reach.

The run takes X = a + L hours, L lognormal. With steps of s hours and a minimum of m, a whole number of them,

    E[billed] = m + s sum_(k >= m / s) P(X > k s)

which is E[X] + s / 2 where X surely exceeds the minimum and spreads over many steps (trapezoidal rule).
"""

import math

#: A spread of so many steps is many.
_MANY = 2.0
#: Steps that are summed one by one; beyond, the trapezoidal rule with its end correction s^2 / 12 of the density.
_SUMMED = 500
#: exp() of more than this is no float.
_OVERFLOWS = 700.0
#: Deviations within which a normal variable lies, to the last digit of a float.
_SURE = 8.3


def mean_of(median: float, sigma: float) -> float:
    """The mean of a lognormal variable; inf where it is no float."""
    return median * math.exp(sigma * sigma / 2) if sigma * sigma / 2 < _OVERFLOWS else math.inf


def expected_billed(certain: float, median: float, sigma: float, step: float, minimum: float) -> float:
    """Hours billed on average for `certain` ones and lognormal ones of this median and sigma."""
    mean = mean_of(median, sigma)
    if not sigma or not median:
        return max(math.ceil((certain + median) / step - 1e-9) * step, minimum)
    if certain >= minimum and sigma * mean >= _MANY * step:
        return certain + mean + step / 2
    shortest, longest = (certain + median * math.exp(side * _SURE * sigma) for side in (-1, 1))
    number = max(math.ceil(minimum / step - 1e-9), math.floor(shortest / step - 1e-9))
    billed = number * step
    for _ in range(_SUMMED):
        if number * step >= longest:
            return billed
        billed += step * _exceeds(number * step - certain, median, sigma)
        number += 1
    over = number * step - certain
    z = math.log(over / median) / sigma
    partial = mean * _normal_above(z - sigma) - over * _normal_above(z)
    density = math.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * sigma * over)
    return billed + partial + step / 2 * _normal_above(z) + step * step / 12 * density


def _exceeds(hours: float, median: float, sigma: float) -> float:
    """The probability that the lognormal variable exceeds so many hours."""
    return 1.0 if hours <= 0 else _normal_above(math.log(hours / median) / sigma)


def _normal_above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2
