"""The expected price of a machine at the time of its run, from an observed price of some age.

A price read today is a fact; one read months ago is an estimate. With the observed price p, the on-demand price d, the
age a in days, and the constants of its family (`gpuplan.catalog.model.price_drift`):

    gap       = ln(typical_share d / p)                        the way back to the family's typical share of on-demand
    way       = gap less quiet_zone, at most longest_way, of its sign; 0 within the quiet zone, without d, and at d itself
    grown     = (1 - e^(-a / 365)) / (1 - e^(-reference_days / 365))
    expected  = min(d, p exp(way (1 - e^(-a / return_days)) + drift grown))
    band      = expected e^(low grown) .. min(d, expected e^(high grown))       80 % of prices

At age 0 the price and its band are the observed price. A price at the on-demand price stays there, as 25 of 44 did. An
observed price above d counts as fresh until a later one is known: the cap never raises a price.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.price_drift import PriceDrift, price_drifts

Floats = NDArray[np.float64]

#: Time constant of the width of the band, in days: half a year of moves is half of what a year brings.
BAND_DAYS = 365.0
#: From this share of the on-demand price a spot price counts as equal to it.
AT_ON_DEMAND = 0.98
#: Marks a price without a row: it counts as fresh at any age.
_FRESH = PriceDrift(
    provider="",
    family="",
    interruptible=False,
    typical_share=None,
    return_days=None,
    quiet_zone=0.0,
    longest_way=0.0,
    drift=0.0,
    low=0.0,
    high=0.0,
    reference_days=1.0,
    from_days=float("inf"),
    pairs=0,
    source="no row",
    as_of="no row",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriftColumns:
    """The constants of `PriceDrift` as arrays; nan where there is no return."""

    typical_share: Floats
    return_days: Floats
    quiet_zone: Floats
    longest_way: Floats
    drift: Floats
    low: Floats
    high: Floats
    reference_days: Floats
    from_days: Floats

    def take(self, which: NDArray[np.int64]) -> "DriftColumns":
        """The rows at these indices."""
        return DriftColumns(**{name: getattr(self, name)[which] for name in DriftColumns.__slots__})


def expected_prices(
    observed_usd: Floats, on_demand_usd: Floats, age_days: Floats, rows: DriftColumns
) -> tuple[Floats, Floats, Floats]:
    """Expected prices and their bands (expected, low, high); one element per price in every argument."""
    age = np.where(age_days >= rows.from_days, np.maximum(age_days, 0.0), 0.0)
    share = observed_usd / on_demand_usd
    gap = np.log(rows.typical_share / share)
    way = np.sign(gap) * np.clip(np.abs(gap) - rows.quiet_zone, 0.0, rows.longest_way)
    way = np.where(share < AT_ON_DEMAND, way, 0.0) * -np.expm1(-age / rows.return_days)
    grown = np.expm1(-age / BAND_DAYS) / np.expm1(-rows.reference_days / BAND_DAYS)
    known = np.where(np.isnan(on_demand_usd), np.inf, on_demand_usd)
    cap = np.where(age > 0, known, np.maximum(known, observed_usd))
    expected = np.minimum(observed_usd * np.exp(np.nan_to_num(way) + rows.drift * grown), cap)
    return expected, expected * np.exp(rows.low * grown), np.minimum(expected * np.exp(rows.high * grown), cap)


def drift_columns(rows: tuple[PriceDrift, ...]) -> DriftColumns:
    """These rows as arrays."""
    return DriftColumns(
        **{
            name: np.array([np.nan if (value := getattr(row, name)) is None else value for row in rows], np.float64)
            for name in DriftColumns.__slots__
        }
    )


def drift_row(provider: str, family: str, *, interruptible: bool) -> PriceDrift:
    """The row with the longest matching beginning of the name: of the provider, or else of any provider."""
    rows = [
        row
        for row in price_drifts()
        if row.interruptible == interruptible and row.provider in ("", provider) and family.startswith(row.family)
    ]
    return max(rows, key=lambda row: (bool(row.provider), len(row.family)), default=_FRESH)
