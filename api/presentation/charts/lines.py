"""Charts of lines, steps and points."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import TARGET_RADIUS, Axis, Size, axes, both, canvas, line, reachable
from gpuplan.api.presentation.charts.scale import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A mark: position, text, link, and whether it is the page's subject."""

    x: float
    y: float
    title: str
    href: str | None = None
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points in order of x. `kind` is `line`, `step` (a value lasts until the next) or `points`; `style` is s1 to s6.

    Without `marks` only the line is drawn, without reachable points, for dense series.
    """

    name: str
    points: tuple[Point, ...]
    kind: str = "line"
    style: str = "s1"
    marks: bool = True


def chart(
    title: str,
    series: Sequence[Series],
    across: Axis,
    up: Axis,
    *,
    rules: Sequence[float] = (),
) -> Markup:
    """All series over two axes, drawn for wide pages and phones; `rules` are x values of dashed lines.

    Raises `ValueError` if no series has a point.
    """

    def draw(size: Size) -> ET.Element:
        xs = [point.x for one_series in series for point in one_series.points] + list(rules)
        ys = [point.y for one_series in series for point in one_series.points]
        x = Scale.over(xs, start=size.left, end=size.width - size.right, log=across.log, zero=across.zero)
        y = Scale.over(ys, start=size.height - size.bottom, end=size.top, log=up.log, zero=up.zero)
        svg = canvas(size, title)
        axes(svg, size, x=x, y=y, across=across, up=up)
        for at in rules:
            line(svg, (x.at(at), x.at(at)), (size.top, size.height - size.bottom), "rule")
        for seriese in series:
            _path(svg, seriese, x, y)
        for seriese in series:
            if seriese.marks:
                _marks(svg, seriese, x, y)
        return svg

    return both(draw)


def _path(svg: ET.Element, series: Series, x: Scale, y: Scale) -> None:
    if series.kind == "points" or len(series.points) < 2:
        return
    first, *rest = series.points
    drawn = f"M{x.at(first.x):g} {y.at(first.y):g}"
    for point in rest:
        across, up = f"{x.at(point.x):g}", f"{y.at(point.y):g}"
        drawn += f"H{across}V{up}" if series.kind == "step" else f"L{across} {up}"
    ET.SubElement(svg, "path", {"class": f"path {series.style}", "d": drawn})


def _marks(svg: ET.Element, series: Series, x: Scale, y: Scale) -> None:
    for point in series.points:
        group = reachable(svg, point.title, href=point.href, kind=series.style, current=point.current)
        centre = {"cx": f"{x.at(point.x):g}", "cy": f"{y.at(point.y):g}"}
        ET.SubElement(group, "circle", {"class": "target", "r": f"{TARGET_RADIUS:g}"} | centre)
        if point.current:
            ET.SubElement(group, "circle", {"class": "ring", "r": "9"} | centre)
        ET.SubElement(group, "circle", {"class": "mark", "r": "5"} | centre)
