"""The parts of an answer that are taken on trust because they are prose, as the types of the answer declare."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from gpuplan.planner.model.shared import wire_name
from gpuplan.planner.verify.field_coverage import Path


def prose(kind: type, body: Any, path: Path = ()) -> Iterator[Path]:
    """Paths to the prose in a JSON object of the answer `kind`, without optional prose that it lacks."""
    for name, part, is_prose, may_be_absent in _parts(kind):
        if is_prose:
            if not may_be_absent or name in body:
                yield (*path, name)
        elif part is not None and isinstance(inner := body.get(name), dict):
            yield from prose(part, inner, (*path, name))
        elif part is not None and isinstance(inner, list):
            for number, entry in enumerate(inner):
                if isinstance(entry, dict):
                    yield from prose(part, entry, (*path, name, number))


@cache
def _parts(kind: type) -> tuple[tuple[str, type | None, bool, bool], ...]:
    """(key, class of the value or of its entries, whether it is prose, whether it may be absent) of each field with prose."""
    hints = get_type_hints(kind)
    rows = (
        (
            wire_name(field.name),
            _dataclass_in(hints[field.name]),
            bool(field.metadata.get("prose")),
            bool(field.metadata.get("absent")),
        )
        for field in fields(kind)
    )
    return tuple(row for row in rows if row[2] or (row[1] is not None and _parts(row[1])))


def _dataclass_in(hint: Any) -> type | None:
    """The dataclass of an optional value or of the entries of a list."""
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    if get_origin(hint) in (Union, UnionType, tuple):
        return next((inner for part in get_args(hint) if (inner := _dataclass_in(part))), None)
    return None
