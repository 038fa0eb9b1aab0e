"""Converts between form and job document, and assigns faults to fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import yaml

from gpuplan.api.presentation.text_formatting import COUNT_UNITS, count_in_short, number, usd
from gpuplan.api.schemas.job import canonical, parse_job
from gpuplan.api.schemas.job_fields import WrittenField
from gpuplan.api.web.document_lines import line_of
from gpuplan.api.web.job_fields import DIMENSIONS, FIELDS
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.catalog.runtime.errors import Fault, UnusableInput

Typed = Mapping[str, Sequence[str]]

#: Fields with counts.
_COUNTS = frozenset({"tokens", "samples", "global_batch_tokens", "global_batch_samples"})


#: Fields that the page of a plan shows elsewhere, and those whose defaults a reader should know.
_BESIDE = frozenset({"name", "start"})
_WORTH_A_LOOK = frozenset({"method", "precision", "confidence", "max_nodes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A form to show: values and faults by field, and the faults in order for the summary.

    `pasted` is the text in the field above the form. A fault without a field has an empty field name.
    """

    typed: Typed
    pasted: str = ""
    errors: Mapping[str, Sequence[str]]
    summary: tuple[tuple[str, str], ...] = ()

    @classmethod
    def blank(cls) -> "Shown":
        """An empty form."""
        return cls(typed={}, errors={})


def document_of(typed: Typed) -> JsonObject:
    """The job document of the fields, without empty ones.

    Raises `UnusableInput` for a model by name and by dimensions at once.
    """
    by_dimensions = [name for name in DIMENSIONS if name in typed]
    if by_dimensions and "model" in typed:
        message = "contradicts the dimensions of a transformer; give either a known model or its dimensions"
        raise UnusableInput.at("workload", "model", message=message)
    document: JsonObject = {"workload": {"kind": "transformer" if by_dimensions else "preset"}}
    for field in FIELDS:
        if field.name in typed:
            holder = document
            for part in field.path[:-1]:
                holder = holder.setdefault(part, {})
            holder[field.path[-1]] = field.value_of(typed[field.name])
    return document


def filled(document: JsonObject, *, now: datetime) -> Shown:
    """The form filled with a job: in its fields if they can express it, else as a pasted job file."""
    typed = _typed(document)
    try:
        whole = canonical(parse_job(document_of(typed), now=now)) == canonical(parse_job(document, now=now))
    except UnusableInput:
        whole = False
    return Shown(typed=typed, errors={}) if whole else Shown(typed={}, pasted=as_yaml(document), errors={})


def as_yaml(document: JsonObject) -> str:
    """A job as an editable YAML file."""
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text


def _typed(document: JsonObject) -> dict[str, list[str]]:
    typed: dict[str, list[str]] = {}
    for field in FIELDS:
        value: Any = document
        for part in field.path:
            value = value.get(part) if isinstance(value, dict) else None
        # Zeros are left out where they are the default: no experts, no data to transfer.
        if value in (None, []) or (not value and not field.default):
            continue
        if isinstance(value, list):
            texts = [str(item) for item in value]
            typed[field.name] = [", ".join(texts)] if field.kind == "listed" else texts
        else:
            typed[field.name] = [_written(field, value)]
    return typed


def _written(field: WrittenField, value: Any) -> str:
    """A value as a user would type it."""
    if isinstance(value, bool):
        return str(value).lower()
    if field.name in _COUNTS and isinstance(value, int | float):
        for size, unit in COUNT_UNITS:
            if value >= size and float(f"{value / size:.6g}") * size == value:
                return f"{value / size:.6g}{unit}"
    if field.name == "deadline" and isinstance(value, int | float):
        return f"{value / 24:g}d" if value % 24 == 0 else f"{repr(float(value)).removesuffix('.0')}h"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def with_faults(faults: Sequence[Fault], typed: Typed) -> Shown:
    """The submitted form with faults at their fields."""
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


def stated(document: JsonObject) -> tuple[tuple[str, str, bool], ...]:
    """What a job states by the form's labels, and whether it is a default; defaults that hardly matter are left out."""
    usual = {kind.name for kind in price_kinds().values() if kind.in_default}
    typed = _typed(document)
    rows = []
    if vendors := (document.get("constraints") or {}).get("vendors"):
        rows.append(("Vendors", ", ".join(vendors), False))
    for field in FIELDS:
        value: Any = document
        for part in field.path:
            value = value.get(part) if isinstance(value, dict) else None
        is_default = value == (list(field.default) if field.several else field.default)
        is_default |= field.name == "price_kinds" and set(value or ()) == usual
        if field.name not in typed or field.name in _BESIDE or (is_default and field.name not in _WORTH_A_LOOK):
            continue
        label = field.label.removeprefix("or ").removesuffix(" in US dollars")
        rows.append((label[:1].upper() + label[1:], _as_read(field, value, typed[field.name]), is_default))
    return tuple(rows)


def _as_read(field: WrittenField, value: Any, typed: Sequence[str]) -> str:
    """The value of a field as a reader meets it, with its unit."""
    if field.name in _COUNTS:
        return count_in_short(value)
    if field.name == "budget_usd":
        return usd(value)
    return f"{number(value)} GB" if field.name == "dataset_gb" else ", ".join(typed)


def with_understood(faults: Sequence[Fault], text: str, document: JsonObject) -> Shown:
    """The form filled with what a text states, with its faults at their fields; the text stays above it."""
    shown = with_faults(faults, _typed(document))
    return replace(shown, pasted=text)


def with_pasted_faults(faults: Sequence[Fault], pasted: str) -> Shown:
    """The submitted job file with faults by line and path, in order of the file."""
    lines = [line_of(pasted, fault.path) if fault.path and pasted else None for fault in faults]
    by_line = sorted(zip(lines, map(str, faults), strict=True), key=lambda numbered: numbered[0] or 0)
    messages = [message if line is None else f"Line {line}: {message}" for line, message in by_line]
    return Shown(
        typed={},
        pasted=pasted,
        errors={"document": messages},
        summary=tuple(("document", message) for message in messages),
    )


def field_of(fault: Fault) -> WrittenField | None:
    """The field of a fault: the one at the fault's path or above it."""
    path = tuple(str(part) for part in fault.path)
    return next((field for field in FIELDS if path[: len(field.path)] == field.path), None)
