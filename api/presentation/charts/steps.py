"""Charts of prices over time: marks for observations, joined by steps unless there is a gap.

Nothing is drawn without observation: before the first, after the last, and while a price was stale or off the market.
Lines differ by a letter at their end and by dashes, not by colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import TARGET_RADIUS, Axis, Size, axes, both, canvas, reachable, text
from gpuplan.api.presentation.charts.scale import Scale
from gpuplan.api.presentation.charts.spans import day_or_hour, marks

#: Most lines: the number of styles.
MOST_LINES = 6
#: Above this number of observations a line is reachable only as a whole.
MOST_MARKS = 60
#: The least time that is drawn.
LEAST_SPAN = timedelta(days=4)
MARK_RADIUS = 4.0
#: Size of marks that are not reachable singly.
SMALL_MARK_RADIUS = 2.0
LETTERS = "ABCDEF"
_LETTER_HEIGHT = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceObservation:
    """An observed value, its time, whether the previous value lasted until then, and its text."""

    at: datetime
    value: float
    joined: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One line: observations in order of time, its text, and its link."""

    name: str
    seen: tuple[PriceObservation, ...]
    title: str
    href: str | None = None


def steps_chart(title: str, lines: Sequence[StepLine], up: Axis) -> Markup:
    """At most `MOST_LINES` lines over a UTC time axis, drawn for wide pages and phones.

    Raises `ValueError` without lines, for a line without observations, and for too many lines.
    """
    if len(lines) > MOST_LINES:
        raise ValueError(f"{len(lines)} lines are too many; at most {MOST_LINES} are distinguishable")
    if not lines or not all(line.seen for line in lines):
        raise ValueError("every line of a chart needs at least one observation")
    every = [one for line in lines for one in line.seen]
    first, last = min(one.at for one in every), max(one.at for one in every)
    # Prices read on one day stand in the middle of some days, not at the edge of an hour.
    lacking = max(LEAST_SPAN - (last - first), timedelta(0))
    first, span = first - lacking / 2, max(last - first, LEAST_SPAN)

    def draw(size: Size) -> ET.Element:
        hours = span / timedelta(hours=1)
        x = Scale(low=0.0, high=hours, start=size.left, end=size.width - size.right - 14)
        y = Scale.over(
            [one.value for one in every], start=size.height - size.bottom, end=size.top, log=up.log, zero=up.zero
        )
        most = 3 if size.name == "narrow" else 7
        across = Axis(
            title="UTC",
            write=lambda value: day_or_hour(first + timedelta(hours=value), hours),
            marks=tuple((moment - first) / timedelta(hours=1) for moment in marks(first, first + span, most)),
        )
        svg = canvas(size, title)
        axes(svg, size, x=x, y=y, across=across, up=up)
        ends = _apart([y.at(step_line.seen[-1].value) for step_line in lines])
        few = len(every) <= MOST_MARKS
        for number, line in enumerate(lines):
            _line(svg, line, f"s{number + 1}", (x, y, first), few=few)
            at = x.at((line.seen[-1].at - first) / timedelta(hours=1))
            text(svg, at + 7, ends[number] + 4, LETTERS[number], kind="strong")
        return svg

    return both(draw)


def _line(svg: ET.Element, step_line: StepLine, style: str, at: tuple[Scale, Scale, datetime], *, few: bool) -> None:
    x, y, first = at

    def across(moment: datetime) -> float:
        return x.at((moment - first) / timedelta(hours=1))

    parent = svg if few else reachable(svg, step_line.title, href=step_line.href, kind=style)
    drawn = ""
    for number, one in enumerate(step_line.seen):
        joined = one.joined and number > 0
        drawn += f"H{across(one.at):g}V{y.at(one.value):g}" if joined else f"M{across(one.at):g} {y.at(one.value):g}"
    if "H" in drawn:
        ET.SubElement(parent, "path", {"class": f"path {style} dashes", "d": drawn})
    for one in step_line.seen:
        centre = {"cx": f"{across(one.at):g}", "cy": f"{y.at(one.value):g}"}
        if few:
            group = reachable(svg, one.title, href=step_line.href, kind=style)
            ET.SubElement(group, "circle", {"class": "target", "r": f"{TARGET_RADIUS:g}"} | centre)
            ET.SubElement(group, "circle", {"class": "mark", "r": f"{MARK_RADIUS:g}"} | centre)
        else:
            ET.SubElement(parent, "circle", {"class": "mark", "r": f"{SMALL_MARK_RADIUS:g}"} | centre)


def _apart(heights: list[float]) -> list[float]:
    """The heights in the same order, spread evenly where labels would overlap."""
    order = sorted(range(len(heights)), key=lambda number: (heights[number], number))
    crowds: list[list[int]] = []
    centres: list[float] = []
    for number in order:
        crowds.append([number])
        centres.append(heights[number])
        while len(crowds) > 1 and centres[-1] - centres[-2] < (len(crowds[-1]) + len(crowds[-2])) / 2 * _LETTER_HEIGHT:
            crowds[-2:] = [crowds[-2] + crowds[-1]]
            centres[-2:] = [sum(heights[member] for member in crowds[-1]) / len(crowds[-1])]
    placed = {
        number: centre + (place - (len(crowd) - 1) / 2) * _LETTER_HEIGHT
        for crowd, centre in zip(crowds, centres, strict=True)
        for place, number in enumerate(crowd)
    }
    return [placed[number] for number in range(len(heights))]
