"""Horizontal bars: two values for each name, one below the other, with the name above and the figures beside."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import (
    LETTER_WIDTH,
    STRONG_LETTER_WIDTH,
    Size,
    both,
    canvas,
    cut,
    line,
    reachable,
    text,
)
from gpuplan.api.presentation.charts.scale import Scale

ROW_HEIGHT, BAR_HEIGHT, GAP, HEAD = 58.0, 13.0, 3.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BarRow:
    """One name with its values (at least 0) and their texts, in the order of the styles s1, s2."""

    name: str
    values: tuple[tuple[float, str], ...]
    title: str


def bars(title: str, rows: Sequence[BarRow]) -> Markup:
    """The rows from top to bottom on one scale from 0, for wide pages and phones. Raises `ValueError` without any row."""
    if not rows:
        raise ValueError("a chart of bars needs at least one row")
    height = HEAD + ROW_HEIGHT * len(rows)
    room = LETTER_WIDTH * (2 + max(len(words) for row in rows for _, words in row.values))
    sizes = (
        Size(name="wide", width=760.0, height=height, left=4.0, right=room),
        Size(name="narrow", width=340.0, height=height, left=4.0, right=room),
    )
    most = max(value for row in rows for value, _ in row.values) or 1.0

    def draw(size: Size) -> ET.Element:
        svg = canvas(size, title)
        scale = Scale(low=0.0, high=most, start=size.left, end=size.width - size.right)
        letters = int((size.width - 8) / STRONG_LETTER_WIDTH)
        line(svg, (size.left, size.left), (HEAD + 18, height - 4), "axis")
        for number, row in enumerate(rows):
            top = HEAD + ROW_HEIGHT * number
            text(svg, size.left, top + 14, cut(row.name, letters), kind="strong")
            group = reachable(svg, row.title, href=None)
            for place, (value, words) in enumerate(row.values):
                y = top + 20 + (BAR_HEIGHT + GAP) * place
                width = max(scale.at(value) - size.left, 1.0)
                series = ET.SubElement(group, "g", {"class": f"s{place + 1}"})
                box = {"x": f"{size.left:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{BAR_HEIGHT:g}"}
                ET.SubElement(series, "rect", {"class": "bar", "rx": "2"} | box)
                text(group, size.left + width + 6, y + BAR_HEIGHT - 2, words)
        return svg

    return both(draw, sizes)
