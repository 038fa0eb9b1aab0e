"""Present value in USD at the start: of purchases, commitments and running costs.

Years have 8,760 hours, as terms do. At the discount rate r a year, a dollar at time t (years) is worth (1 + r)^-t.

    running cost of 1 USD a year from s to s + d:  integral of (1 + r)^-t  =  ((1+r)^-s - (1+r)^-(s+d)) / ln(1+r)
    purchase: bought at 0 and again at every end of its life L within the horizon H; each that reaches its end is sold
        for its residual value, the last at H for its straight-line book value P - (P - R) (H - kL) / L
    commitment: the upfront share at its start, the rest evenly over its whole term, used or not
"""

import math

HOURS_PER_YEAR = 8760.0


def present(years: float, rate: float) -> float:
    """The present value of a dollar paid after this many years."""
    return float((1.0 + rate) ** -years)


def running_years(start: float, duration: float, rate: float) -> float:
    """The present value of a dollar per year, paid evenly from `start` for `duration` years."""
    force = math.log1p(rate)
    # Below this the difference of the two values is rounding, and the discount is negligible.
    if force * duration < 1e-12:
        return duration * present(start, rate)
    return present(start, rate) * -math.expm1(-force * duration) / force


def purchase_value(
    price_usd: float, residual_usd: float, life_years: float, horizon_years: float, rate: float
) -> float:
    """The present value of one machine over the horizon: price and replacements minus residual values."""
    return sum(
        usd * present(at, rate) for at, usd in purchase_flows(price_usd, residual_usd, life_years, horizon_years)
    )


def purchase_flows(
    price_usd: float, residual_usd: float, life_years: float, horizon_years: float
) -> list[tuple[float, float]]:
    """The payments for one machine over the horizon: (years, USD), income negative."""
    flows: list[tuple[float, float]] = []
    priced_configurations = 0.0
    while True:
        flows.append((priced_configurations, price_usd))
        end = priced_configurations + life_years
        if end >= horizon_years - 1e-9:
            worn = min(1.0, (horizon_years - priced_configurations) / life_years)
            return [*flows, (horizon_years, -(price_usd - (price_usd - residual_usd) * worn))]
        flows.append((end, -residual_usd))
        priced_configurations = end


def commitment(usd_per_hour: float, term_years: float, upfront_share: float, start: float, rate: float) -> float:
    """The present value of one node under one term that starts after `start` years."""
    yearly = usd_per_hour * HOURS_PER_YEAR
    upfront = upfront_share * yearly * term_years * present(start, rate)
    return upfront + (1.0 - upfront_share) * yearly * running_years(start, term_years, rate)
