"""Stacked bars over time: what each of several groups counts at each moment, newest on the right."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import Axis, Size, axes, both, canvas, reachable, text
from gpuplan.api.presentation.charts.scale import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedPart:
    """A group's count and style (s1 to s6)."""

    value: float
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBar:
    """One bar: its time, parts from the bottom, text and link."""

    at: datetime
    parts: tuple[StackedPart, ...]
    title: str
    href: str


#: The widest bar, in pixels.
_WIDEST = 48.0


def stacked_bars(title: str, bars: Sequence[StackedBar], up: Axis) -> Markup:
    """The bars at equal distances, in order, under their dates. Raises `ValueError` without any."""
    if not bars:
        raise ValueError("a chart of bars needs at least one")
    heights = [sum(part.value for part in bar.parts) for bar in bars]

    def draw(size: Size) -> ET.Element:
        y = Scale.over([0.0, *heights], start=size.height - size.bottom, end=size.top, zero=True)
        x = Scale(low=0.0, high=float(len(bars)), start=size.left, end=size.width - size.right)
        svg = canvas(size, title)
        svg.set("data-x", f"linear {x.low:g} {x.high:g} {x.start:g} {x.end:g}")
        # Dates stand under the bars themselves, as they are not equally far apart.
        axes(svg, size, x=x, y=y, across=Axis(title="UTC", write=lambda _: "", marks=(0.0, float(len(bars)))), up=up)
        room = (size.width - size.left - size.right) / len(bars)
        width = min(_WIDEST, room * 0.8)
        every = -(-len(bars) // max(1, int((size.width - size.left) // 64)))
        for number, bar in enumerate(bars):
            centre = x.at(number + 0.5)
            group = reachable(svg, bar.title, href=bar.href)
            top = y.start
            # Where the script points to, and what a pointer meets.
            middle = {"cx": f"{centre:g}", "cy": f"{y.at(heights[number]):g}"}
            ET.SubElement(group, "circle", {"class": "target", "r": "0"} | middle)
            whole = {"x": f"{centre - room / 2:g}", "width": f"{room:g}", "y": f"{size.top:g}"}
            ET.SubElement(group, "rect", {"class": "target", "height": f"{y.start - size.top:g}"} | whole)
            for part in bar.parts:
                height = round(y.start - y.at(part.value), 1)
                top -= height
                ET.SubElement(
                    group,
                    "rect",
                    {
                        "class": f"bar {part.style}",
                        "x": f"{centre - width / 2:g}",
                        "width": f"{width:g}",
                        "y": f"{top:g}",
                        "height": f"{height:g}",
                    },
                )
            if (len(bars) - 1 - number) % every == 0:
                text(svg, centre, y.start + 19, f"{bar.at.day} {bar.at:%b}", anchor="middle")
        return svg

    return both(draw)
