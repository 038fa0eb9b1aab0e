"""A chart as a PNG, for places that show no SVG: the page's own drawing under its title and legend, by Pillow."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpuplan.api.presentation.charts.drawing import Figure, LegendEntry, Size

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

Colour = tuple[int, int, int]
XY = tuple[float, float]

#: Size of the drawing within a picture. Chats show pictures some 360 to 580 pixels wide.
PICTURE = Size(name="picture", width=580.0, height=300.0, left=60.0, right=14.0)
#: Pixels of the picture per pixel of the drawing, for dense screens; and pixels drawn per pixel of the picture, which
#: smooths edges.
_SCALE, _SMOOTHING = 2, 3
_DRAWN = _SCALE * _SMOOTHING
#: Height of letters, of a line of text, and of its baseline, in pixels of the drawing.
_LETTER, _LINE, _BASE = 12.5, 19.0, 9.0
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
_SERIES_WIDTH, _RADIUS, _MARK_OUTLINE = 2.0, 5.0, 1.3
#: Length of a dash with its gap, and of the dash.
_DASH, _DASH_LINE = 7.0, 4.0
_BAND_OPACITY = 31  # of 255
_COMMAND = re.compile(r"([MLHVZ])([^MLHVZ]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")


def png_of(figure: Figure) -> bytes:
    """The PNG of a figure that is drawn for `PICTURE`, under its title and legend. Needs Pillow, of the extra `slack`."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(_LETTER * _DRAWN)
    svg = ET.fromstring(figure.drawing)  # noqa: S314 - our own drawing
    titles, entries = _wrapped(figure.title, font), _in_rows(figure.legend, font)
    above = _MARGIN + _LINE * (len(titles) + len(entries)) + _GAP
    size = (int(PICTURE.width * _DRAWN), int((above + PICTURE.height) * _DRAWN))
    image = Image.new("RGB", size, _WHITE)
    pen = _Pen(ImageDraw.Draw(image, "RGBA"), font, 0.0, 0.0)
    for row, line in enumerate(titles):
        pen.text((_MARGIN, _MARGIN + row * _LINE + _BASE), line, _TEXT)
    for row, placed in enumerate(entries, start=len(titles)):
        for x, entry in placed:
            y = _MARGIN + row * _LINE + _BASE + _GAP
            pen.moved(x, y - _BASE / 2).mark(entry.outline, _SERIES[entry.style])
            pen.text((x + 10, y), entry.name, _QUIET)
    _draw(svg, pen.moved(0.0, above), "line")
    png = BytesIO()
    image.reduce(_SMOOTHING).save(png, "PNG")
    return png.getvalue()


def _wrapped(text: str, font: "ImageFont.FreeTypeFont | ImageFont.ImageFont") -> list[str]:
    """The text in lines that fit the picture."""
    lines: list[str] = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) / _DRAWN > PICTURE.width - 2 * _MARGIN and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _in_rows(
    entries: tuple[LegendEntry, ...], font: "ImageFont.FreeTypeFont | ImageFont.ImageFont"
) -> list[list[tuple[float, LegendEntry]]]:
    """The entries of a legend with their places, in rows that fit the picture."""
    rows: list[list[tuple[float, LegendEntry]]] = []
    x = PICTURE.width
    for entry in entries:
        width = 10 + font.getlength(entry.name) / _DRAWN + 16
        if x + width > PICTURE.width - _MARGIN:
            rows.append([])
            x = _MARGIN + 5
        rows[-1].append((x, entry))
        x += width
    return rows


def _draw(element: ET.Element, pen: "_Pen", series: str) -> None:
    """Draw an element and what it contains; `series` is the style of the nearest group that has one."""
    kinds = (element.get("class") or "").split()
    series = next((kind for kind in kinds if kind in _SERIES), series)
    colour = _SERIES[series]
    if element.tag == "line":
        pen.rule(_at(element, "x1", "y1"), _at(element, "x2", "y2"), kinds[0])
    elif element.tag == "text":
        pen.text(_at(element, "x", "y"), element.text or "", _QUIET, element.get("text-anchor") or "start")
    elif element.tag == "circle" and "ring" in kinds:
        pen.moved(*_at(element, "cx", "cy")).ring(float(element.get("r") or 0.0), colour)
    elif element.tag == "circle" and "mark" in kinds:
        pen.moved(*_at(element, "cx", "cy")).mark("", colour)
    elif element.tag == "path" and "mark" in kinds:
        x, y = map(float, _NUMBER.findall(element.get("transform") or "0 0"))
        pen.moved(x, y).mark(element.get("d") or "", colour)
    elif element.tag == "path":
        for points in _lines(element.get("d") or ""):
            if "band" in kinds:
                pen.area(points, (*colour, _BAND_OPACITY))
            else:
                pen.line(points, colour, _SERIES_WIDTH)
    for child in element:
        _draw(child, pen, series)


def _at(element: ET.Element, x: str, y: str) -> XY:
    return float(element.get(x) or 0.0), float(element.get(y) or 0.0)


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws from an origin, in pixels of the drawing."""

    draw: "ImageDraw.ImageDraw"
    font: "ImageFont.FreeTypeFont | ImageFont.ImageFont"
    x: float
    y: float

    def moved(self, x: float, y: float) -> "_Pen":
        """A pen whose origin lies at a point of this one."""
        return _Pen(self.draw, self.font, self.x + x, self.y + y)

    def rule(self, start: XY, end: XY, kind: str) -> None:
        """A straight line of an axis, a grid or a rule; rules are dashed."""
        colour, width = _LINES[kind]
        (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
        length = (dx * dx + dy * dy) ** 0.5
        pieces = range(int(length / _DASH) + 1) if kind == "rule" and length else ()
        shares = [(i * _DASH / length, min(1.0, (i * _DASH + _DASH_LINE) / length)) for i in pieces]
        for a, b in shares or [(0.0, 1.0)]:
            self.line([(x + a * dx, y + a * dy), (x + b * dx, y + b * dy)], colour, width)

    def line(self, points: list[XY], colour: Colour, width: float) -> None:
        """A line through points."""
        self.draw.line(self._placed(points), colour, round(width * _DRAWN), joint="curve")

    def area(self, points: list[XY], colour: tuple[int, ...]) -> None:
        """The inside of an outline."""
        self.draw.polygon(self._placed(points), colour)

    def ring(self, radius: float, colour: Colour) -> None:
        """A circle around the origin."""
        box = self._placed([(-radius, -radius), (radius, radius)])
        self.draw.ellipse(box, outline=colour, width=round(_SERIES_WIDTH * _DRAWN))

    def mark(self, outline: str, colour: Colour) -> None:
        """The mark of a point at the origin, with a white edge; without an outline, a circle."""
        for size, fill in ((_MARK_OUTLINE, _WHITE), (1.0, colour)):
            if not outline:
                radius = _RADIUS * size
                self.draw.ellipse(self._placed([(-radius, -radius), (radius, radius)]), fill)
            for points in _lines(outline):
                self.area([(size * x, size * y) for x, y in points], fill)

    def text(self, at: XY, text: str, colour: Colour, anchor: str = "start") -> None:
        """A line of text from, around or up to a point of its baseline."""
        (place,) = self._placed([at])
        self.draw.text(place, text, colour, self.font, anchor={"start": "ls", "middle": "ms", "end": "rs"}[anchor])

    def _placed(self, points: list[XY]) -> list[XY]:
        return [((x + self.x) * _DRAWN, (y + self.y) * _DRAWN) for x, y in points]


def _lines(path: str) -> Iterator[list[XY]]:
    """The lines of a path with absolute moves, lines and their ends."""
    points: list[XY] = []
    for command, texts in _COMMAND.findall(path):
        numbers = [float(text) for text in _NUMBER.findall(texts)]
        if command == "M" and points:
            yield points
            points = []
        if command == "H":
            points += [(x, points[-1][1]) for x in numbers]
        elif command == "V":
            points += [(points[-1][0], y) for y in numbers]
        elif command in "ML":
            points += list(zip(numbers[::2], numbers[1::2], strict=True))
    if points:
        yield points
