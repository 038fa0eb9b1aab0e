"""Prices over time as tables: an offer per line, then points where they are few."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from api.history import PricePage
from api.render.tables import aligned
from api.render.text import located, plain, usd_per_hour, when
from catalog.history import PricePoint
from catalog.money import usd_text

#: With no more points than these, each gets a line of its own.
FEW_POINTS = 40
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12
#: Where nothing was seen. A blank would be lost in a cell, which is one line of words.
UNSEEN = "·"
_OVER_TIME = f"over time ({UNSEEN} unseen)"

_SUMMARY = (
    "provider",
    "region",
    "kind",
    "first seen",
    "last seen",
    "lowest",
    "highest",
    "last USD/h",
    "changes",
    _OVER_TIME,
    "notes",
)
_POINTS = ("provider", "region", "kind", "from", "until", "times seen", "USD/h", "source", "notes")


def render_history(page: PricePage, *, unicode: bool = True) -> Iterator[str]:
    """The history as lines; without `unicode` the course of a price is left out."""
    yield f"Prices of {plain(page.instance_type)}"
    yield ""
    offers = [list(group) for _, group in groupby(page.points, key=lambda point: point.key)]
    times = [one.at for point in page.points for one in point.observations]
    span = (min(times), max(times)) if times else None
    hidden = None if unicode else _SUMMARY.index(_OVER_TIME)
    cells = (_without(_summary(points, span), hidden) for points in offers)
    yield from aligned(_without(_SUMMARY, hidden), cells, right=(5, 6, 7, 8))
    if len(offers) < len(page.points) <= FEW_POINTS:
        yield ""
        yield from aligned(_POINTS, map(_point, page.points), right=(5, 6))
    elif len(page.points) > FEW_POINTS:
        yield f"\n{len(page.points):,} prices in all: narrow them down, or take --format csv or json, which give each"
    yield f"\n{len(offers):,} offers up to snapshot {page.snapshot_id}"


def sparkline(points: Sequence[PricePoint], span: tuple[datetime, datetime], width: int = SPARK_WIDTH) -> str:
    """The prices of an offer where they were seen, over `width` steps of time, lowest to highest.

    A price fills the steps up to the next observation that is joined to it; elsewhere stands `UNSEEN`.
    """
    begin, end = span
    low, high = _range(points)
    shown = [UNSEEN] * width
    before = 0
    level = SPARKS[0]
    for point in points:
        for each in point.observations:
            place = round((each.at - begin) / (end - begin) * (width - 1)) if end > begin else 0
            if each.joined:
                shown[before + 1 : place] = level * len(shown[before + 1 : place])
            share = 0.0 if high == low else (point.usd_micros_per_hour - low) / (high - low)
            level = SPARKS[round(share * (len(SPARKS) - 1))]
            shown[place], before = level, place
    return "".join(shown)


def _summary(points: Sequence[PricePoint], span: tuple[datetime, datetime] | None) -> tuple[object, ...]:
    last = points[-1]
    provider, region, zone, _, kind = last.key
    low, high = _range(points)
    return (
        provider,
        located(region, zone),
        kind,
        _day(points[0].observations[0].at),
        _day(last.observations[-1].at),
        _usd(low),
        _usd(high),
        _usd(last.usd_micros_per_hour),
        sum(not each.vanished for each in points[:-1]),
        sparkline(points, span) if span else "",
        _notes(last),
    )


def _range(points: Sequence[PricePoint]) -> tuple[int, int]:
    prices = [each.usd_micros_per_hour for each in points]
    return min(prices), max(prices)


def _point(point: PricePoint) -> tuple[object, ...]:
    provider, region, zone, _, kind = point.key
    return (
        provider,
        located(region, zone),
        kind,
        _minute(point.since),
        _minute(point.until) if point.until else "now",
        f"{len(point.observations):,}",
        _usd(point.usd_micros_per_hour),
        point.source,
        _notes(point),
    )


def _notes(point: PricePoint) -> str:
    notes = [f"vanished {_day(point.until)}"] if point.vanished and point.until else []
    notes += [f"stale since {_day(point.stale_since)}"] if point.stale_since else []
    notes += [] if point.available else ["availability unverified"]
    return ", ".join(notes)


def _usd(usd_micros: int) -> str:
    return usd_per_hour(usd_text(usd_micros))


def _day(time: datetime) -> str:
    return _minute(time)[:10]


def _minute(time: datetime) -> str:
    return when(time.isoformat())[:16]


def _without(cells: Sequence[object], hidden: int | None) -> tuple[Any, ...]:
    return tuple(cell for i, cell in enumerate(cells) if i != hidden)
