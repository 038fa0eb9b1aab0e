"""Between the form and the job document: what was typed to a document, a document to what would be typed, faults to fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml

from api.documents.job import canonical, parse_job
from api.web.document_lines import line_of
from api.web.job_fields import DIMENSIONS, FIELDS, Field
from catalog.errors import Fault, UnusableInput

Document = dict[str, Any]
Typed = Mapping[str, Sequence[str]]

#: Fields that take a count, which reads better as 300B than as 300000000000.
_COUNTS = frozenset({"tokens", "samples", "global_batch_tokens", "global_batch_samples"})
_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A form as it is shown: what stands in each field, what is wrong by field, and all of that in order for the summary.

    `pasted` is the job file in the text field below the form. A fault without a field has an empty field name.
    """

    typed: Typed
    pasted: str = ""
    errors: Mapping[str, Sequence[str]]
    summary: tuple[tuple[str, str], ...] = ()

    @classmethod
    def blank(cls) -> "Shown":
        """Nothing typed, nothing wrong."""
        return cls(typed={}, errors={})


def document_of(typed: Typed) -> Document:
    """The job document that the fields describe; what is empty is left out.

    Raises `UnusableInput` for a model by name and by dimensions at once.
    """
    by_dimensions = [name for name in DIMENSIONS if name in typed]
    if by_dimensions and "model" in typed:
        message = "is given beside dimensions of a transformer; give either a known model or its dimensions"
        raise UnusableInput.at("workload", "model", message=message)
    document: Document = {"workload": {"kind": "transformer" if by_dimensions else "preset"}}
    for field in FIELDS:
        if field.name in typed:
            holder = document
            for part in field.path[:-1]:
                holder = holder.setdefault(part, {})
            holder[field.path[-1]] = _value(field, typed[field.name])
    return document


def _value(field: Field, given: Sequence[str]) -> str | list[str]:
    if field.kind == "checks":
        return list(given)
    if field.kind == "listed":
        return [name.strip() for text in given for name in text.split(",") if name.strip()]
    return given[0]


def filled(document: Document, *, now: datetime) -> Shown:
    """The form with a job in it: in its fields if they can say all of it, else as a job file to paste."""
    typed = _typed(document)
    try:
        whole = canonical(parse_job(document_of(typed), now=now)) == canonical(parse_job(document, now=now))
    except UnusableInput:
        whole = False
    return Shown(typed=typed, errors={}) if whole else Shown(typed={}, pasted=as_yaml(document), errors={})


def as_yaml(document: Document) -> str:
    """A job as a file that people edit."""
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text


def _typed(document: Document) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for field in FIELDS:
        value: Any = document
        for part in field.path:
            value = value.get(part) if isinstance(value, dict) else None
        # What is 0 is left out: no experts, no data to bring.
        if value in (None, [], 0):
            continue
        if isinstance(value, list):
            texts = [str(each) for each in value]
            found[field.name] = [", ".join(texts)] if field.kind == "listed" else texts
        else:
            found[field.name] = [_written(field, value)]
    return found


def _written(field: Field, value: Any) -> str:
    """A figure as people would type it."""
    if field.name in _COUNTS and isinstance(value, int | float):
        for size, unit in _UNITS:
            if value >= size and float(f"{value / size:.6g}") * size == value:
                return f"{value / size:.6g}{unit}"
    if field.name == "deadline" and isinstance(value, int | float):
        return f"{value / 24:g}d" if value % 24 == 0 else f"{repr(float(value)).removesuffix('.0')}h"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def with_faults(faults: Sequence[Fault], typed: Typed) -> Shown:
    """The form as it was sent, each fault at its field."""
    errors: dict[str, list[str]] = {}
    summary = []
    for fault in faults:
        field = field_of(fault)
        if field is None:
            summary.append(("", str(fault)))
        else:
            errors.setdefault(field.name, []).append(fault.message)
            summary.append((field.name, f"{field.label}: {fault.message}"))
    return Shown(typed=typed, errors=errors, summary=tuple(summary))


def with_pasted_faults(faults: Sequence[Fault], pasted: str) -> Shown:
    """The pasted job file as it was sent, every fault named by its line and its place in the file, from the top down."""
    lines = [line_of(pasted, fault.path) if fault.path and pasted else None for fault in faults]
    found = sorted(zip(lines, map(str, faults), strict=True), key=lambda each: each[0] or 0)
    said = [told if line is None else f"Line {line}: {told}" for line, told in found]
    return Shown(typed={}, pasted=pasted, errors={"document": said}, summary=tuple(("document", each) for each in said))


def field_of(fault: Fault) -> Field | None:
    """The field that a fault is about: the one whose place is where the fault points, or above it."""
    path = tuple(str(part) for part in fault.path)
    return next((field for field in FIELDS if path[: len(field.path)] == field.path), None)
