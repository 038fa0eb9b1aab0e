"""Tables of prices over time: one line per offer, then single prices if there are few."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from gpuplan.api.presentation.text_formatting import located, plain, usd_per_hour, when
from gpuplan.api.presentation.text_tables import aligned
from gpuplan.api.services.price_history import PricePage
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.store.price_history import PricePoint

#: Up to this number, all prices are listed.
FEW_POINTS = 40
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12
#: Mark of a time without observation; a blank would be trimmed from the cell.
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
    """The history as lines; without `unicode` the sparklines are left out."""
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
        yield f"\n{len(page.points):,} prices in total: add filters, or use --format csv or json to list them all"
    yield f"\n{len(offers):,} offers up to snapshot {page.snapshot_id}"


def sparkline(points: Sequence[PricePoint], span: tuple[datetime, datetime], width: int = SPARK_WIDTH) -> str:
    """A sparkline of an offer's prices over `width` time steps, scaled from lowest to highest.

    A price fills the steps up to the next observation joined to it; other steps are `UNSEEN`.
    """
    begin, end = span
    low, high = _range(points)
    shown = [UNSEEN] * width
    before = 0
    level = SPARKS[0]
    for point in points:
        for observation in point.observations:
            place = round((observation.at - begin) / (end - begin) * (width - 1)) if end > begin else 0
            if observation.joined:
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
        sum(not point.vanished for point in points[:-1]),
        sparkline(points, span) if span else "",
        _notes(last),
    )


def _range(points: Sequence[PricePoint]) -> tuple[int, int]:
    prices = [point.usd_micros_per_hour for point in points]
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
