"""The upper tail of the standard normal distribution for arrays, by Cody's rational approximations of erf and erfc.

W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969) 631-637, with
the coefficients of his Fortran function CALERF. Relative errors are a few units of the last digit of a float.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: erf is approximated up to the first bound; erfc by one formula up to the second and by another beyond it.
_SMALL, _MEDIUM = 0.46875, 4.0
#: Beyond this, erfc underflows to 0.
_NOTHING_LEFT = 28.0
#: Coefficients of numerators and denominators, leading ones first.
_ERF = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_ERFC = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)
_ERFC_FAR = (
    (
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ),
    (
        1.0,
        2.56852019228982242,
        1.87295284992346725,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)


def upper_tail(z: Floats) -> Floats:
    """P(Z > z) of a standard normal Z."""
    x = np.asarray(z, np.float64) / math.sqrt(2)
    size = np.minimum(np.abs(x), _NOTHING_LEFT)
    tail = np.empty_like(size)
    small, far = size <= _SMALL, size > _MEDIUM
    medium = ~(small | far)
    near = size[small]
    tail[small] = 1.0 - near * _ratio(_ERF, near * near)
    tail[medium] = _decay(size[medium]) * _ratio(_ERFC, size[medium])
    beyond = size[far]
    inverse = 1.0 / (beyond * beyond)
    tail[far] = _decay(beyond) / beyond * (1.0 / math.sqrt(math.pi) - inverse * _ratio(_ERFC_FAR, inverse))
    return np.asarray(0.5 * np.where(x < 0, 2.0 - tail, tail))


def _ratio(of: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    """The quotient of two polynomials at `x`."""
    over, under = (np.full_like(x, coefficients[0]) for coefficients in of)
    for numerator, denominator in zip(of[0][1:], of[1][1:], strict=True):
        over *= x
        over += numerator
        under *= x
        under += denominator
    return np.asarray(over / under)


def _decay(x: Floats) -> Floats:
    """e^(-x^2), in two factors so that no digit of x^2 is lost."""
    rounded = np.floor(x * 16.0) / 16.0
    return np.asarray(np.exp(-rounded * rounded) * np.exp(-(x - rounded) * (x + rounded)))
