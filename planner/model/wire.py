"""Conversion of a typed answer to its JSON object: keys in the order of the fields, money and times as text.

An answer is declared once, as frozen dataclasses. Their fields, in order, are the keys of the JSON object; the text below a
field describes it. OpenAPI (`api/http/answer_schemas.py`) and the types of the Python client (`tools/generate_client.py`)
are generated from these declarations.

* `Usd` is an amount of dollars, `Moment` a time, `JsonObject` JSON that is repeated as it was read.
* A key that an answer may lack is a field with the default None and the metadata `MAY_BE_ABSENT`; no other field has a
  default. So `X | None` without a default is a key that is always written and may be null.
* A name that Python reserves ends with `_` (`from_` is the key `from`); the class has `RENAMED` as pydantic configuration.
* A tuple is a JSON array, a `Literal` a choice of words, a `TypedDict` a part that is read as a mapping of names.

A release that adds a key to an answer declares it `MAY_BE_ABSENT`, so that answers saved by older ones are still read.
"""

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from gpuplan.planner.model.shared import wire_name

#: Types of values that JSON has as they are; listings have a thousand rows of them.
_AS_IS = frozenset({str, int, float, bool, type(None)})


def wire(value: Any) -> Any:
    """`value` as JSON has it. Fields that may be absent are left out where they are None."""
    if type(value) in _AS_IS:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: part if type(part) in _AS_IS else wire(part)
            for name, attribute, may_be_absent in _fields(type(value))
            if (part := getattr(value, attribute)) is not None or not may_be_absent
        }
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: wire(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [wire(part) for part in value]
    return value


@cache
def _fields(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """(key, attribute, whether it may be absent) of each field of a dataclass."""
    declared: tuple[Field[Any], ...] = fields(kind)
    return tuple((wire_name(field_.name), field_.name, bool(field_.metadata.get("absent"))) for field_ in declared)
