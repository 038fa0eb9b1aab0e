"""Timeline charts: spans of time on rows, one row per machine, phase or job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import (
    LETTER_WIDTH,
    STRONG_LETTER_WIDTH,
    Size,
    both,
    canvas,
    line,
    reachable,
    text,
)
from gpuplan.api.presentation.charts.scale import Scale

#: Tick steps of time axes in hours, from a minute to years.
STEPS_HOURS = (1 / 60, 1 / 12, 1 / 4, 1, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688, 4368, 8760, 17520, 43800)
#: A row's label is above its bar, so that both fit on a phone.
ROW_HEIGHT = 46.0
BAR_HEIGHT = 18.0
FOOT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span: start, end, text and style (s1 to s6); `faint` marks one that may not happen."""

    starts: datetime
    ends: datetime
    title: str
    style: str = "s1"
    faint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row's name and spans."""

    name: str
    spans: tuple[Span, ...]


def timeline(title: str, rows: Sequence[Row], *, rules: Sequence[datetime] = ()) -> Markup:
    """Rows of spans over a UTC time axis; `rules` are times of dashed lines.

    Raises `ValueError` without any span.
    """
    moments = [moment for row in rows for span in row.spans for moment in (span.starts, span.ends)] + list(rules)
    if not moments:
        raise ValueError("a timeline needs at least one span")
    first, last = min(moments), max(moments)
    last = max(last, first + timedelta(minutes=1))
    height = ROW_HEIGHT * len(rows) + FOOT
    sizes = (
        Size(name="wide", width=760.0, height=height, left=4.0, right=4.0),
        Size(name="narrow", width=340.0, height=height, left=4.0, right=4.0),
    )

    def draw(size: Size) -> ET.Element:
        scale = Scale(low=0.0, high=_hours(last - first), start=size.left, end=size.width - size.right)
        svg = canvas(size, title)
        _axis(svg, size, scale, first, last)
        for number, row in enumerate(rows):
            _row(svg, size, scale, row, (number * ROW_HEIGHT, first))
        for moment in rules:
            at = scale.at(_hours(moment - first))
            line(svg, (at, at), (0.0, height - FOOT), "rule")
        return svg

    return both(draw, sizes)


def marks(first: datetime, last: datetime, most: int) -> list[datetime]:
    """Round moments from `first` to `last`, at most some `most`: whole hours, midnights, then every second day and so on."""
    step = next((hours for hours in STEPS_HOURS if _hours(last - first) / hours <= most), STEPS_HOURS[-1])
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    count = int(_hours(first - midnight) / step)
    moments: list[datetime] = []
    while (moment := midnight + timedelta(hours=step * count)) <= last:
        if moment >= first:
            moments.append(moment)
        count += 1
    return moments


def day_or_hour(moment: datetime, span_hours: float) -> str:
    """A moment as short as the axis allows: the hour where it covers days, the day where weeks, the month where years."""
    if span_hours <= 72:
        return f"{moment:%H:%M}" if moment.hour or moment.minute else f"{moment.day} {moment:%b}"
    return f"{moment.day} {moment:%b}" if span_hours <= 24 * 300 else f"{moment:%b %Y}"


def _axis(svg: ET.Element, size: Size, scale: Scale, first: datetime, last: datetime) -> None:
    group = ET.SubElement(svg, "g", {"aria-hidden": "true"})
    bottom = size.height - FOOT
    for moment in marks(first, last, 3 if size.name == "narrow" else 8):
        at = scale.at(_hours(moment - first))
        line(group, (at, at), (0.0, bottom), "grid")
        words = day_or_hour(moment, _hours(last - first))
        # Labels at the edges are anchored inwards to avoid cutting them off.
        room = len(words) * LETTER_WIDTH / 2
        anchor = "start" if at < room else "end" if at > size.width - room else "middle"
        text(group, at, bottom + 18, words, anchor=anchor)
    line(group, (size.left, size.width - size.right), (bottom, bottom), "axis")


def _row(svg: ET.Element, size: Size, scale: Scale, row: Row, at: tuple[float, datetime]) -> None:
    top, first = at
    longest = int((size.width - 8) / STRONG_LETTER_WIDTH)
    name = row.name if len(row.name) <= longest else row.name[: longest - 1] + "…"
    text(svg, size.left, top + 14, name, kind="strong")
    for span in row.spans:
        left, right = scale.at(_hours(span.starts - first)), scale.at(_hours(span.ends - first))
        kind = f"{span.style} faint" if span.faint else span.style
        group = reachable(svg, span.title, href=None, kind=kind)
        given = {"x": f"{left:g}", "y": f"{top + 20:g}", "height": f"{BAR_HEIGHT:g}", "rx": "3"}
        ET.SubElement(group, "rect", {"class": "bar", "width": f"{max(right - left, 2):g}"} | given)


def _hours(span: timedelta) -> float:
    return span.total_seconds() / 3600
