"""The frame of a chart: SVG element, axes, and the two drawings for wide pages and phones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from gpuplan.api.presentation.charts.scale import Scale

#: Size of a pointer target: 24 px, the minimum of WCAG 2.2.
TARGET_RADIUS = 12.0
#: Average width of a letter on an axis, in pixels.
LETTER_WIDTH = 6.2
#: Width of a bold letter of a row's name: an x of DejaVu Sans Bold, the widest of the usual fonts.
STRONG_LETTER_WIDTH = 7.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A drawing's size in CSS pixels, and the margins for axis labels."""

    name: str
    width: float
    height: float
    left: float = 64.0
    right: float = 16.0
    top: float = 12.0
    bottom: float = 44.0


#: Sizes for wide pages and phones: text has a fixed size, so both get their own drawing.
WIDE = Size(name="wide", width=760.0, height=320.0)
NARROW = Size(name="narrow", width=340.0, height=280.0, left=56.0, right=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title, number format, and whether it is logarithmic.

    `marks` are candidate tick values where decimal round numbers do not fit, such as hours and days.
    """

    title: str
    write: Callable[[float], str]
    log: bool = False
    zero: bool = False
    marks: tuple[float, ...] = ()


#: Outlines of marks around the origin, each about as large as a circle of radius 5; a circle is drawn as one.
OUTLINES = {
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "diamond": "M0-6.3L6.3 0L0 6.3L-6.3 0Z",
    "triangle": "M0-6.2L6 4.4H-6Z",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """A colour (`style` s1 to s6) or shape with its meaning. `filters` is the tag of the marks that it hides and shows."""

    name: str
    style: str
    shape: str = "circle"
    filters: str = ""

    @property
    def outline(self) -> str:
        """The path of its shape; empty for a circle."""
        return OUTLINES.get(self.shape, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with its figures as a table: columns are (name, right-aligned); rows are text."""

    title: str
    drawing: Markup
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[LegendEntry, ...] = ()


def canvas(size: Size, title: str) -> ET.Element:
    """An empty drawing. Its role is a labelled group rather than an image, because its marks are reachable."""
    return ET.Element(
        "svg",
        {"class": size.name, "viewBox": f"0 0 {size.width:g} {size.height:g}", "role": "group", "aria-label": title},
    )


def both(draw: Callable[[Size], ET.Element], sizes: Sequence[Size] = (WIDE, NARROW)) -> Markup:
    """The drawings for wide pages and for phones; the style sheet shows one of them."""
    # Safe markup: ElementTree escapes every text and attribute.
    return Markup("").join(Markup(ET.tostring(draw(size), encoding="unicode")) for size in sizes)  # noqa: S704


def text(parent: ET.Element, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> ET.Element:
    """Text at a position."""
    given = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor} | ({"class": kind} if kind else {})
    element = ET.SubElement(parent, "text", given)
    element.text = words
    return element


def cut(words: str, most: int) -> str:
    """The words, or as many letters of them as `most` allows with an ellipsis."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def line(parent: ET.Element, x: tuple[float, float], y: tuple[float, float], kind: str) -> None:
    """A straight line of a class, from (x[0], y[0]) to (x[1], y[1])."""
    (x1, x2), (y1, y2) = x, y
    ET.SubElement(parent, "line", {"class": kind, "x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}"})


def axes(svg: ET.Element, size: Size, *, x: Scale, y: Scale, across: Axis, up: Axis) -> None:
    """Grid, ticks and titles of both axes; hidden from screen readers, because the marks' titles have the figures."""
    group = ET.SubElement(svg, "g", {"aria-hidden": "true"})
    bottom = size.height - size.bottom
    for value in _marked(y, up, 5):
        line(group, (size.left, size.width - size.right), (y.at(value), y.at(value)), "grid")
        text(group, size.left - 8, y.at(value) + 4, up.write(value), anchor="end")
    for value in _marked(x, across, max(2, int((size.width - size.left) // 90))):
        line(group, (x.at(value), x.at(value)), (bottom, bottom + 5), "axis")
        words = across.write(value)
        # The last label is anchored at its end where it would be cut off.
        out = x.at(value) + len(words) * LETTER_WIDTH / 2 > size.width
        text(group, x.at(value), bottom + 19, words, anchor="end" if out else "middle")
    line(group, (size.left, size.width - size.right), (bottom, bottom), "axis")
    text(group, (size.left + size.width - size.right) / 2, size.height - 6, across.title, anchor="middle")


def _marked(scale: Scale, axis: Axis, most: int) -> list[float]:
    """Tick values of an axis: its own marks if at least two are in range, else round numbers."""
    in_range = [value for value in axis.marks if scale.low <= value <= scale.high]
    if len(in_range) < 2:
        return scale.ticks(most)
    while len(in_range) > most:
        in_range = in_range[::2]
    return in_range


def reachable(parent: ET.Element, title: str, *, href: str | None, kind: str = "", current: bool = False) -> ET.Element:
    """A keyboard-reachable group with a `title`; a link if `href` is given."""
    if href is not None:
        given = {"href": href, "aria-label": title} | ({"class": kind} if kind else {})
        element = ET.SubElement(parent, "a", given | ({"aria-current": "true"} if current else {}))
    else:
        element = ET.SubElement(
            parent, "g", {"class": f"point {kind}".strip(), "tabindex": "0", "role": "img", "aria-label": title}
        )
    ET.SubElement(element, "title").text = title
    return element


def mark(parent: ET.Element, shape: str, x: float, y: float, size: float = 1.0) -> None:
    """The mark of a point: a circle or one of the `OUTLINES`, `size` times as wide as usual."""
    if shape == "circle":
        ET.SubElement(parent, "circle", {"class": "mark", "r": f"{5 * size:g}", "cx": f"{x:g}", "cy": f"{y:g}"})
    else:
        moved = f"translate({x:g} {y:g})" + (f" scale({size:g})" if size != 1.0 else "")
        ET.SubElement(parent, "path", {"class": "mark", "d": OUTLINES[shape], "transform": moved})
