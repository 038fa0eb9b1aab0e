"""Gantt chart: one row per kind of machine and place with its jobs as bars, with reserved time and dates.

On wide pages the names of the rows stand in a gutter, the time axis above and the accelerators in use below; on phones each
job has a line of its own under its machines.

A bar links to the job's row in the table. Providers differ by label and pattern, not by colour alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from gpuplan.api.presentation.charts.drawing import STRONG_LETTER_WIDTH, Size, canvas, cut, line, reachable, text
from gpuplan.api.presentation.charts.scale import Scale
from gpuplan.api.presentation.charts.spans import day_or_hour, marks

ROW_HEIGHT, GROUP_HEIGHT, BAR_HEIGHT, HEAD, FOOT = 42.0, 30.0, 16.0, 4.0, 30.0
#: One pattern per style: none, then lines and dots in the background colour.
PATTERNS = ("plain", "slanted", "dotted", "crossed", "upright", "level")
#: A deadline later than this multiple of the last end is marked at the edge, to leave room for the bars.
_MOST_OF_THE_LAST_END = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One job: expected start and end, end of its reservation, and its text.

    It takes so many `accelerators`, may start from `release` (None: at once) and must end by `deadline`, if any.
    """

    name: str
    title: str
    href: str
    starts: datetime
    ends: datetime
    reserved_until: datetime
    accelerators: float = 1.0
    release: datetime | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The jobs on one kind of machine in one place; `style` numbers its colour and pattern from 0."""

    name: str
    style: int
    bars: tuple[Bar, ...]


def time_shown(lanes: Sequence[Lane], starts: datetime) -> timedelta:
    """The time from `starts` that a chart of these lanes covers. Raises `ValueError` without any bar."""
    bars = [bar for lane in lanes for bar in lane.bars]
    if not bars:
        raise ValueError("a chart of jobs needs at least one job")
    last = max(bar.reserved_until for bar in bars)
    due = max((bar.deadline for bar in bars if bar.deadline is not None), default=last)
    return max(min(max(last, due) - starts, (last - starts) * _MOST_OF_THE_LAST_END), timedelta(minutes=10))


def narrow_gantt(title: str, lanes: Sequence[Lane], *, starts: datetime, span: timedelta) -> ET.Element:
    """The drawing for phones of `span` from `starts`: each job on a line of its own."""
    rows = sum(len(lane.bars) for lane in lanes)
    height = HEAD + GROUP_HEIGHT * len(lanes) + ROW_HEIGHT * rows + FOOT
    size = Size(name="narrow", width=340.0, height=height, left=4.0, right=12.0)
    scale = Scale(low=0.0, high=span / timedelta(hours=1), start=size.left, end=size.width - size.right)
    frame = Frame(svg=canvas(size, title), size=size, scale=scale, starts=starts)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Draws one size of the chart."""

    svg: ET.Element
    size: Size
    scale: Scale
    starts: datetime

    def x(self, moment: datetime) -> float:
        """The x of a moment in pixels, clamped to the edge."""
        hours = (moment - self.starts) / timedelta(hours=1)
        return self.scale.at(min(self.scale.high, max(self.scale.low, hours)))

    def words(self, words: str, y: float, kind: str) -> None:
        """Text from the left edge, cut at the width of the drawing."""
        most = int((self.size.width - 8) / STRONG_LETTER_WIDTH)
        text(self.svg, self.size.left, y, cut(words, most), kind=kind)

    def axis(self, last: datetime) -> None:
        """Time labels below the lanes, with grid lines."""
        group = ET.SubElement(self.svg, "g", {"aria-hidden": "true"})
        bottom = self.size.height - FOOT
        for moment in marks(self.starts, last, 4):
            at = self.x(moment)
            line(group, (at, at), (0.0, bottom), "grid")
            words = day_or_hour(moment, self.scale.high)
            room = len(words) * STRONG_LETTER_WIDTH / 2
            anchor = "start" if at < room else "end" if at > self.size.width - room else "middle"
            text(group, at, bottom + 18, words, anchor=anchor)
        line(group, (self.size.left, self.size.width - self.size.right), (bottom, bottom), "axis")

    def patterns(self) -> None:
        """Fill patterns of providers and of reserved time."""
        definitions = ET.SubElement(self.svg, "defs")
        drawn = {
            "slanted": ("M0 8L8 0", ""),
            "dotted": ("M3 3h2v2h-2z", "filled"),
            "crossed": ("M0 0L8 8M0 8L8 0", ""),
            "upright": ("M4 0V8", ""),
            "level": ("M0 4H8", ""),
        }
        for name, (path, kind) in drawn.items():
            given = {"id": self._id(name), "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
            pattern = ET.SubElement(definitions, "pattern", given)
            ET.SubElement(pattern, "path", {"class": f"over {kind}".strip(), "d": path})

    def bar(self, bar: Bar, style: int, top: float) -> None:
        """A job's name, bar, reserved time and dates."""
        self.words(bar.name, top + 12, "strong")
        self.marks(bar, style, top)

    def marks(self, bar: Bar, style: int, top: float) -> None:
        """A job's bar, reserved time and dates."""
        group = reachable(self.svg, bar.title, href=bar.href, kind=f"s{style + 1}")
        left, right, reserved = self.x(bar.starts), self.x(bar.ends), self.x(bar.reserved_until)
        at = {"y": f"{top + 18:g}", "height": f"{BAR_HEIGHT:g}"}
        if reserved > right:
            ET.SubElement(
                group, "rect", {"class": "reserved", "x": f"{right:g}", "width": f"{reserved - right:g}"} | at
            )
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
