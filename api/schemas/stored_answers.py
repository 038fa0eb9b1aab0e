"""Reads stored answers from JSON into their types."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gpuplan.catalog.runtime.errors import UnusableInput


def read_stored[Answer](kind: type[Answer], document: Mapping[str, Any]) -> Answer:
    """The answer of this type. Raises `UnusableInput` at the first field that this release does not know."""
    try:
        return TypeAdapter(kind).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{first['msg']}: another release stored this answer; read it as JSON, or ask again"
        raise UnusableInput.at(*first["loc"], message=message) from None
