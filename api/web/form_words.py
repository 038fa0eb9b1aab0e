"""Replaces names of job fields by the form's labels: a user of the form never saw `budget_usd`."""

import re
from collections.abc import Iterable

from gpuplan.api.web.job_fields import FIELDS
from gpuplan.api.web.text_sections import Block, Section
from gpuplan.catalog.model.price_kinds import price_kinds

#: Labels by path in the job document and by field name, both of which occur in sentences and tables.
_LABELS = {name: job_field.label for job_field in FIELDS for name in (job_field.path[-1], ".".join(job_field.path))}
_KINDS = {kind.name: kind.name.replace("_", " ") for kind in price_kinds().values()}
#: First columns of tables whose rows are requirements; there a name is one also where it is a plain English word.
_OF_REQUIREMENTS = ("requirement", "relax")
#: Names that are not plain English words; `deadline` is also the form's word.
_ODD = [name for name in (*_LABELS, *_KINDS) if "_" in name or "." in name]
_NAME = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(map(re.escape, _ODD), key=len, reverse=True))})(?![\w.-]|_)")


def label_of(requirement: str) -> str:
    """The form's label of a requirement such as `budget_usd`; its name if the form has no such field."""
    return _LABELS.get(requirement, requirement)


def in_form_words(text: str) -> str:
    """A cell or sentence with the form's labels, quoted unless at the start."""

    def word(match: re.Match[str]) -> str:
        name = match[0]
        if name in _KINDS:
            return _KINDS[name]
        return _LABELS[name] if match.start() == 0 else f"“{_LABELS[name]}”"

    return _NAME.sub(word, text)


def sections_in_form_words(sections: Iterable[Section]) -> list[Section]:
    """Sections with the form's labels in every cell."""
    return [
        Section(title=section.title, key=section.key, blocks=[_block(block) for block in section.blocks])
        for section in sections
    ]


def _block(block: Block) -> Block:
    rows = tuple(tuple(in_form_words(cell) for cell in row) for row in block.rows)
    if block.columns and block.columns[0][0] in _OF_REQUIREMENTS:
        rows = tuple((label_of(first), *rest) for first, *rest in rows)
    return Block(kind=block.kind, rows=rows, columns=block.columns)
