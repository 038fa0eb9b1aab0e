"""Stacked areas over an axis: how what things cost together is made up, in steps where it changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import (
    NARROW,
    STRONG_LETTER_WIDTH,
    WIDE,
    Axis,
    Size,
    axes,
    both,
    canvas,
    line,
    reachable,
    text,
)
from gpuplan.api.presentation.charts.scale import Scale

#: The lowest area that has room for its name.
_LOWEST_NAMED = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One area of the stack: its name and style (s1 to s6)."""

    name: str
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaSpan:
    """Values of the layers, from the bottom, from `begin` to `end` of the axis; and their text."""

    begin: float
    end: float
    values: tuple[float, ...]
    title: str


def stacked_areas(
    title: str,
    layers: Sequence[Layer],
    spans: Sequence[AreaSpan],
    across: Axis,
    up: Axis,
    *,
    highest: float,
    sizes: Sequence[Size] = (WIDE, NARROW),
) -> Markup:
    """The spans in order, each where the last ended, on a scale up to `highest`, which charts beside it share.

    Raises `ValueError` without spans, and for a value below 0, which has no area.
    """
    if not spans or min(value for span in spans for value in span.values) < 0:
        raise ValueError("stacked areas need at least one span, and no value below 0")

    def draw(size: Size) -> ET.Element:
        x = Scale(low=spans[0].begin, high=spans[-1].end, start=size.left, end=size.width - size.right)
        y = Scale.over([0.0, highest], start=size.height - size.bottom, end=size.top, zero=True)
        svg = canvas(size, title)
        svg.set("data-x", f"linear {x.low:g} {x.high:g} {x.start:g} {x.end:g}")
        axes(svg, size, x=x, y=y, across=across, up=up)
        below = [0.0] * len(spans)
        for number, layer in enumerate(layers):
            above = [low + span.values[number] for low, span in zip(below, spans, strict=True)]
            if any(span.values[number] for span in spans):
                _area(svg, layer, spans, (below, above), (x, y))
            below = above
        for span, height in zip(spans, below, strict=True):
            _target(svg, size, span, (x, y), height)
        return svg

    return both(draw, sizes)


def _area(
    svg: ET.Element,
    layer: Layer,
    spans: Sequence[AreaSpan],
    between: tuple[list[float], list[float]],
    scales: tuple[Scale, Scale],
) -> None:
    """One layer, with its name in the widest span that has room for it."""
    (below, above), (x, y) = between, scales
    forward = "".join(f"V{y.at(top)}H{x.at(span.end)}" for span, top in zip(spans, above, strict=True))
    back = "".join(
        f"V{y.at(low)}H{x.at(span.begin)}" for span, low in zip(reversed(spans), reversed(below), strict=True)
    )
    ET.SubElement(
        svg, "path", {"class": f"layer {layer.style}", "d": f"M{x.at(spans[0].begin)} {y.start:g}{forward}{back}Z"}
    )
    roomy = [
        (span, low, top)
        for span, low, top in zip(spans, below, above, strict=True)
        if y.at(low) - y.at(top) >= _LOWEST_NAMED
        and x.at(span.end) - x.at(span.begin) >= len(layer.name) * STRONG_LETTER_WIDTH
    ]
    if roomy:
        span, low, top = max(roomy, key=lambda one: (one[0].end - one[0].begin, one[2] - one[1]))
        middle = (y.at(low) + y.at(top)) / 2 + 4
        text(svg, x.at((span.begin + span.end) / 2), middle, layer.name, anchor="middle", kind="strong")


def _target(svg: ET.Element, size: Size, span: AreaSpan, scales: tuple[Scale, Scale], height: float) -> None:
    """What a pointer or the keyboard meets over a whole span."""
    x, y = scales
    left, right = x.at(span.begin), x.at(span.end)
    group = reachable(svg, span.title, href=None)
    line(group, (left, left), (y.start, y.at(height)), "grid")
    ET.SubElement(
        group, "circle", {"class": "target", "r": "0", "cx": f"{(left + right) / 2:g}", "cy": f"{y.at(height):g}"}
    )
    whole = {"x": f"{left:g}", "width": f"{right - left:g}", "y": f"{size.top:g}", "height": f"{y.start - size.top:g}"}
    ET.SubElement(group, "rect", {"class": "target"} | whole)
