"""Tables that stay readable on any width, with cells that can only be text."""

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from api.render.text import plain


def cell(value: object, style: str = "") -> Text:
    """A value as literal text: what looks like markup or an escape sequence stays what it looks like."""
    return Text(plain(value), style=style)


def heading(text: str) -> Text:
    """A section's heading, with an empty line before it."""
    return Text(f"\n{plain(text)}", style="bold")


def footer(text: str) -> Text:
    """A last line, faint, with an empty line before it."""
    return Text(f"\n{plain(text)}", style="dim")


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Two columns: what, and its value. Rows whose value is None are left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(Text(f"  {name}"), cell(value))
    return table


def listing(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()) -> Table:
    """A table with a line under its titles; columns numbered in `right` are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for number, title in enumerate(titles):
        figures = number in right
        table.add_column(title, justify="right" if figures else "left", no_wrap=figures, overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    return table


def bullets(sentences: Iterable[object], style: str = "") -> list[Table]:
    """Sentences as a list, each wrapped under itself."""
    found = []
    for sentence in sentences:
        grid = Table.grid()
        grid.add_column(width=4)
        grid.add_column(overflow="fold")
        grid.add_row(Text("  - "), cell(sentence, style))
        found.append(grid)
    return found


def aligned(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Lines of a long listing, columns as wide as their widest cell: rich takes a millisecond per row, this none.

    Lines are as long as they need to be; `listing` is for tables that have to fit the terminal.
    """
    cells = [[plain(value) for value in row] for row in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        parts = (
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(parts).rstrip()
