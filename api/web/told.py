"""What the command line says, section by section, for templates: the same words, not another set of them.

`api.render` makes three kinds of things below headings: facts, listings and bullets. Here each becomes a
`Block` that a template writes as a definition list, a table or a list.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One piece: `kind` is sentence, facts, listing or bullets. Rows are of text; a column is a name and whether it aligns right."""

    kind: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True, kw_only=True)
class Section:
    """What stands below one heading; the first section of an answer may have none."""

    title: str
    blocks: list[Block] = field(default_factory=list)


def sections(rendered: Group) -> list[Section]:
    """Every section of an answer, in order; a last faint line, which names ids, is a sentence like others."""
    found = [Section(title="")]
    for part in rendered.renderables:
        if _is_heading(part):
            found.append(Section(title=str(part).strip()))
        else:
            _add(found[-1].blocks, _block(part))
    return [each for each in found if each.blocks]


def titled(found: Iterable[Section], *beginnings: str) -> list[Section]:
    """The sections whose title begins with one of these."""
    return [each for each in found if each.title.startswith(beginnings)]


def _is_heading(part: RenderableType) -> bool:
    return isinstance(part, Text) and part.plain.startswith("\n") and part.style == "bold"


def _block(part: RenderableType) -> Block:
    if isinstance(part, Text):
        return Block(kind="sentence", rows=((part.plain.strip(),),))
    if not isinstance(part, Table):
        raise TypeError(f"{type(part).__name__} is nothing that a section of an answer is made of")
    rows = tuple(zip(*([_plain(cell) for cell in column.cells] for column in part.columns), strict=True))
    if part.box is not None:
        columns = tuple((_plain(column.header), column.justify == "right") for column in part.columns)
        return Block(kind="listing", rows=rows, columns=columns)
    if part.columns[0].width is not None:
        return Block(kind="bullets", rows=tuple((sentence,) for _, sentence in rows))
    return Block(kind="facts", rows=rows)


def _add(blocks: list[Block], block: Block) -> None:
    """Bullets come one by one and belong together; empty tables say nothing."""
    if block.kind == "bullets" and blocks and blocks[-1].kind == "bullets":
        blocks[-1] = Block(kind="bullets", rows=blocks[-1].rows + block.rows)
    elif block.rows:
        blocks.append(block)


def _plain(cell: RenderableType) -> str:
    return cell.plain.strip() if isinstance(cell, Text) else str(cell).strip()
