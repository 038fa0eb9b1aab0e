"""Jobs over machines and time: a bar per job below the machine that it runs on, what it may take longer, its dates.

A bar is a link to the job's line in the table. Providers are told apart by the words above their bars and by a
pattern, not by colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from markupsafe import Markup

from api.web.charts.drawing import STRONG_LETTER_WIDTH, Size, both, canvas, line, reachable, text
from api.web.charts.scale import Scale
from api.web.charts.spans import day_or_hour, marks

ROW_HEIGHT, GROUP_HEIGHT, BAR_HEIGHT, HEAD, FOOT = 42.0, 30.0, 16.0, 4.0, 30.0
#: As many patterns as styles: none, then lines and dots that the style sheet draws in the colour of the ground.
PATTERNS = ("plain", "slanted", "dotted", "crossed", "upright", "level")
#: A deadline so much later than the last end would leave the bars no room; it is marked at the edge.
_MOST_OF_THE_LAST_END = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One job: from when to when it is expected to run, until when its machines are kept, and what it says in words.

    It may begin at `release` (None: from the first moment on) and must be done by `deadline`, if it has one.
    """

    name: str
    title: str
    href: str
    starts: datetime
    ends: datetime
    kept_until: datetime
    release: datetime | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What runs on one kind of machine in one place; `style` is the number of its colour and pattern, from 0."""

    name: str
    style: int
    bars: tuple[Bar, ...]


def gantt(title: str, lanes: Sequence[Lane], *, starts: datetime) -> Markup:
    """Lanes of bars over an axis of time (UTC) that begins at `starts`, drawn for wide places and phones.

    Raises `ValueError` if there is no bar.
    """
    bars = [bar for lane in lanes for bar in lane.bars]
    if not bars:
        raise ValueError("a chart of jobs needs at least one")
    last = max(bar.kept_until for bar in bars)
    due = max((bar.deadline for bar in bars if bar.deadline is not None), default=last)
    span = max(min(max(last, due) - starts, (last - starts) * _MOST_OF_THE_LAST_END), timedelta(minutes=10))
    height = HEAD + GROUP_HEIGHT * len(lanes) + ROW_HEIGHT * len(bars) + FOOT
    sizes = (
        Size(name="wide", width=1000.0, height=height, left=4.0, right=12.0),
        Size(name="narrow", width=340.0, height=height, left=4.0, right=12.0),
    )

    def draw(size: Size) -> ET.Element:
        scale = Scale(low=0.0, high=span / timedelta(hours=1), start=size.left, end=size.width - size.right)
        frame = _Frame(svg=canvas(size, title), size=size, scale=scale, starts=starts)
        frame.patterns()
        frame.axis(starts + span)
        top = HEAD
        for lane in lanes:
            frame.words(lane.name, top + 20, "lane")
            line(frame.svg, (size.left, size.width - size.right), (top + 25, top + 25), "grid")
            top += GROUP_HEIGHT
            for bar in lane.bars:
                frame.bar(bar, lane.style % len(PATTERNS), top)
                top += ROW_HEIGHT
        return frame.svg

    return both(draw, sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """One drawing in the making."""

    svg: ET.Element
    size: Size
    scale: Scale
    starts: datetime

    def x(self, moment: datetime) -> float:
        """The pixel of a moment, at the edge for one that lies beyond."""
        hours = (moment - self.starts) / timedelta(hours=1)
        return self.scale.at(min(self.scale.high, max(self.scale.low, hours)))

    def words(self, words: str, y: float, kind: str) -> None:
        """Words from the left edge on, cut where the drawing ends."""
        most = int((self.size.width - 8) / STRONG_LETTER_WIDTH)
        text(self.svg, self.size.left, y, words if len(words) <= most else words[: most - 1] + "…", kind=kind)

    def axis(self, last: datetime) -> None:
        """Marks of time below all lanes, and lines up from them."""
        group = ET.SubElement(self.svg, "g", {"aria-hidden": "true"})
        bottom = self.size.height - FOOT
        for moment in marks(self.starts, last, 4 if self.size.name == "narrow" else 9):
            at = self.x(moment)
            line(group, (at, at), (0.0, bottom), "grid")
            words = day_or_hour(moment, self.scale.high)
            room = len(words) * STRONG_LETTER_WIDTH / 2
            anchor = "start" if at < room else "end" if at > self.size.width - room else "middle"
            text(group, at, bottom + 18, words, anchor=anchor)
        line(group, (self.size.left, self.size.width - self.size.right), (bottom, bottom), "axis")

    def patterns(self) -> None:
        """What lies over bars, by provider, and over time that is only kept."""
        found = ET.SubElement(self.svg, "defs")
        drawn = {
            "slanted": ("M0 8L8 0", ""),
            "dotted": ("M3 3h2v2h-2z", "filled"),
            "crossed": ("M0 0L8 8M0 8L8 0", ""),
            "upright": ("M4 0V8", ""),
            "level": ("M0 4H8", ""),
        }
        for name, (path, kind) in drawn.items():
            given = {"id": self._id(name), "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
            pattern = ET.SubElement(found, "pattern", given)
            ET.SubElement(pattern, "path", {"class": f"over {kind}".strip(), "d": path})

    def bar(self, bar: Bar, style: int, top: float) -> None:
        """A job's name, its bar, the time kept beyond it, and its dates."""
        self.words(bar.name, top + 12, "strong")
        group = reachable(self.svg, bar.title, href=bar.href, kind=f"s{style + 1}")
        left, right, kept = self.x(bar.starts), self.x(bar.ends), self.x(bar.kept_until)
        at = {"y": f"{top + 18:g}", "height": f"{BAR_HEIGHT:g}"}
        if kept > right:
            ET.SubElement(group, "rect", {"class": "kept", "x": f"{right:g}", "width": f"{kept - right:g}"} | at)
        place = {"x": f"{left:g}", "width": f"{max(right - left, 3):g}", "rx": "2"} | at
        ET.SubElement(group, "rect", {"class": "bar"} | place)
        if PATTERNS[style] != "plain":
            ET.SubElement(group, "rect", {"fill": f"url(#{self._id(PATTERNS[style])})"} | place)
        low, high = top + 15, top + 18 + BAR_HEIGHT + 3
        if bar.release is not None and bar.release > self.starts:
            line(group, (self.x(bar.release), self.x(bar.release)), (low, high), "release")
        if bar.deadline is not None:
            due = self.x(bar.deadline)
            line(group, (due, due), (low, high), "due")
            beyond = bar.deadline > self.starts + timedelta(hours=self.scale.high)
            shape = f"M{due:g} {low:g}l8 5l-8 5z" if beyond else f"M{due:g} {low - 4:g}l4 4l-4 4l-4 -4z"
            ET.SubElement(group, "path", {"class": "due-head", "d": shape})

    def _id(self, name: str) -> str:
        return f"gantt-{self.size.name}-{name}"
