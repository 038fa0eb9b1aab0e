"""Data for the price history of one instance type: offers with price ranges and observations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from gpuplan.api.presentation.text_formatting import located
from gpuplan.api.schemas.prices import PriceRow
from gpuplan.api.services.price_history import point_row
from gpuplan.catalog.store.price_history import Observation, PricePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One price in dollars per node-hour, from begin to end; `vanished` if no price followed; `row` is its price point.

    `seen` are its observations within the span; there may be none.
    """

    starts: datetime
    ends: datetime
    usd: float
    vanished: bool
    row: PriceRow
    seen: tuple[Observation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSeries:
    """One offer's prices within the span; `now` is the last one, None if it vanished before the end.

    `median` is weighted by the duration of the prices.
    """

    key: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    lowest: float
    median: float
    highest: float
    now: float | None

    @property
    def place(self) -> str:
        """Provider, region and zone as text."""
        provider, region, zone, *_ = self.key
        return f"{provider} {located(region, zone)}"

    @property
    def kind(self) -> str:
        """The price kind as text."""
        return self.key[4].replace("_", " ")

    @property
    def last(self) -> PriceRow:
        """The price point of the last price."""
        return self.stretches[-1].row

    @property
    def changes(self) -> int:
        """The number of price changes."""
        return len(self.stretches) - 1

    @property
    def seen(self) -> tuple[tuple[Stretch, Observation], ...]:
        """All observations of the offer within the span, with their price."""
        return tuple((stretch, one) for stretch in self.stretches for one in stretch.seen)


def price_series(points: Iterable[PricePoint], *, begin: datetime | None, end: datetime) -> list[PriceSeries]:
    """The offers of a history (points by offer and time), lowest last price first, vanished ones last.

    Prices are cut to the span from `begin` (None: the first price) to `end`.
    """
    all_series = []
    for key, group in groupby(points, key=lambda point: point.key):
        stretches = [stretch for point in group if (stretch := _stretch(point, begin, end)) is not None]
        if stretches:
            all_series.append(_series_of(key, stretches, end))
    return sorted(
        all_series,
        key=lambda series: (series.now is None, series.now if series.now is not None else series.lowest, series.key),
    )


def _stretch(point: PricePoint, begin: datetime | None, end: datetime) -> Stretch | None:
    """The part of a price within the span, or None."""
    ends = end if point.until is None else point.until
    starts, ended = point.since if begin is None else max(point.since, begin), min(ends, end)
    if ended < starts:
        return None
    row = point_row(point)
    return Stretch(
        starts=starts,
        ends=ended,
        usd=float(row.usd_per_hour),
        vanished=point.vanished and ends <= end,
        row=row,
        seen=tuple(
            observation
            for observation in point.observations
            if (begin is None or observation.at >= begin) and observation.at <= end
        ),
    )


def _series_of(key: tuple[str, ...], stretches: Sequence[Stretch], end: datetime) -> PriceSeries:
    prices = [stretch.usd for stretch in stretches]
    return PriceSeries(
        key=key,
        stretches=tuple(stretches),
        lowest=min(prices),
        median=median_over_time(stretches),
        highest=max(prices),
        now=None if stretches[-1].vanished or stretches[-1].ends < end else prices[-1],
    )


def median_over_time(stretches: Sequence[Stretch]) -> float:
    """The time-weighted median; the plain median if all durations are zero."""
    by_price = sorted(stretches, key=lambda stretch: stretch.usd)
    seconds = [(stretch.ends - stretch.starts).total_seconds() for stretch in by_price]
    weights = seconds if sum(seconds) > 0 else [1.0] * len(by_price)
    half, passed = sum(weights) / 2, 0.0
    for stretch, weight in zip(by_price, weights, strict=True):
        passed += weight
        if passed >= half:
            return stretch.usd
    return by_price[-1].usd
