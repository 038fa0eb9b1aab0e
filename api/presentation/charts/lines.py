"""Charts of lines, steps and points."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import (
    NARROW,
    TARGET_RADIUS,
    WIDE,
    Axis,
    Size,
    axes,
    both,
    canvas,
    line,
    mark,
    reachable,
)
from gpuplan.api.presentation.charts.scale import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mark: position, text, link, and whether it is the page's subject.

    `style` is the series' own unless given; `shape` is circle or one of the `OUTLINES`, `size` times as wide as usual. `tags` are the meanings of both,
    by which a legend filters.
    """

    x: float
    y: float
    title: str
    href: str | None = None
    current: bool = False
    style: str = ""
    shape: str = "circle"
    size: float = 1.0
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points in order of x. `kind` is `line`, `step` (a value lasts until the next) or `points`; `style` is s1 to s6.

    Without `marks` only the line is drawn, without reachable points, for dense series. `upper` are the values of y up to
    which each point's band reaches, drawn as steps; empty without a band.
    """

    name: str
    points: tuple[Point, ...]
    kind: str = "line"
    style: str = "s1"
    marks: bool = True
    upper: tuple[float, ...] = ()


def chart(
    title: str,
    series: Sequence[Series],
    across: Axis,
    up: Axis,
    *,
    rules: Sequence[float] = (),
    levels: Sequence[float] = (),
    sizes: Sequence[Size] = (WIDE, NARROW),
) -> Markup:
    """All series over two axes, drawn in every size; `rules` are x values of dashed lines, the deadlines.

    `levels` are y values of dashed lines, the budgets, drawn where they lie within the values. The drawing states its
    scales as `data-x` and `data-y`: log or linear, lowest and highest value, and their pixels.
    Raises `ValueError` if no series has a point.
    """

    def draw(size: Size) -> ET.Element:
        xs = [point.x for one_series in series for point in one_series.points] + list(rules)
        ys = [point.y for one_series in series for point in one_series.points]
        ys += [value for one_series in series for value in one_series.upper]
        x = Scale.over(xs, start=size.left, end=size.width - size.right, log=across.log, zero=across.zero)
        y = Scale.over(ys, start=size.height - size.bottom, end=size.top, log=up.log, zero=up.zero)
        svg = canvas(size, title)
        for name, scale in (("data-x", x), ("data-y", y)):
            kind = "log" if scale.log else "linear"
            svg.set(name, f"{kind} {scale.low!r} {scale.high!r} {scale.start:g} {scale.end:g}")
        axes(svg, size, x=x, y=y, across=across, up=up)
        for at in rules:
            line(svg, (x.at(at), x.at(at)), (size.top, size.height - size.bottom), "rule deadline")
        for at in levels:
            if y.low <= at <= y.high:
                line(svg, (size.left, size.width - size.right), (y.at(at), y.at(at)), "rule budget")
        for drawn in series:
            _band(svg, drawn, x, y)
            _path(svg, drawn, x, y)
        for drawn in series:
            if drawn.marks:
                _marks(svg, drawn, x, y)
        return svg

    return both(draw, sizes)


def _path(svg: ET.Element, series: Series, x: Scale, y: Scale) -> None:
    if series.kind == "points" or len(series.points) < 2:
        return
    first, *rest = series.points
    drawn = f"M{x.at(first.x):g} {y.at(first.y):g}"
    for point in rest:
        across, up = f"{x.at(point.x):g}", f"{y.at(point.y):g}"
        drawn += f"H{across}V{up}" if series.kind == "step" else f"L{across} {up}"
    ET.SubElement(svg, "path", {"class": f"path {series.style}", "d": drawn})


def _band(svg: ET.Element, series: Series, x: Scale, y: Scale) -> None:
    """The area between a series' steps and its upper values."""
    if len(series.upper) < 2:
        return
    above = f"M{x.at(series.points[0].x):g} {y.at(series.upper[0]):g}"
    for point, value in zip(series.points[1:], series.upper[1:], strict=True):
        above += f"H{x.at(point.x):g}V{y.at(value):g}"
    below = f"V{y.at(series.points[-1].y):g}"
    for before in series.points[-2::-1]:
        below += f"V{y.at(before.y):g}H{x.at(before.x):g}"
    ET.SubElement(svg, "path", {"class": f"band {series.style}", "d": f"{above}{below}Z"})


def _marks(svg: ET.Element, series: Series, x: Scale, y: Scale) -> None:
    for point in series.points:
        style = point.style or series.style
        group = reachable(svg, point.title, href=point.href, kind=style, current=point.current)
        if point.tags:
            group.set("data-tags", " ".join(point.tags))
        centre = {"cx": f"{x.at(point.x):g}", "cy": f"{y.at(point.y):g}"}
        ET.SubElement(group, "circle", {"class": "target", "r": f"{TARGET_RADIUS:g}"} | centre)
        if point.current:
            ET.SubElement(group, "circle", {"class": "ring", "r": "9"} | centre)
        mark(group, point.shape, x.at(point.x), y.at(point.y), point.size)
