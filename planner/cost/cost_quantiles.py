"""Quantiles of a cost over the hours of a run and, where a price is an estimate, over that price too.

A run costs machines(z) x r(y) + other(z). z and y are independent standard normal deviations: z that of the hours, y that
of the price. Machines cost in proportion to their price, so r is the price over the expected one:

    ln r(y) = y s,  at most ln(on-demand / expected)         s = -ln(low / expected) / 1.2816 for y < 0, with `high` above

so half of the prices are below the expected one, and 10 % lie beyond either end of the band. All phases of a plan have the
same z (`gpuplan.planner.strategies.schedule`) and the same y: prices of some age err together, as zones of a region do.
The quantile is that of equally likely pairs (z, y). Choices compare expected costs and never read it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.cost.cost_breakdown import P95, CostBreakdown
from gpuplan.planner.model.outcome import Choice, CostMicros, CostSpread

Floats = NDArray[np.float64]

#: Equally likely runs and prices. With these, quantiles are within 0.3 % of fine lattices at spreads of 0.05 to 0.6; 64 runs
#: were up to 1.6 % off.
RUNS, PRICES = 128, 128
#: Standard normal quantile of either end of an 80 % band.
_END = NormalDist().inv_cdf(0.9)


def _equally_likely(count: int) -> Floats:
    return np.array([NormalDist().inv_cdf((number + 0.5) / count) for number in range(count)])


_HOURS, _PRICE = _equally_likely(RUNS), _equally_likely(PRICES)
_HOURS_P95 = NormalDist().inv_cdf(P95)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCosts:
    """USD of one configuration in equally likely runs, at the expected price: of its machines, and of all else [runs].

    `price` are equally likely prices over the expected one [PRICES]; None for a price taken as observed.
    """

    machines_usd: Floats
    other_usd: Floats
    price: Floats | None


def relative_prices(offer: Offer) -> Floats | None:
    """Equally likely prices over the expected one, ascending [PRICES]; None for a price taken as observed."""
    estimate, expected = offer.price_estimate, offer.usd_micros_per_hour
    if estimate is None:
        return None
    low, high = estimate.low_usd_micros_per_hour / expected, estimate.high_usd_micros_per_hour / expected
    slope = np.where(_PRICE < 0, -math.log(low), math.log(high)) / _END
    most = estimate.most_usd_micros_per_hour
    return np.asarray(np.minimum(np.exp(slope * _PRICE), np.inf if most is None else most / expected))


def cost_spread(breakdown: CostBreakdown, index: int, *, one_off_usd: float) -> CostSpread:
    """The spread of configuration `index`, of which `one_off_usd` depends neither on its hours nor on its price."""
    return CostSpread(
        usd_median=float(breakdown.cost_median_usd[index]),
        usd_p95=float(breakdown.cost_p95_usd[index]),
        one_off_usd=one_off_usd,
        storage_usd_per_hour=float(breakdown.storage_usd[index] / breakdown.hours[index]),
        hours_median=float(breakdown.hours_median[index]),
        hours_p95=float(breakdown.hours_p95[index]),
        sigma=float(breakdown.sigma[index]),
        paid_sigma=float(breakdown.paid_sigma[index]),
    )


def run_costs(spread: CostSpread, price: Floats | None) -> RunCosts:
    """The costs of equally likely runs.

    Hours are linear in e^(sigma z) and the cost of machines in e^(paid_sigma z), but for billing steps: one second wherever
    a price is an estimate.
    """
    hours = spread.hours_median + (spread.hours_p95 - spread.hours_median) * _grown(spread.sigma)
    other, other_median, other_p95 = (
        spread.one_off_usd + spread.storage_usd_per_hour * at for at in (hours, spread.hours_median, spread.hours_p95)
    )
    median, p95 = spread.usd_median - other_median, spread.usd_p95 - other_p95
    machines = median + (p95 - median) * _grown(spread.paid_sigma)
    return RunCosts(machines_usd=machines, other_usd=np.asarray(other), price=price)


def _grown(sigma: float) -> Floats:
    """How far equally likely runs are from the median (0) to the 95 % quantile (1): [RUNS]."""
    return np.expm1(sigma * _HOURS) / math.expm1(sigma * _HOURS_P95) if sigma else np.zeros(RUNS)


def cost_quantiles(costs: Sequence[RunCosts]) -> tuple[int, int]:
    """The median and the 95 % quantile of the sum of costs over the same runs, in micro-dollars."""
    total = np.zeros((1, PRICES))
    for cost in costs:
        machines = cost.machines_usd[:, None]
        total = total + (machines if cost.price is None else machines * cost.price) + cost.other_usd[:, None]
    ranks = [chance * total.size - 0.5 for chance in (0.5, P95)]
    places = [int(rank) + after for rank in ranks for after in (0, 1)]
    below, above, low, high = np.partition(total, places, axis=None)[places].tolist()
    middle, most = (rank % 1 for rank in ranks)
    return round((below + middle * (above - below)) * 1e6), round((low + most * (high - low)) * 1e6)


def cost_with_price(choice: Choice) -> CostMicros:
    """The cost of a choice for a whole job, with the spread of an estimated price in its quantiles."""
    price = relative_prices(choice.offer)
    if price is None or choice.spread is None:
        return choice.cost
    median, p95 = cost_quantiles([run_costs(choice.spread, price)])
    return replace(choice.cost, median=median, p95=p95)
