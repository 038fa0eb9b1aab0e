"""Prices over time: a mark where one was seen, and steps between observations that no gap parts.

Where nothing was seen, nothing is drawn: before the first observation, after the last, and while a price was stale
or off the market. Lines are told apart by a letter at their end and by their dashes, not by colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from api.web.charts.drawing import TARGET_RADIUS, Axis, Size, axes, both, canvas, reachable, text
from api.web.charts.scale import Scale
from api.web.charts.spans import day_or_hour, marks

#: As many as there are styles.
MOST_LINES = 6
#: With more observations than these, a line is reached as a whole: nobody tabs through hundreds of marks.
MOST_MARKS = 60
MARK_RADIUS = 4.0
#: Of marks so many that each is no longer reached by itself.
SMALL_MARK_RADIUS = 2.0
LETTERS = "ABCDEF"
_LETTER_HEIGHT = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A value that was seen at a time, whether the one before held until then, and what it says in words."""

    at: datetime
    value: float
    joined: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One line: what was seen in the order of time, what it says as a whole, and where it leads."""

    name: str
    seen: tuple[Seen, ...]
    title: str
    href: str | None = None


def steps_chart(title: str, lines: Sequence[StepLine], up: Axis) -> Markup:
    """At most `MOST_LINES` lines over an axis of time (UTC), drawn for wide places and phones.

    Raises `ValueError` if a line has no observation, if there is none, or for too many lines.
    """
    if len(lines) > MOST_LINES:
        raise ValueError(f"{len(lines)} lines cannot be told apart; at most {MOST_LINES} can")
    if not lines or not all(each.seen for each in lines):
        raise ValueError("every line of a chart needs at least one observation")
    every = [one for each in lines for one in each.seen]
    first = min(one.at for one in every)
    span = max(max(one.at for one in every) - first, timedelta(hours=1))

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
        ends = _apart([y.at(each.seen[-1].value) for each in lines])
        few = len(every) <= MOST_MARKS
        for number, each in enumerate(lines):
            _line(svg, each, f"s{number + 1}", (x, y, first), few=few)
            at = x.at((each.seen[-1].at - first) / timedelta(hours=1))
            text(svg, at + 7, ends[number] + 4, LETTERS[number], kind="strong")
        return svg

    return both(draw)


def _line(svg: ET.Element, each: StepLine, style: str, at: tuple[Scale, Scale, datetime], *, few: bool) -> None:
    x, y, first = at

    def across(moment: datetime) -> float:
        return x.at((moment - first) / timedelta(hours=1))

    parent = svg if few else reachable(svg, each.title, href=each.href, kind=style)
    drawn = ""
    for number, one in enumerate(each.seen):
        joined = one.joined and number > 0
        drawn += f"H{across(one.at):g}V{y.at(one.value):g}" if joined else f"M{across(one.at):g} {y.at(one.value):g}"
    if "H" in drawn:
        ET.SubElement(parent, "path", {"class": f"path {style} dashes", "d": drawn})
    for one in each.seen:
        centre = {"cx": f"{across(one.at):g}", "cy": f"{y.at(one.value):g}"}
        if few:
            group = reachable(svg, one.title, href=each.href, kind=style)
            ET.SubElement(group, "circle", {"class": "target", "r": f"{TARGET_RADIUS:g}"} | centre)
            ET.SubElement(group, "circle", {"class": "mark", "r": f"{MARK_RADIUS:g}"} | centre)
        else:
            ET.SubElement(parent, "circle", {"class": "mark", "r": f"{SMALL_MARK_RADIUS:g}"} | centre)


def _apart(heights: list[float]) -> list[float]:
    """The heights, moved apart evenly up and down where they would lie on each other, in the order that they had."""
    order = sorted(range(len(heights)), key=lambda number: (heights[number], number))
    crowds: list[list[int]] = []
    centres: list[float] = []
    for number in order:
        crowds.append([number])
        centres.append(heights[number])
        while len(crowds) > 1 and centres[-1] - centres[-2] < (len(crowds[-1]) + len(crowds[-2])) / 2 * _LETTER_HEIGHT:
            crowds[-2:] = [crowds[-2] + crowds[-1]]
            centres[-2:] = [sum(heights[each] for each in crowds[-1]) / len(crowds[-1])]
    placed = {
        number: centre + (place - (len(crowd) - 1) / 2) * _LETTER_HEIGHT
        for crowd, centre in zip(crowds, centres, strict=True)
        for place, number in enumerate(crowd)
    }
    return [placed[number] for number in range(len(heights))]
