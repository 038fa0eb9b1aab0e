"""Prices over time as tables: an offer per line, then points where they are few."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from api.history import KEY_COLUMNS, PricePage
from api.render.tables import aligned
from api.render.text import located, plain, usd_per_hour, when

#: With no more points than these, each gets a line of its own.
FEW_POINTS = 40
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12

_SUMMARY = ("provider", "region", "kind", "since", "lowest", "highest", "last USD/h", "changes", "over time", "notes")
_POINTS = ("provider", "region", "kind", "from", "until", "USD/h", "source", "notes")

Row = dict[str, Any]


def render_history(page: PricePage, *, unicode: bool = True) -> Iterator[str]:
    """The history as lines; without `unicode` the course of a price is left out."""
    rows = list(page.rows)
    yield f"Prices of {plain(page.instance_type)}"
    yield ""
    offers = [list(group) for _, group in groupby(rows, key=lambda row: [row[name] for name in KEY_COLUMNS])]
    times = [datetime.fromisoformat(text) for row in rows for text in (row["from"], row["until"]) if text]
    span = (min(times), max(times)) if times else None
    hidden = None if unicode else _SUMMARY.index("over time")
    cells = (_without(_summary(points, span), hidden) for points in offers)
    yield from aligned(_without(_SUMMARY, hidden), cells, right=(4, 5, 6, 7))
    if len(offers) < len(rows) <= FEW_POINTS:
        yield ""
        yield from aligned(_POINTS, map(_point, rows), right=(5,))
    elif len(rows) > FEW_POINTS:
        yield f"\n{len(rows):,} prices in all: narrow them down, or take --format csv or json, which give each"
    yield f"\n{len(offers):,} offers up to snapshot {page.snapshot_id}"


def sparkline(points: Sequence[Row], span: tuple[datetime, datetime], width: int = SPARK_WIDTH) -> str:
    """The price at `width` evenly spaced times, lowest to highest; a blank where there was none."""
    begin, end = span
    low, high = _range(points)
    shown = ""
    for i in range(width):
        moment = begin + (end - begin) * i // (width - 1)
        price = next((float(row["usd_per_hour"]) for row in reversed(points) if _held(row, moment)), None)
        level = 0 if price is None or high == low else round((price - low) / (high - low) * (len(SPARKS) - 1))
        shown += " " if price is None else SPARKS[level]
    return shown


def _held(row: Row, moment: datetime) -> bool:
    until = row["until"] and datetime.fromisoformat(row["until"])
    return datetime.fromisoformat(row["from"]) <= moment and (until is None or moment < until)


def _summary(points: Sequence[Row], span: tuple[datetime, datetime] | None) -> tuple[object, ...]:
    first, last = points[0], points[-1]
    low, high = _range(points)
    return (
        first["provider"],
        located(first["region"], first["zone"]),
        first["price_kind"],
        when(first["from"])[:10],
        usd_per_hour(low),
        usd_per_hour(high),
        usd_per_hour(last["usd_per_hour"]),
        sum(not row["vanished"] for row in points[:-1]),
        sparkline(points, span) if span else "",
        _notes(last),
    )


def _range(points: Sequence[Row]) -> tuple[float, float]:
    prices = [float(row["usd_per_hour"]) for row in points]
    return min(prices), max(prices)


def _point(row: Row) -> tuple[object, ...]:
    return (
        row["provider"],
        located(row["region"], row["zone"]),
        row["price_kind"],
        when(row["from"])[:16],
        when(row["until"])[:16] if row["until"] else "now",
        usd_per_hour(row["usd_per_hour"]),
        row["source"],
        _notes(row),
    )


def _notes(row: Row) -> str:
    notes = [f"vanished {when(row['until'])[:10]}"] if row["vanished"] else []
    notes += [f"stale since {when(row['stale_since'])[:10]}"] if row["stale_since"] else []
    notes += [] if row["available"] else ["availability unverified"]
    return ", ".join(notes)


def _without(cells: Sequence[object], hidden: int | None) -> tuple[Any, ...]:
    return tuple(cell for i, cell in enumerate(cells) if i != hidden)
