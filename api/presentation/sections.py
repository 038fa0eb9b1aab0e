"""Typed sections of an answer: headlines, facts, tables, charts and notes.

Texts are single lines without control characters. Interfaces decide how to draw them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class Tone(Enum):
    """The emphasis of a text: good, bad, strong, warning, minor or plain."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    STRONG = "strong"
    WARNING = "warning"
    MINOR = "minor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer in one sentence."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence or figure; one with a minor tone ends an answer."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and their values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; figures are right-aligned."""

    title: str
    is_figure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under columns, one cell per column. Without titles no header is drawn.

    `is_whole`: rows become sentences where the table does not fit, because a truncated figure would be wrong.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One value of a chart (at least 0), with its label and text."""

    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Values to compare, in axis order."""

    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """A list of sentences."""

    sentences: tuple[str, ...]
    tone: Tone = Tone.PLAIN


Block = Headline | Sentence | Facts | Table | Chart | Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Starts a section in a flat list of blocks. `key` identifies it for interfaces that place sections."""

    title: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Parts under one title, which may be empty. `key` identifies the section for interfaces that place sections."""

    key: str
    title: str
    parts: tuple[Block, ...]


Sections = tuple[Section, ...]


def sections_of(*blocks: Block | Heading) -> Sections:
    """Groups blocks by the headings between them; blocks before the first heading get no title."""
    gathered: list[tuple[Heading, list[Block]]] = [(Heading(title=""), [])]
    for block in blocks:
        if isinstance(block, Heading):
            gathered.append((block, []))
        else:
            gathered[-1][1].append(block)
    return tuple(
        Section(key=heading.key, title=heading.title, parts=tuple(parts))
        for heading, parts in gathered
        if parts or heading.title
    )


def section(key: str, title: str, *parts: Block | None) -> Section:
    """A section of the parts that are not None."""
    return Section(key=key, title=title, parts=tuple(part for part in parts if part is not None))


def facts(*rows: tuple[str, str | None]) -> Facts:
    """Facts without the rows whose value is None."""
    return Facts(rows=tuple((name, value) for name, value in rows if value is not None))


def notes(sentences: Iterable[str], tone: Tone = Tone.PLAIN) -> Notes | None:
    """Sentences as a list; None if there are none."""
    texts = tuple(sentences)
    return Notes(sentences=texts, tone=tone) if texts else None


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, figures: Sequence[int] = ()) -> Table | None:
    """A table whose columns numbered in `figures` hold figures; None without rows."""
    cells = tuple(tuple(row) for row in rows)
    columns = tuple(Column(title=title, is_figure=number in figures) for number, title in enumerate(titles))
    return Table(columns=columns, rows=cells) if cells else None
