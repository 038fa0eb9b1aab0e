"""A standard normal in cells, over which a bound that holds in each cell is averaged."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.strategies.standby.standby_switching import FURTHEST

Floats = NDArray[np.float64]

_MOMENT_POINTS = 32


class Cells(NamedTuple):
    """Cells of a standard normal between -4 and 4: `edges` [n + 1], and per cell [n] P(Z < its left edge), its own
    probability, and the first three moments of the distance from the left edge (`moments` [3, n]).
    """

    edges: Floats
    below: Floats
    probability: Floats
    moments: Floats


def _cells(count: int) -> Cells:
    """Cells narrow where the density is high: quantiles of a normal of this spread, whose density is its cube root."""
    normal, spacing = NormalDist(), NormalDist(sigma=math.sqrt(3))
    last = spacing.cdf(FURTHEST)
    shares = np.linspace(1 - last, last, count + 1)
    edges = np.array([-FURTHEST, *(spacing.inv_cdf(share) for share in shares[1:-1]), FURTHEST])
    below = np.array([normal.cdf(z) for z in edges])
    at, weights = np.polynomial.legendre.leggauss(_MOMENT_POINTS)
    distance = np.diff(edges)[:, None] * (1 + at) / 2
    density = weights * np.exp(-0.5 * (edges[:-1, None] + distance) ** 2)
    density /= density.sum(axis=1, keepdims=True)
    moments = np.stack([(density * distance**power).sum(axis=1) for power in (1, 2, 3)])
    return Cells(edges=edges, below=below[:-1], probability=np.diff(below), moments=moments)


#: All pairs get a coarse bound, the rest a fine one.
COARSE, FINE = _cells(10), _cells(64)
