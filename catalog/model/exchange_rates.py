"""Rates of currencies in US dollars: the stated rates of `data/exchange_rates.csv`, and what a list of rates is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from math import sqrt

from gpuplan.catalog.model.data_tables import data_table

USD = "USD"
_DAYS_PER_YEAR = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """US dollars for one unit of `currency` on a day. `yearly_spread` is the share that a rate moves within a year."""

    currency: str
    usd: Decimal
    as_of: date
    source: str
    yearly_spread: float | None = None

    def spread_on(self, day: date) -> float | None:
        """The share by which the rate is off on a later day, one standard deviation; it grows with the root of time."""
        if self.yearly_spread is None:
            return None
        return self.yearly_spread * sqrt(max(0, (day - self.as_of).days) / _DAYS_PER_YEAR)


@cache
def stated_rates() -> Mapping[str, ExchangeRate]:
    """The rates of the release, by currency."""
    return {
        row["currency"]: ExchangeRate(
            currency=row["currency"],
            usd=Decimal(row["usd"]),
            as_of=date.fromisoformat(row["as_of"]),
            source=row["source"],
            yearly_spread=float(row["yearly_spread"]),
        )
        for row in data_table("exchange_rates.csv")
    }
