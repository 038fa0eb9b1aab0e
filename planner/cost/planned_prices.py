"""The prices that a plan is made at: a snapshot's offers at their expected prices on the day of the start, then discounts.

Prices change once, before any offer is compared, so screening, bounds, strategies and certificate see the same figures.
An age counts whole days (UTC) from the observation to the start, never to the clock; a start before it counts as age 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.offer import Offer, PriceEstimate
from gpuplan.catalog.model.price_drift import PriceDrift
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers, day_number
from gpuplan.planner.cost.expected_price import DriftColumns, drift_columns, drift_row, expected_prices
from gpuplan.planner.cost.negotiated_discounts import discounted
from gpuplan.planner.model.settings import PlannerSettings

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
