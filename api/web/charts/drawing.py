"""A chart's frame: the SVG element, its axes, and how a finished drawing goes into a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from api.web.charts.scale import Scale

#: What a hovering or pressing finger finds: 24 px, the least that WCAG 2.2 asks of a target.
TARGET_RADIUS = 12.0
#: What a letter of an axis takes on average, in pixels.
LETTER_WIDTH = 6.2
#: And one of the names of rows, which are heavier: an x of DejaVu Sans Bold, the widest of the usual fonts.
STRONG_LETTER_WIDTH = 7.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One drawing's size in CSS pixels, and the room around its data for the axes' words."""

    name: str
    width: float
    height: float
    left: float = 64.0
    right: float = 16.0
    top: float = 12.0
    bottom: float = 44.0


#: For places wider than a phone, and for phones: text keeps its size, so a drawing is made for each.
WIDE = Size(name="wide", width=760.0, height=320.0)
NARROW = Size(name="narrow", width=340.0, height=280.0, left=56.0, right=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis shows: its title, how a figure on it is written, and whether it goes by the logarithm.

    `marks` are the figures at which it may be marked, where round ones are not those of ten (hours and days, say).
    """

    title: str
    write: Callable[[float], str]
    log: bool = False
    zero: bool = False
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with the same figures as a table: `columns` are names, with whether they align right; rows are text."""

    title: str
    drawing: Markup
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[tuple[str, str], ...] = ()


def canvas(size: Size, title: str) -> ET.Element:
    """An empty drawing. It is a group of things that can be reached one by one, so it is named, not an image."""
    return ET.Element(
        "svg",
        {"class": size.name, "viewBox": f"0 0 {size.width:g} {size.height:g}", "role": "group", "aria-label": title},
    )


def both(draw: Callable[[Size], ET.Element], sizes: Sequence[Size] = (WIDE, NARROW)) -> Markup:
    """The drawing for wide places and for phones, of which the style sheet shows one."""
    # ElementTree escapes every text and attribute, so this is markup of ours alone.
    return Markup("").join(Markup(ET.tostring(draw(size), encoding="unicode")) for size in sizes)  # noqa: S704


def text(parent: ET.Element, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> ET.Element:
    """Words at a place."""
    given = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor} | ({"class": kind} if kind else {})
    element = ET.SubElement(parent, "text", given)
    element.text = words
    return element


def line(parent: ET.Element, x: tuple[float, float], y: tuple[float, float], kind: str) -> None:
    """A straight line of a class, from the first of `x` and `y` to the second."""
    (x1, x2), (y1, y2) = x, y
    ET.SubElement(parent, "line", {"class": kind, "x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}"})


def axes(svg: ET.Element, size: Size, *, x: Scale, y: Scale, across: Axis, up: Axis) -> None:
    """Grid, ticks and titles of both axes; for eyes alone, since every mark's title says its figures in words."""
    group = ET.SubElement(svg, "g", {"aria-hidden": "true"})
    bottom = size.height - size.bottom
    for value in _marked(y, up, 5):
        line(group, (size.left, size.width - size.right), (y.at(value), y.at(value)), "grid")
        text(group, size.left - 8, y.at(value) + 4, up.write(value), anchor="end")
    for value in _marked(x, across, max(2, int((size.width - size.left) // 90))):
        line(group, (x.at(value), x.at(value)), (bottom, bottom + 5), "axis")
        words = across.write(value)
        # The last mark's words lean inwards where they would be cut off.
        out = x.at(value) + len(words) * LETTER_WIDTH / 2 > size.width
        text(group, x.at(value), bottom + 19, words, anchor="end" if out else "middle")
    line(group, (size.left, size.width - size.right), (bottom, bottom), "axis")
    text(group, (size.left + size.width - size.right) / 2, size.height - 6, across.title, anchor="middle")


def _marked(scale: Scale, axis: Axis, most: int) -> list[float]:
    """Where an axis is marked: at its own marks if at least two of them lie on it, else at round figures."""
    own = [value for value in axis.marks if scale.low <= value <= scale.high]
    if len(own) < 2:
        return scale.ticks(most)
    while len(own) > most:
        own = own[::2]
    return own


def reachable(parent: ET.Element, title: str, *, href: str | None, kind: str = "", current: bool = False) -> ET.Element:
    """A group that the keyboard reaches and that says `title`: a link where there is somewhere to go."""
    if href is not None:
        given = {"href": href, "aria-label": title} | ({"class": kind} if kind else {})
        element = ET.SubElement(parent, "a", given | ({"aria-current": "true"} if current else {}))
    else:
        element = ET.SubElement(
            parent, "g", {"class": f"point {kind}".strip(), "tabindex": "0", "role": "img", "aria-label": title}
        )
    ET.SubElement(element, "title").text = title
    return element
