"""The wide drawing of a Gantt chart: a gutter of names, the time axis, the rows, and the accelerators in use below.

They are drawings of their own in a grid, so that gutter and axis stay where they are while the rows scroll.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import LETTER_WIDTH, STRONG_LETTER_WIDTH, Size, canvas, cut, line, text
from gpuplan.api.presentation.charts.gantt import PATTERNS, ROW_HEIGHT, Bar, Frame, Lane, narrow_gantt, time_shown
from gpuplan.api.presentation.charts.scale import Scale
from gpuplan.api.presentation.charts.spans import day_or_hour, marks

#: Pixels of the gutter, of the rows at a zoom of 1, of the axis and of the drawing below.
GUTTER, WIDTH, AXIS, BELOW = 232.0, 920.0, 28.0, 84.0
_GAP = 10.0


def gantt(title: str, lanes: Sequence[Lane], *, starts: datetime, zoom: int = 1) -> Markup:
    """Lanes of bars over a UTC time axis from `starts`, drawn for wide pages and phones.

    `zoom` stretches the time of the wide drawing, which then scrolls. Raises `ValueError` without any bar.
    """
    span = time_shown(lanes, starts)
    parts = _board(title, lanes, starts=starts, span=span, zoom=zoom)
    # Safe markup: ElementTree escapes every text and attribute.
    drawn = "".join(ET.tostring(part, encoding="unicode") for part in parts)
    narrow = ET.tostring(narrow_gantt(title, lanes, starts=starts, span=span), encoding="unicode")
    begin = '<div class="board wide" tabindex="0" role="region" aria-label="Chart of the schedule">'
    return Markup(f"{begin}{drawn}</div>{narrow}")  # noqa: S704


def _board(
    title: str, lanes: Sequence[Lane], *, starts: datetime, span: timedelta, zoom: int
) -> tuple[ET.Element, ...]:
    """The drawings of the grid, by rows; `span` is the time from `starts` that they show."""
    tracks = [tracks_of(lane.bars) for lane in lanes]
    tops = [
        sum(ROW_HEIGHT * len(lane_tracks) + _GAP for lane_tracks in tracks[:number])
        for number in range(len(tracks) + 1)
    ]
    rows = Size(name="wide", width=WIDTH * zoom, height=max(tops[-1], ROW_HEIGHT), left=4.0, right=12.0)
    scale = Scale(low=0.0, high=span / timedelta(hours=1), start=rows.left, end=rows.width - rows.right)
    frame = Frame(svg=_sized(rows, title), size=rows, scale=scale, starts=starts)
    moments = marks(starts, starts + span, 9 * zoom)
    frame.patterns()
    behind = ET.SubElement(frame.svg, "g", {"aria-hidden": "true"})
    for moment in moments:
        line(behind, (frame.x(moment), frame.x(moment)), (0.0, rows.height), "grid")
    for top in tops[1:]:
        line(behind, (0.0, rows.width), (top - _GAP / 2, top - _GAP / 2), "grid")
    for lane, lane_tracks, top in zip(lanes, tracks, tops, strict=False):
        for number, track in enumerate(lane_tracks):
            _track(frame, track, lane.style % len(PATTERNS), top + number * ROW_HEIGHT)
    bars = [bar for lane in lanes for bar in lane.bars]
    most = max(value for _, value in usage(bars))
    below = (_corner("accelerators reserved", f"at most {most:,g}"), _usage(frame, bars, moments, most))
    return (_corner("UTC", ""), _axis(frame, moments), _names(lanes, tops), frame.svg, *below)


def tracks_of(bars: Sequence[Bar]) -> list[list[Bar]]:
    """The bars, ordered by start, in as few tracks as keep those of one track apart."""
    tracks: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda one: one.starts):
        for track in tracks:
            if track[-1].reserved_until <= bar.starts:
                track.append(bar)
                break
        else:
            tracks.append([bar])
    return tracks


def usage(bars: Sequence[Bar]) -> list[tuple[datetime, float]]:
    """The accelerators reserved from each moment on at which their number changes, in order."""
    changes: dict[datetime, float] = {}
    for bar in bars:
        changes[bar.starts] = changes.get(bar.starts, 0.0) + bar.accelerators
        changes[bar.reserved_until] = changes.get(bar.reserved_until, 0.0) - bar.accelerators
    total, steps = 0.0, []
    for moment in sorted(changes):
        total += changes[moment]
        steps.append((moment, round(total, 6)))
    return steps


def _track(frame: Frame, track: Sequence[Bar], style: int, top: float) -> None:
    """The bars of one track, each under as much of its name as there is room for."""
    for bar, following in zip(track, [*track[1:], None], strict=True):
        left = frame.x(bar.starts)
        end = frame.size.width if following is None else frame.x(following.starts)
        most = int((end - left - 6) / STRONG_LETTER_WIDTH)
        # A name at the right edge begins further left.
        at = (
            left if most >= min(len(bar.name), 12) or following else max(0.0, end - len(bar.name) * STRONG_LETTER_WIDTH)
        )
        if at < left or len(bar.name) <= most or most > 3:
            text(frame.svg, at, top + 12, bar.name if at < left else cut(bar.name, most), kind="strong")
        frame.marks(bar, style, top)


def _sized(size: Size, title: str) -> ET.Element:
    svg = canvas(size, title)
    svg.set("width", f"{size.width:g}")
    svg.set("height", f"{size.height:g}")
    return svg


def _hidden(width: float, height: float, kind: str) -> ET.Element:
    """A drawing without figures of its own, which screen readers leave out."""
    given = {"class": kind, "viewBox": f"0 0 {width:g} {height:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return ET.Element("svg", given | {"aria-hidden": "true"})


def _corner(first: str, second: str) -> ET.Element:
    svg = _hidden(GUTTER, BELOW if second else AXIS, "gutter")
    text(svg, 4, 18, first, kind="strong")
    if second:
        text(svg, 4, 36, second)
    return svg


def _axis(frame: Frame, moments: Sequence[datetime]) -> ET.Element:
    svg = _hidden(frame.size.width, AXIS, "time")
    for moment in moments:
        at, words = frame.x(moment), day_or_hour(moment, frame.scale.high)
        room = len(words) * LETTER_WIDTH / 2
        anchor = "start" if at < room else "end" if at > frame.size.width - room else "middle"
        text(svg, at, 18, words, anchor=anchor)
    return svg


def _names(lanes: Sequence[Lane], tops: Sequence[float]) -> ET.Element:
    """The place of each row, and under it the machine."""
    svg = _hidden(GUTTER, max(tops[-1], ROW_HEIGHT), "gutter")
    most = int((GUTTER - 12) / STRONG_LETTER_WIDTH)
    for lane, top in zip(lanes, tops, strict=False):
        place, _, machine = lane.name.partition(": ")
        for number, words in enumerate((machine or place, place if machine else "")):
            text(svg, 4, top + 16 + 17 * number, cut(words, most), kind="" if number else "strong")
    for top in tops[1:]:
        line(svg, (0.0, GUTTER), (top - _GAP / 2, top - _GAP / 2), "grid")
    return svg


def _usage(frame: Frame, bars: Sequence[Bar], moments: Sequence[datetime], most: float) -> ET.Element:
    """The accelerators reserved over time, as an area."""
    size = Size(name="usage", width=frame.size.width, height=BELOW)
    svg = _sized(size, "Accelerators reserved over time")
    svg.set("role", "img")
    steps = usage(bars)
    peak = next(moment for moment, value in steps if value == most)
    svg.set("aria-label", f"Accelerators reserved over time: at most {most:,g}, first at {peak:%Y-%m-%d %H:%M} UTC")
    y = Scale(low=0.0, high=most or 1.0, start=BELOW - 6, end=12.0)
    for moment in moments:
        line(svg, (frame.x(moment), frame.x(moment)), (0.0, BELOW - 6), "grid")
    drawn = f"M{frame.x(steps[0][0]):g} {y.start:g}"
    for moment, value in steps:
        drawn += f"H{frame.x(moment):g}V{y.at(value):g}"
    ET.SubElement(svg, "path", {"class": "area", "d": f"{drawn}V{y.start:g}Z"})
    line(svg, (0.0, size.width), (y.start, y.start), "axis")
    return svg
