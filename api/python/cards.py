"""Typed sections as one card of HTML for notebooks: no script, no address, light and dark."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from gpuplan.api.presentation.charts.drawing import Figure
from gpuplan.api.presentation.sections import (
    Block,
    Chart,
    Facts,
    Headline,
    Notes,
    Section,
    Sections,
    Sentence,
    Table,
)
from gpuplan.api.python.texts import whole_text

_EMPTY = Markup("")
#: Width of the longest bar of a chart, in pixels.
_LONGEST_BAR = 160.0


def card(sections: Sequence[Section], *, figure: Figure | None = None, footer: str = "", is_wide: bool = False) -> str:
    """The card of an answer: its sections, a chart after the first, and a closing line; `is_wide` for long tables."""
    drawn = [_section(section) for section in sections]
    if figure is not None:
        drawn.insert(1, _figure(figure))
    if footer:
        drawn.append(Markup('<p class="minor">{}</p>').format(footer))
    body = _EMPTY.join(drawn)
    kind = "gpuplan-card wide-card" if is_wide else "gpuplan-card"
    return str(Markup('<style>{}</style><div class="{}">{}</div>').format(_style(), kind, body))


class AnswerInSections(ABC):
    """An answer that a notebook shows as a card of its sections, and `print` as their text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return whole_text(self._sections())

    def _repr_html_(self) -> str:
        """The card that Jupyter shows."""
        return card(self._sections())

    @abstractmethod
    def _sections(self) -> Sections:
        """The sections of the answer, in order."""


@cache
def _style() -> Markup:
    """The style sheet of this package: nobody else's text is in it."""
    return Markup(Path(__file__).with_name("card.css").read_text(encoding="utf-8"))  # noqa: S704


def _section(section: Section) -> Markup:
    title = Markup('<p class="title">{}</p>').format(section.title) if section.title else _EMPTY
    return title + _EMPTY.join(map(_block, section.parts))


def _block(part: Block) -> Markup:
    match part:
        case Headline():
            return Markup('<p class="headline {}">{}</p>').format(part.tone.value, part.text)
        case Sentence():
            return Markup('<p class="{}">{}</p>').format(part.tone.value, part.text)
        case Facts():
            rows = (Markup('<tr><th scope="row">{}</th><td>{}</td></tr>').format(*row) for row in part.rows)
            return Markup("<table><tbody>{}</tbody></table>").format(_EMPTY.join(rows))
        case Table():
            return _table(part)
        case Notes():
            items = (Markup('<li class="{}">{}</li>').format(part.tone.value, text) for text in part.sentences)
            return Markup("<ul>{}</ul>").format(_EMPTY.join(items))
        case Chart():
            return _bars(part)


def _table(part: Table) -> Markup:
    """A head only where a column has a title."""
    kinds = ["figure" if column.is_figure else "" for column in part.columns]
    head = _EMPTY
    if any(column.title for column in part.columns):
        titles = (
            Markup('<th scope="col" class="{}">{}</th>').format(kind, column.title)
            for kind, column in zip(kinds, part.columns, strict=True)
        )
        head = Markup("<thead><tr>{}</tr></thead>").format(_EMPTY.join(titles))
    rows = (
        Markup("<tr>{}</tr>").format(
            _EMPTY.join(
                Markup('<td class="{}">{}</td>').format(kind, cell) for kind, cell in zip(kinds, row, strict=True)
            )
        )
        for row in part.rows
    )
    return Markup('<div class="scroll"><table>{}<tbody>{}</tbody></table></div>').format(head, _EMPTY.join(rows))


def _bars(part: Chart) -> Markup:
    most = max((bar.value for bar in part.bars), default=0.0)
    if most <= 0:
        return _EMPTY
    rows = (
        Markup(
            '<tr><th scope="row">{}</th><td><span class="bar-mark" style="width:{:.1f}px"></span>{}</td></tr>'
        ).format(bar.label, _LONGEST_BAR * bar.value / most, bar.text)
        for bar in part.bars
    )
    return Markup("<table><tbody>{}</tbody></table>").format(_EMPTY.join(rows))


def _figure(figure: Figure) -> Markup:
    legend = _EMPTY.join(Markup('<li class="{}">{}</li>').format(entry.style, entry.name) for entry in figure.legend)
    return Markup('<figure><figcaption>{}</figcaption><ul class="legend">{}</ul>{}</figure>').format(
        figure.title, legend, figure.drawing
    )
