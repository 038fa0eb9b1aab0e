"""Builds blocks from values of any kind, with texts cleaned to single lines; and lines of long listings."""

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.api.presentation.sections import Bar, Chart, Column, Facts, Heading, Headline, Notes, Sentence, Table, Tone
from gpuplan.api.presentation.text_formatting import plain

_HEADLINES = (Tone.GOOD, Tone.BAD, Tone.STRONG)


def cell(value: object, tone: Tone = Tone.PLAIN) -> Headline | Sentence:
    """A value as a sentence; with a good, bad or strong tone, a headline."""
    return Headline(text=plain(value), tone=tone) if tone in _HEADLINES else Sentence(text=plain(value), tone=tone)


def heading(text: str, key: str = "") -> Heading:
    """Starts a section; `key` identifies it for interfaces that place sections."""
    return Heading(title=plain(text), key=key)


def footer(text: str) -> Sentence:
    """A last line."""
    return Sentence(text=plain(text), tone=Tone.MINOR)


def facts(rows: Iterable[tuple[str, object]]) -> Facts:
    """Names and values, without the rows whose value is None."""
    return Facts(rows=tuple((name, plain(value)) for name, value in rows if value is not None))


def listing(
    titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = (), is_whole: bool = False
) -> Table:
    """A table; columns numbered in `right` hold figures."""
    columns = tuple(Column(title=title, is_figure=number in right) for number, title in enumerate(titles))
    return Table(columns=columns, rows=tuple(tuple(map(plain, row)) for row in rows), is_whole=is_whole)


def bullets(sentences: Iterable[object], tone: Tone = Tone.PLAIN) -> list[Notes]:
    """Sentences as a list; empty if there are none."""
    texts = tuple(map(plain, sentences))
    return [Notes(sentences=texts, tone=tone)] if texts else []


def sentences(
    warnings: Iterable[str], assumptions: Iterable[str] = (), doubts: Iterable[str] = ()
) -> list[Notes | Heading]:
    """Doubts, warnings and assumptions as sections, where there are any."""
    parts: list[Notes | Heading] = []
    for title, key, texts, tone in (
        ("Largest doubts about the hours", "assumptions", doubts, Tone.PLAIN),
        ("Warnings", "warnings", warnings, Tone.WARNING),
        ("Assumptions", "assumptions", assumptions, Tone.PLAIN),
    ):
        if notes := bullets(texts, tone):
            parts += [heading(title, key), *notes]
    return parts


def chart(bars: Iterable[tuple[str, float, str]]) -> Chart:
    """A chart from (label, value, text) triples."""
    return Chart(bars=tuple(Bar(label=label, value=value, text=text) for label, value, text in bars))


def aligned(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Lines of a long listing, with columns as wide as their widest cell. Much faster than rich, which takes 1 ms a row.

    Lines may be wider than the terminal; use `listing` for tables that must fit.
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
