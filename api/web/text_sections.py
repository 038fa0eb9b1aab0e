"""Converts typed sections of an answer for templates.

Every part becomes a `Block`, which a template renders as a paragraph, definition list, table or list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuplan.api.presentation import sections as presented


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block: `kind` is sentence, facts, listing or bullets. Rows are text; a column is (name, right-aligned)."""

    kind: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True, kw_only=True)
class Section:
    """A heading with its blocks; the first section of an answer may have no heading."""

    title: str
    key: str = ""
    blocks: list[Block] = field(default_factory=list)


def sections(sections: presented.Sections) -> list[Section]:
    """The non-empty sections of an answer, in order."""
    shown = [
        Section(title=section.title, key=section.key, blocks=[_block(part) for part in section.parts])
        for section in sections
    ]
    for section in shown:
        section.blocks = [block for block in section.blocks if block.rows]
    return [section for section in shown if section.blocks]


def keyed(sections: Iterable[Section], *keys: str) -> list[Section]:
    """The sections with these keys."""
    return [section for section in sections if section.key in keys]


def _block(part: presented.Block) -> Block:
    match part:
        case presented.Headline() | presented.Sentence():
            return Block(kind="sentence", rows=((part.text,),))
        case presented.Facts():
            return Block(kind="facts", rows=part.rows)
        case presented.Notes():
            return Block(kind="bullets", rows=tuple((sentence,) for sentence in part.sentences))
        case presented.Chart():
            return Block(kind="bullets", rows=tuple((f"{bar.label}: {bar.text}",) for bar in part.bars))
        case presented.Table():
            columns = tuple((column.title, column.is_figure) for column in part.columns)
            return Block(kind="listing", rows=part.rows, columns=columns)
