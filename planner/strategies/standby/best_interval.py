"""The checkpoint interval at which an hour of work takes least, without a deadline."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BISECTIONS = 40
#: Up to so many numbers, bisection one by one is faster.
_FEW = 6


def best_interval(rate: Floats, write: Floats) -> Floats:
    """The interval at which an hour of work takes least: 1 - x = e^(-x - rate d) with x = rate tau, by bisection."""
    cost = rate * write
    if cost.size == 1:
        return np.maximum(_rate_times_interval(float(cost.item())) / rate, 1e-9)
    distinct, which = np.unique(cost, return_inverse=True)
    roots = np.array([_rate_times_interval(cost) for cost in distinct]) if len(distinct) <= _FEW else None
    low = (_rates_times_intervals(distinct) if roots is None else roots)[which].reshape(cost.shape)
    return np.maximum(low / rate, 1e-9)


def _rates_times_intervals(cost: Floats) -> Floats:
    low, high = np.zeros_like(cost), np.ones_like(cost)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        rising = 1.0 - middle > np.exp(-middle - cost)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return low


def _rate_times_interval(cost: float) -> float:
    """The root for a single cost: some ten times faster than on a small array."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if 1.0 - middle > math.exp(-middle - cost):
            low = middle
        else:
            high = middle
    return low
