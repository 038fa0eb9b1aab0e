"""Prices of one instance type over time, as the page shows them: an offer per line with its range, and its course."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from api.history import point_row
from api.render.text import located
from catalog.history import Observation, PricePoint

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One price, dollars per node-hour, from when to when; `vanished` if none followed, `row` is what is known of it.

    `seen` are the observations of it within the span; there may be none.
    """

    starts: datetime
    ends: datetime
    usd: float
    vanished: bool
    row: Row
    seen: tuple[Observation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One offer's prices within the span that is looked at; `now` is the last one, None where it vanished before its end.

    `median` is weighed by how long each price held.
    """

    key: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    lowest: float
    median: float
    highest: float
    now: float | None

    @property
    def place(self) -> str:
        """Provider, region and zone in words."""
        provider, region, zone, *_ = self.key
        return f"{provider} {located(region, zone)}"

    @property
    def kind(self) -> str:
        """The kind of price in words."""
        return self.key[4].replace("_", " ")

    @property
    def last(self) -> Row:
        """What is known of the last price."""
        return self.stretches[-1].row

    @property
    def changes(self) -> int:
        """How often the price became another."""
        return len(self.stretches) - 1

    @property
    def seen(self) -> tuple[tuple[Stretch, Observation], ...]:
        """Every observation of the offer within the span, with its price."""
        return tuple((each, one) for each in self.stretches for one in each.seen)


def courses(points: Iterable[PricePoint], *, begin: datetime | None, end: datetime) -> list[Course]:
    """The offers of a history (points by offer and time), the lowest last price first.

    What lies outside `begin` (None: from the first price on) to `end` is cut off; what vanished comes last.
    """
    found = []
    for key, group in groupby(points, key=lambda point: point.key):
        stretches = [each for point in group if (each := _stretch(point, begin, end)) is not None]
        if stretches:
            found.append(_course(key, stretches, end))
    return sorted(
        found, key=lambda each: (each.now is None, each.now if each.now is not None else each.lowest, each.key)
    )


def _stretch(point: PricePoint, begin: datetime | None, end: datetime) -> Stretch | None:
    """The part of a price that lies within the span, None if none does."""
    ends = end if point.until is None else point.until
    starts, ended = point.since if begin is None else max(point.since, begin), min(ends, end)
    if ended < starts:
        return None
    row = point_row(point)
    return Stretch(
        starts=starts,
        ends=ended,
        usd=float(row["usd_per_hour"]),
        vanished=point.vanished and ends <= end,
        row=row,
        seen=tuple(each for each in point.observations if (begin is None or each.at >= begin) and each.at <= end),
    )


def _course(key: tuple[str, ...], stretches: Sequence[Stretch], end: datetime) -> Course:
    prices = [each.usd for each in stretches]
    return Course(
        key=key,
        stretches=tuple(stretches),
        lowest=min(prices),
        median=median_over_time(stretches),
        highest=max(prices),
        now=None if stretches[-1].vanished or stretches[-1].ends < end else prices[-1],
    )


def median_over_time(stretches: Sequence[Stretch]) -> float:
    """The price below which it was half of the time; of prices that held no time at all the plain one."""
    by_price = sorted(stretches, key=lambda each: each.usd)
    seconds = [(each.ends - each.starts).total_seconds() for each in by_price]
    weights = seconds if sum(seconds) > 0 else [1.0] * len(by_price)
    half, passed = sum(weights) / 2, 0.0
    for each, weight in zip(by_price, weights, strict=True):
        passed += weight
        if passed >= half:
            return each.usd
    return by_price[-1].usd
