"""The type of a JSON object that is read, repeated as it was read, or written."""

from typing import Any

type JsonObject = dict[str, Any]


def without_none(**fields: Any) -> JsonObject:
    """The object of the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
