"""Quantiles of a cost whose prices are estimates, on a lattice of the deviations of hours and of prices.

A price y deviations from the expected one is expected x (low / expected)^(-y / u) below it and expected x (high /
expected)^(y / u) above, never more than the machine costs on demand, where u = 1.2816 puts 10 % of prices beyond each end of
its band. Hours and prices err independently; the hours of all phases err alike, and so do all prices.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer

Floats = NDArray[np.float64]

#: Deviations at which runs and prices are evaluated, weighed by the normal density.
RUN_DEVIATIONS, PRICE_DEVIATIONS = np.linspace(-6.0, 6.0, 241), np.linspace(-6.0, 6.0, 121)
#: Relative tolerance of a stated quantile: both sides integrate numerically.
INTEGRATED = 5e-3
_END = 1.2815515655446004
_HALVINGS = 40
#: The probability of less than each deviation of the price.
_CHANCES = np.array([NormalDist().cdf(deviation) for deviation in PRICE_DEVIATIONS.tolist()])


class Spread(NamedTuple):
    """USD of the machines of one phase at the expected price and of all else, by deviation of the hours, and relative
    prices by deviation of the price.
    """

    machines_usd: Floats
    other_usd: Floats
    prices: Floats


def is_estimate(offer: Offer | None) -> bool:
    """Whether the price of an offer is expected and not observed."""
    return offer is not None and offer.price_estimate is not None


def relative_prices(offer: Offer | None, deviations: Floats) -> Floats:
    """Prices over the expected one at these deviations; 1 for a price as observed."""
    if offer is None or offer.price_estimate is None:
        return np.ones(len(deviations))
    micros, band = offer.usd_micros_per_hour, offer.price_estimate
    below = (band.low_usd_micros_per_hour / micros) ** (-np.minimum(deviations, 0.0) / _END)
    above = (band.high_usd_micros_per_hour / micros) ** (np.maximum(deviations, 0.0) / _END)
    most = band.most_usd_micros_per_hour
    prices = below * above
    return prices if most is None else np.minimum(prices, most / micros)


def quantiles(spreads: Sequence[Spread], probabilities: Sequence[float]) -> list[float]:
    """USD within which the total of the spreads stays with these probabilities, by bisection."""
    usd: Floats = np.zeros((len(RUN_DEVIATIONS), len(PRICE_DEVIATIONS)))
    for machines_usd, other_usd, prices in spreads:
        usd += machines_usd[:, None] * prices + other_usd[:, None]
    runs = _weights(RUN_DEVIATIONS)
    return [_least(lambda most: float(runs @ _within(usd, most)), usd, chance) for chance in probabilities]


def _within(usd: Floats, most: float) -> Floats:
    """The probability per deviation of the hours that the price keeps the cost within `most`: [runs].

    Costs rise with the deviation of the price. Between two deviations the one that costs `most` is interpolated: to count
    whole deviations would round each quantile up by half of one on average.
    """
    count = (usd <= most).sum(axis=1)
    probability = np.where(count > 0, 1.0, 0.0)
    between = np.flatnonzero((count > 0) & (count < usd.shape[1]))
    after = count[between]
    low, high = usd[between, after - 1], usd[between, after]
    probability[between] = _CHANCES[after - 1] + (most - low) / (high - low) * (_CHANCES[after] - _CHANCES[after - 1])
    return probability


def _weights(deviations: Floats) -> Floats:
    density = np.exp(-0.5 * deviations**2)
    return np.asarray(density / density.sum())


def _least(within: Callable[[float], float], usd: Floats, chance: float) -> float:
    low, high = float(usd.min()), float(usd.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle) >= chance else (middle, high)
    return high
