"""A chart as a PNG, for places that show pictures only: the page's own drawing, with its title and legend."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np

from gpuplan.api.presentation.charts.drawing import Figure, LegendEntry, Size
from gpuplan.api.presentation.charts.raster import Colour, Raster
from gpuplan.api.presentation.charts.stroke_font import CAPITAL, advance
from gpuplan.catalog.snapshots.offer_columns import Floats

#: Size of the drawing within a picture. Chats show pictures some 360 to 580 pixels wide.
PICTURE = Size(name="picture", width=580.0, height=300.0, left=60.0, right=14.0)
#: Pixels of the picture per pixel of the drawing, for dense screens.
_SCALE = 2.0
#: Height of a capital, and of a line of text, in pixels of the drawing.
_CAPITAL, _LINE = 9.0, 19.0
_MARGIN, _GAP = 14.0, 5.0
#: The style sheet's colours on white.
_TEXT, _QUIET, _WHITE = (27, 36, 48), (85, 97, 111), (255, 255, 255)
_LINES: dict[str, tuple[Colour, float]] = {
    "grid": ((213, 219, 226), 1.0),
    "axis": ((123, 135, 148), 1.0),
    "rule": ((164, 38, 44), 1.5),
}
_SERIES: dict[str, Colour] = {
    "s1": (11, 92, 138),
    "s2": (168, 72, 10),
    "s3": (18, 102, 74),
    "s4": (122, 59, 154),
    "s5": (138, 106, 0),
    "s6": (164, 38, 106),
    "line": (123, 135, 148),
}
#: Length of a dash with its gap, and of the dash.
_DASH, _DASH_LINE = 7.0, 4.0
_BAND_OPACITY = 0.12
_COMMAND = re.compile(r"([MLHVZ])([^MLHVZ]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")
_CIRCLE = np.array([(np.cos(turn), np.sin(turn)) for turn in np.linspace(0.0, 2 * np.pi, 33)])


def png_of(figure: Figure) -> bytes:
    """The PNG of a figure that is drawn for `PICTURE`, under its title and legend."""
    svg = ET.fromstring(figure.drawing)  # noqa: S314 - our own drawing
    titles, entries = _wrapped(figure.title), _in_rows(figure.legend)
    above = _MARGIN + _LINE * (len(titles) + len(entries)) + _GAP
    raster = Raster(int(_SCALE * PICTURE.width), int(_SCALE * (above + PICTURE.height)), _WHITE)
    pen = _Pen(raster, 0.0, 0.0)
    for row, line in enumerate(titles):
        pen.text(_MARGIN, _MARGIN + row * _LINE + _CAPITAL, line, _TEXT)
    for row, placed in enumerate(entries, start=len(titles)):
        for x, entry in placed:
            y = _MARGIN + row * _LINE + _CAPITAL + _GAP
            _Pen(raster, x, y - _CAPITAL / 2).mark(entry.outline, _SERIES[entry.style])
            pen.text(x + 10, y, entry.name, _QUIET)
    _draw(svg, _Pen(raster, 0.0, above), "line")
    return raster.png()


def _wrapped(text: str) -> list[str]:
    """The text in lines that fit the picture."""
    lines: list[str] = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if _width(longer) > PICTURE.width - 2 * _MARGIN and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _in_rows(entries: tuple[LegendEntry, ...]) -> list[list[tuple[float, LegendEntry]]]:
    """The entries of a legend with their places, in rows that fit the picture."""
    rows: list[list[tuple[float, LegendEntry]]] = []
    x = PICTURE.width
    for entry in entries:
        width = 10 + _width(entry.name) + 16
        if x + width > PICTURE.width - _MARGIN:
            rows.append([])
            x = _MARGIN + 5
        rows[-1].append((x, entry))
        x += width
    return rows


def _width(text: str) -> float:
    return advance(text) * _CAPITAL / CAPITAL


def _draw(element: ET.Element, pen: "_Pen", series: str) -> None:
    """Draw an element and what it contains; `series` is the style of the nearest group that has one."""
    kinds = (element.get("class") or "").split()
    series = next((kind for kind in kinds if kind in _SERIES), series)
    colour = _SERIES[series]
    if element.tag == "line":
        ends = np.array([[_number(element, f"{axis}{end}") for axis in "xy"] for end in "12"])
        pen.line(ends, kinds[0])
    elif element.tag == "text":
        pen.text(_number(element, "x"), _number(element, "y"), element.text or "", _QUIET, element.get("text-anchor"))
    elif element.tag == "circle" and "ring" in kinds:
        pen.moved(_number(element, "cx"), _number(element, "cy")).outline(_CIRCLE * _number(element, "r"), colour)
    elif element.tag == "circle" and "mark" in kinds:
        pen.moved(_number(element, "cx"), _number(element, "cy")).mark("", colour)
    elif element.tag == "path" and "mark" in kinds:
        x, y = map(float, _NUMBER.findall(element.get("transform") or "0 0"))
        pen.moved(x, y).mark(element.get("d") or "", colour)
    elif element.tag == "path":
        pen.path(element.get("d") or "", colour, is_band="band" in kinds)
    for child in element:
        _draw(child, pen, series)


def _number(element: ET.Element, name: str) -> float:
    return float(element.get(name) or 0.0)


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws on a raster from an origin, in pixels of the drawing."""

    raster: Raster
    x: float
    y: float

    def moved(self, x: float, y: float) -> "_Pen":
        """A pen whose origin lies at a point of this one."""
        return _Pen(self.raster, self.x + x, self.y + y)

    def line(self, ends: Floats, kind: str) -> None:
        """A line of an axis, a grid or a rule; rules are dashed."""
        colour, width = _LINES[kind]
        lines = [ends]
        if kind == "rule":
            start, end = ends
            length = float(np.hypot(*(end - start))) or 1.0
            dashes = np.arange(0.0, length, _DASH)
            lines = [
                np.array([start + (end - start) * min(1.0, (at + part) / length) for part in (0, _DASH_LINE)])
                for at in dashes
            ]
        self.raster.lines([self._placed(points) for points in lines], _SCALE * width, colour)

    def text(self, x: float, y: float, text: str, colour: Colour, anchor: str | None = None) -> None:
        """A line of text."""
        ((left, base),) = self._placed(np.array([(x, y)]))
        self.raster.text(left, base, text, _SCALE * _CAPITAL, colour, anchor=anchor or "start")

    def mark(self, outline: str, colour: Colour) -> None:
        """The mark of a point at the origin, with a white edge; without an outline, a circle."""
        points = _CIRCLE[:-1] * 5 if not outline else np.concatenate([*_lines(outline)])
        self.raster.area(self._placed(points * 1.3), _WHITE)
        self.raster.area(self._placed(points), colour)

    def outline(self, points: Floats, colour: Colour) -> None:
        """A line through points."""
        self.raster.lines([self._placed(points)], _SCALE * 2.0, colour)

    def path(self, path: str, colour: Colour, *, is_band: bool) -> None:
        """The path of a series, or the area of its band."""
        for points in _lines(path):
            if is_band:
                self.raster.area(self._placed(points), colour, _BAND_OPACITY)
            else:
                self.outline(points, colour)

    def _placed(self, points: Floats) -> Floats:
        placed: Floats = (points + np.array((self.x, self.y))) * _SCALE
        return placed


def _lines(path: str) -> Iterator[Floats]:
    """The lines of a path with absolute moves, lines and their ends."""
    points: list[tuple[float, float]] = []
    for command, texts in _COMMAND.findall(path):
        numbers = [float(text) for text in _NUMBER.findall(texts)]
        if command == "M" and points:
            yield np.array(points)
            points = []
        if command == "H":
            points += [(x, points[-1][1]) for x in numbers]
        elif command == "V":
            points += [(points[-1][0], y) for y in numbers]
        elif command in "ML":
            points += list(zip(numbers[::2], numbers[1::2], strict=True))
    if points:
        yield np.array(points)
