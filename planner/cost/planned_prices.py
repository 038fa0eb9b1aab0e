"""The prices that a plan is made at: a snapshot's offers at their expected prices on the day of the start, then discounts.

Prices change once, before any offer is compared, so screening, bounds, strategies and certificate see the same figures.
An age counts whole days (UTC) from the observation to the start, never to the clock; a start before it counts as age 0.

The expected price of a machine at the time of its run, from an observed price of some age.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer, PriceEstimate
from gpuplan.catalog.model.price_drift import PriceDrift, price_drifts
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers, day_number
from gpuplan.planner.cost.negotiated_discounts import discounted
from gpuplan.planner.model.settings import PlannerSettings

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


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Estimated(LazyOffers):
    """The rows of a snapshot at expected prices, created on access; `number[i]` is -1 for a price taken as it is.

    A row of `micros` has the expected price, its band, the observed price and the on-demand price, 0 where unknown.
    """

    rows: Sequence[Offer]
    number: Ints
    micros: NDArray[np.int64]
    age_days: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def offer_at(self, index: int) -> Offer:
        row, number = self.rows[index], int(self.number[index])
        if number < 0:
            return row
        expected, low, high, observed, most = self.micros[number].tolist()
        estimate = PriceEstimate(
            observed_usd_micros_per_hour=observed,
            low_usd_micros_per_hour=low,
            high_usd_micros_per_hour=high,
            most_usd_micros_per_hour=most or None,
            age_days=int(self.age_days[number]),
        )
        return replace(row, usd_micros_per_hour=expected, price_estimate=estimate)


def planned_prices(columns: Columns, settings: PlannerSettings, start: datetime) -> Columns:
    """The snapshot at the prices that a job starting at `start` is planned at.

    The same object for the same day and settings. Raises what `discounted` raises.
    """
    if settings.prices == "expected":
        columns = estimated(columns, day_number(start))
    return discounted(columns, settings.discounts)


@lru_cache(maxsize=4)
def estimated(columns: Columns, day: int) -> Columns:
    """The snapshot at expected prices on a day (days since 1970); the same object if every price is fresh."""
    which = _type_and_kind(columns)
    rows = drift_columns(which.rows)
    number = which.number[columns.type_index, columns.kind_index] if len(columns) else np.zeros(0, np.int64)
    age = np.maximum(day - columns.observed_day.astype(np.int64), 0)
    at = np.flatnonzero((number >= 0) & (age > 0))
    at = at[age[at] >= rows.from_days[number[at]]]
    if not len(at):
        return columns
    drifts: DriftColumns = rows.take(number[at])
    observed = columns.usd_per_hour[at]
    prices = (*expected_prices(observed, columns.on_demand_usd[at], age[at].astype(np.float64), drifts), observed)
    # Rounded as the rows are, so that arrays and rows agree to the micro-dollar.
    micros = np.maximum(np.rint(np.stack(prices, axis=1) * 1e6), 1.0).astype(np.int64)
    most = np.nan_to_num(np.rint(columns.on_demand_usd[at] * 1e6)).astype(np.int64)
    micros = np.column_stack((micros, most))
    usd = columns.usd_per_hour.copy()
    usd[at] = micros[:, 0] / 1e6
    place = np.full(len(columns), -1, np.int64)
    place[at] = np.arange(len(at))
    return replace(columns, usd_per_hour=usd, offers=_Estimated(columns.offers, place, micros, age[at]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Distinct drift rows, and the index of the row of each (instance type, price kind), -1 without one."""

    rows: tuple[PriceDrift, ...]
    number: Ints


def _type_and_kind(columns: Columns) -> _Rows:
    """The drift row of every instance type under every price kind without a term."""
    at: dict[PriceDrift, int] = {}
    number = np.full((len(columns.instance_types), len(columns.kinds)), -1, np.int64)
    for place, name in enumerate(columns.kinds):
        kind = price_kinds()[name]
        if kind.interruptible or kind.is_plain:
            number[:, place] = [
                at.setdefault(drift_row(one.provider, one.name, interruptible=kind.interruptible), len(at))
                for one in columns.instance_types
            ]
    return _Rows(rows=tuple(at), number=number)
