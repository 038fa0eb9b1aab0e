"""Names of a job's fields in the words of the form: who filled in "Budget in US dollars" never saw `budget_usd`."""

import re
from collections.abc import Iterable

from api.web.job_fields import FIELDS
from api.web.told import Block, Section
from catalog.price_kinds import price_kinds

#: Fields by their place in the job document and by their name alone, as sentences and tables have them.
_LABELS = {name: each.label for each in FIELDS for name in (each.path[-1], ".".join(each.path))}
_KINDS = {kind.name: kind.name.replace("_", " ") for kind in price_kinds().values()}
#: Only what is no English word by itself: a deadline is called that in the form as well.
_ODD = [name for name in (*_LABELS, *_KINDS) if "_" in name or "." in name]
_NAME = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(map(re.escape, _ODD), key=len, reverse=True))})(?![\w.-]|_)")


def label_of(requirement: str) -> str:
    """What the form calls a requirement such as `budget_usd`; one that it has no field for goes by its own name."""
    return _LABELS.get(requirement, requirement)


def in_form_words(text: str) -> str:
    """A cell or a sentence with the form's labels: in quotes, unless it stands at the beginning."""

    def word(found: re.Match[str]) -> str:
        name = found[0]
        if name in _KINDS:
            return _KINDS[name]
        return _LABELS[name] if found.start() == 0 else f"“{_LABELS[name]}”"

    return _NAME.sub(word, text)


def sections_in_form_words(found: Iterable[Section]) -> list[Section]:
    """Sections whose every cell is in the words of the form."""
    return [Section(title=each.title, blocks=[_block(block) for block in each.blocks]) for each in found]


def _block(block: Block) -> Block:
    rows = tuple(tuple(in_form_words(cell) for cell in row) for row in block.rows)
    return Block(kind=block.kind, rows=rows, columns=block.columns)
