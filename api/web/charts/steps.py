"""Prices as steps over time: each holds until the next; a line that ends was taken off the market.

Lines are told apart by a letter at their end and by their dashes, not by colour alone.
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
#: With more changes than these, a line is reached as a whole: nobody tabs through hundreds of marks.
MOST_MARKS = 60
LETTERS = "ABCDEF"
_LETTER_HEIGHT = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A value from `starts` to `ends`, and what it says in words."""

    starts: datetime
    ends: datetime
    value: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One line: its steps in the order of time, what it says as a whole, and where it leads."""

    name: str
    steps: tuple[Step, ...]
    title: str
    href: str | None = None


def steps_chart(title: str, lines: Sequence[StepLine], up: Axis) -> Markup:
    """At most `MOST_LINES` lines over an axis of time (UTC), drawn for wide places and phones.

    Raises `ValueError` if no line has a step, or for too many lines.
    """
    if len(lines) > MOST_LINES:
        raise ValueError(f"{len(lines)} lines cannot be told apart; at most {MOST_LINES} can")
    every = [step for each in lines for step in each.steps]
    if not every:
        raise ValueError("a chart of steps needs at least one")
    first = min(step.starts for step in every)
    span = max(max(step.ends for step in every) - first, timedelta(hours=1))

    def draw(size: Size) -> ET.Element:
        hours = span / timedelta(hours=1)
        x = Scale(low=0.0, high=hours, start=size.left, end=size.width - size.right - 14)
        y = Scale.over(
            [step.value for step in every], start=size.height - size.bottom, end=size.top, log=up.log, zero=up.zero
        )
        most = 3 if size.name == "narrow" else 7
        across = Axis(
            title="UTC",
            write=lambda value: day_or_hour(first + timedelta(hours=value), hours),
            marks=tuple((moment - first) / timedelta(hours=1) for moment in marks(first, first + span, most)),
        )
        svg = canvas(size, title)
        axes(svg, size, x=x, y=y, across=across, up=up)
        ends = _apart([y.at(each.steps[-1].value) for each in lines])
        few = len(every) <= MOST_MARKS
        for number, each in enumerate(lines):
            _line(svg, each, f"s{number + 1}", (x, y, first), few=few)
            at = x.at((each.steps[-1].ends - first) / timedelta(hours=1))
            text(svg, at + 5, ends[number] + 4, LETTERS[number], kind="strong")
        return svg

    return both(draw)


def _line(svg: ET.Element, each: StepLine, style: str, at: tuple[Scale, Scale, datetime], *, few: bool) -> None:
    x, y, first = at

    def across(moment: datetime) -> float:
        return x.at((moment - first) / timedelta(hours=1))

    parent = svg if few else reachable(svg, each.title, href=each.href, kind=style)
    drawn, ended = "", None
    for step in each.steps:
        height = y.at(step.value)
        drawn += f"V{height:g}" if ended == step.starts else f"M{across(step.starts):g} {height:g}"
        drawn += f"H{max(across(step.ends), across(step.starts) + 1):g}"
        ended = step.ends
    ET.SubElement(parent, "path", {"class": f"path {style} dashes", "d": drawn})
    for step in each.steps if few else ():
        group = reachable(svg, step.title, href=each.href, kind=style)
        centre = {"cx": f"{across(step.starts):g}", "cy": f"{y.at(step.value):g}"}
        ET.SubElement(group, "circle", {"class": "target", "r": f"{TARGET_RADIUS:g}"} | centre)
        ET.SubElement(group, "circle", {"class": "mark", "r": "4"} | centre)


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
