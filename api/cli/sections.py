"""Draws typed sections on a terminal, with rich."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from gpuplan.api.cli.standard_output import console
from gpuplan.api.presentation.sections import (
    Block,
    Chart,
    Facts,
    Headline,
    Notes,
    Section,
    Sentence,
    Table,
    Tone,
    notes,
)

#: Width of a short answer in columns, on any terminal.
SHORT_WIDTH = 80
#: Most lines of a short answer: it fits a standard terminal.
SHORT_LINES = 25
_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "bold green",
    Tone.BAD: "bold red",
    Tone.STRONG: "bold",
    Tone.WARNING: "yellow",
    Tone.MINOR: "dim",
}
_BAR_COLUMNS = 40
_ANY_WIDTH = 1_000
#: The space between a number and its unit, where a line is never folded.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[mk]?s|min|[hdy]|[kMGTP]i?B|k?W|kWh|k?g)(?![\w]))")
#: Takes the place of that space while lines are folded: rich folds at every blank, a no-break space too.
_UNFOLDED = "\ue000"


def print_sections(sections: Sequence[Section], *, soft_wrap: bool = False, on: Console | None = None) -> None:
    """Print a full answer as wide as the terminal, with an empty line before every heading."""
    shown = console() if on is None else on
    for number, section in enumerate(sections):
        if number and section.title:
            shown.print()
        for part in draw(section):
            shown.print(part, soft_wrap=soft_wrap)


def print_short(sections: Sequence[Section], rest: str, *, on: Console | None = None) -> None:
    """Print a short answer of at most 25 lines of 80 columns; `rest` names the answer and how to see all of it.

    A longer answer loses its empty lines first, then notes and rows, from the last section upwards.
    """
    shown = console() if on is None else on
    shown.width = min(shown.width, SHORT_WIDTH)
    drawn, left = _spaced(sections, rest), tuple(sections)
    while _lines(shown, drawn) > SHORT_LINES:
        drawn, shorter = _close(left, rest), _shorter(left)
        if shorter == left:
            break
        left = shorter
    for renderable in drawn:
        shown.print(renderable)


def _lines(shown: Console, drawn: Sequence[RenderableType]) -> int:
    return sum(len(shown.render_lines(renderable_type, pad=False)) for renderable_type in drawn)


def _spaced(sections: Sequence[Section], rest: str) -> list[RenderableType]:
    """Sections with an empty line between them, and the last line."""
    drawn = [part for section in sections for part in (*draw(section), Text(""))]
    return [*drawn, _last(rest)]


def _close(sections: Sequence[Section], rest: str) -> list[RenderableType]:
    return [*(part for section in sections for part in draw(section)), _last(rest)]


def _last(rest: str) -> RenderableType:
    return _Prose(rest, Tone.MINOR)


def _shorter(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """The sections without the last note or row of the last section that has more than one."""
    for at in range(len(sections) - 1, 0, -1):
        part = sections[at].parts[0]
        less: Block | None
        if isinstance(part, Notes) and len(part.sentences) > 1:
            less = notes(part.sentences[:-1], part.tone)
        elif isinstance(part, Table) and len(part.rows) > 1:
            less = Table(columns=part.columns, rows=part.rows[:-1])
        else:
            continue
        changed = Section(key=sections[at].key, title=sections[at].title, parts=(less,) if less else ())
        return (*sections[:at], changed, *sections[at + 1 :])
    return sections


def draw(section: Section) -> list[RenderableType]:
    """The title and the parts of a section."""
    title = [_Prose(section.title, Tone.STRONG)] if section.title else []
    return [*title, *(renderable for part in section.parts for renderable in _block(part))]


def _block(part: Block) -> Iterable[RenderableType]:
    match part:
        case Headline():
            return [_Prose(part.text, part.tone)]
        case Sentence():
            # A closing line stands apart.
            apart = "\n" if part.tone is Tone.MINOR else ""
            return [_Prose(apart + part.text, part.tone)]
        case Facts():
            return [_facts(part)]
        case Table():
            return [_Whole(part)] if part.is_whole else [_table(part)]
        case Notes():
            return [_note(sentence, part.tone) for sentence in part.sentences]
        case Chart():
            return _bars(part)


def _facts(part: Facts) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in part.rows:
        grid.add_row(Text(f"  {name}"), _Prose(value))
    return grid


class _Prose:
    """Text whose lines are folded between words, but never between a number and its unit."""

    def __init__(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self._text = Text(text, style=_STYLES[tone])

    def __rich_measure__(self, shown: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(shown, options, self._text)

    def __rich_console__(self, shown: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        joined = self._text.copy()
        joined.plain = _BEFORE_UNIT.sub(_UNFOLDED, joined.plain)
        for line in joined.wrap(shown, options.max_width, overflow=options.overflow, no_wrap=options.no_wrap):
            line.plain = line.plain.replace(_UNFOLDED, " ")
            yield line


def _table(part: Table) -> Grid:
    """With titles: a header and a rule. Without titles: indented rows, further apart."""
    titled = any(column.title for column in part.columns)
    grid = Grid(
        box=box.SIMPLE_HEAD if titled else None,
        pad_edge=False,
        show_edge=False,
        show_header=titled,
        padding=(0, 1 if titled else 2, 0, 0),
    )
    for column in part.columns:
        justify = "right" if column.is_figure else "left"
        grid.add_column(column.title, justify=justify, no_wrap=column.is_figure, overflow="fold")  # type: ignore[arg-type]
    for row in part.rows:
        first = row[0] if titled else f"  {row[0]}"
        grid.add_row(_Prose(first), *map(_Prose, row[1:]))
    return grid


class _Whole:
    """A table, or one sentence per row where it does not fit: a truncated figure would be wrong."""

    def __init__(self, part: Table) -> None:
        self._part = part

    def __rich_console__(self, shown: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        grid = _table(self._part)
        if shown.measure(grid, options=options.update(max_width=_ANY_WIDTH)).maximum <= options.max_width:
            yield grid
            return
        titles = [column.title for column in self._part.columns]
        for name, what, *rest in self._part.rows:
            figures = ", ".join(f"{title} {value}" for title, value in zip(titles[2:], rest, strict=True))
            yield _note(f"{name}: {what}; {figures}", Tone.PLAIN)


def _note(sentence: str, tone: Tone) -> Grid:
    grid = Grid.grid()
    grid.add_column(width=4)
    grid.add_column(overflow="fold")
    grid.add_row(Text("  - "), _Prose(sentence, tone))
    return grid


def _bars(part: Chart) -> list[RenderableType]:
    most = max((bar.value for bar in part.bars), default=0.0)
    if most <= 0:
        return []
    width = max(len(bar.label) for bar in part.bars)
    lines = [
        Text(f"  {bar.label:>{width}} {'#' * max(1, round(_BAR_COLUMNS * bar.value / most))} {bar.text}")
        for bar in part.bars
    ]
    return [Text(""), *lines]
