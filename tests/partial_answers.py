"""Typed answers out of the parts that a test is about; everything else is empty, zero or absent."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeAliasType, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import TypeAdapter

from gpuplan.planner.model.shared import wire_name

_NEUTRAL: dict[object, object] = {
    str: "",
    int: 0,
    float: 0.0,
    bool: True,
    Decimal: "0.00",
    datetime: "2026-11-21T08:00:00Z",
}


def answer_of[Answer](kind: type[Answer], part: dict[str, Any] | None = None) -> Answer:
    """An answer of this type with these parts, as JSON has them."""
    answer: Answer = _adapter(kind).validate_python(completed(kind, part or {}))
    return answer


#: What reads answers of a type: pydantic takes a tenth of a second to make one.
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


#: Which types the fields of a class have: Python finds them out anew each time.
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def completed(kind: Any, given: Any) -> Any:
    """`given`, JSON, with what its type lacks."""
    if isinstance(kind, TypeAliasType):
        return completed(kind.__value__, given)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if given is None or type(given) in (str, int, float, bool):
            return given
        return completed(next(arg for arg in args if arg is not type(None)), given)
    if origin is tuple:
        return [completed(args[0], item) for item in given]
    if is_dataclass(kind) and isinstance(given, dict):
        hints = _hints(kind)
        known = {wire_name(field.name): field for field in fields(kind)}
        whole = {
            key: _neutral(hints[field.name])
            for key, field in known.items()
            if field.default is MISSING and key not in given
        }
        return whole | {
            key: completed(hints[known[key].name], value) if key in known else value for key, value in given.items()
        }
    if is_typeddict(kind) and isinstance(given, dict):
        return {key: _neutral(hint) for key, hint in _hints(kind).items()} | given
    return given


def _neutral(kind: Any) -> Any:
    if isinstance(kind, TypeAliasType):
        return _neutral(kind.__value__)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if type(None) in args else _neutral(args[0])
    if origin is Literal:
        return args[0]
    if origin is tuple:
        return []
    if is_dataclass(kind) or is_typeddict(kind):
        return completed(kind, {})
    return {} if origin is dict else _NEUTRAL.get(kind, {})
