"""The snapshot at the prices that a plan must be made at, by this package's own statement of the rule.

A spot price of some age has moved part of the way to its family's usual share of the on-demand price: with q the observed
share and t the usual one, the share to expect is q (t' / q)^(1 - e^(-age / return)), where t' is t brought nearer to q by the
quiet zone, or q within it, and no farther from q than the longest way. Every price also drifts, and is never above the on-demand price. The band is 80 % of prices.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from gpuplan.catalog.model.offer import Offer, PriceEstimate
from gpuplan.catalog.model.price_drift import PriceDrift, price_drifts
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.snapshots.offer_columns import Columns, LazyOffers

#: A spot price from this share of the on-demand price is that price.
_THE_SAME = 0.98
#: Days in which the width of a band goes most of its way.
_WIDENING = 365.0
_UNIX = date(1970, 1, 1)


class RowsWithEstimates(LazyOffers):
    """The rows of a snapshot, those with an expected price at that price."""

    def __init__(self, rows: Sequence[Offer], estimates: dict[int, tuple[int, PriceEstimate]]) -> None:
        """Rows as listed, and expected micro-dollars with their estimate by place."""
        self._rows, self._estimates = rows, estimates

    def __len__(self) -> int:
        """The number of offers."""
        return len(self._rows)

    def offer_at(self, index: int) -> Offer:
        """One offer."""
        row = self._rows[index]
        if index not in self._estimates:
            return row
        micros, estimate = self._estimates[index]
        return replace(row, usd_micros_per_hour=micros, price_estimate=estimate)


def at_expected_prices(columns: Columns, start: datetime) -> Columns:
    """The snapshot at the prices expected on the day of `start`."""
    kinds = [price_kinds()[name] for name in columns.kinds]
    listed = list(
        zip(
            columns.type_index.tolist(),
            columns.region_index.tolist(),
            columns.kind_index.tolist(),
            columns.usd_per_hour.tolist(),
            columns.plannable.tolist(),
            columns.observed_day.tolist(),
            strict=True,
        )
    )
    on_demand: dict[tuple[int, int], float] = {}
    for type_, region, kind, usd, whole, _ in listed:
        if whole and kinds[kind].is_plain:
            on_demand[type_, region] = min(usd, on_demand.get((type_, region), math.inf))
    today, drifts, prices = (
        start.astimezone(UTC).date(),
        dict[tuple[int, int], PriceDrift | None](),
        columns.usd_per_hour,
    )
    estimates: dict[int, tuple[int, PriceEstimate]] = {}
    for place, (type_, region, kind, usd, _, day) in enumerate(listed):
        age = (today - (_UNIX + timedelta(days=day))).days
        if age <= 0:
            continue
        if (type_, kind) not in drifts:
            machine = columns.instance_types[type_]
            interruptible = kinds[kind].interruptible
            known = interruptible or kinds[kind].is_plain
            drifts[type_, kind] = _drift(machine.provider, machine.name, interruptible) if known else None
        drift = drifts[type_, kind]
        if drift is not None and age >= drift.from_days:
            estimates[place] = _estimate(usd, on_demand.get((type_, region)), age, drift)
    prices = columns.usd_per_hour.copy()
    for place, (micros, _) in estimates.items():
        prices[place] = micros / 1e6
    return replace(columns, usd_per_hour=prices, offers=RowsWithEstimates(columns.offers, estimates))


def _drift(provider: str, name: str, interruptible: bool) -> PriceDrift | None:
    """The drift of the machine's family, of the provider before that of all, of the longer name before the shorter."""
    best: PriceDrift | None = None
    for drift in price_drifts():
        fits = (
            drift.interruptible == interruptible and drift.provider in {"", provider} and name.startswith(drift.family)
        )
        nearer = best is None or (drift.provider != "", len(drift.family)) > (best.provider != "", len(best.family))
        if fits and nearer:
            best = drift
    return best


def _estimate(usd: float, on_demand: float | None, age: int, drift: PriceDrift) -> tuple[int, PriceEstimate]:
    """Expected micro-dollars, and the estimate behind them."""
    widened = (1 - math.exp(-age / _WIDENING)) / (1 - math.exp(-drift.reference_days / _WIDENING))
    expected = usd * math.exp(drift.drift * widened)
    if on_demand is not None and drift.typical_share is not None and drift.return_days is not None:
        share = usd / on_demand
        apart = drift.typical_share / share
        zone = math.exp(drift.quiet_zone)
        if share < _THE_SAME and not 1 / zone <= apart <= zone:
            farthest = math.exp(drift.longest_way)
            aim = min(apart / zone, farthest) if apart > 1 else max(apart * zone, 1 / farthest)
            expected *= aim ** (1 - math.exp(-age / drift.return_days))
    most = math.inf if on_demand is None else on_demand
    expected = min(expected, most)
    low, high = expected * math.exp(drift.low * widened), min(most, expected * math.exp(drift.high * widened))
    micros, least, largest, observed = (max(1, round(price * 1e6)) for price in (expected, low, high, usd))
    return micros, PriceEstimate(
        observed_usd_micros_per_hour=observed,
        low_usd_micros_per_hour=least,
        high_usd_micros_per_hour=largest,
        most_usd_micros_per_hour=None if on_demand is None else round(on_demand * 1e6),
        age_days=age,
    )


def less_percent(estimate: PriceEstimate | None, percent: float | None, *, least: float) -> PriceEstimate | None:
    """The estimate of a price less a negotiated percentage; a price agreed in dollars (None) has none."""
    if estimate is None or percent is None:
        return None

    def less(micros: int) -> int:
        """The price less the percentage, in micro-dollars."""
        return round(max(least / 1e6, micros / 1e6 * (1.0 - percent / 100.0)) * 1e6)

    most = estimate.most_usd_micros_per_hour
    return replace(
        estimate,
        observed_usd_micros_per_hour=less(estimate.observed_usd_micros_per_hour),
        low_usd_micros_per_hour=less(estimate.low_usd_micros_per_hour),
        high_usd_micros_per_hour=less(estimate.high_usd_micros_per_hour),
        most_usd_micros_per_hour=None if most is None else less(most),
    )
