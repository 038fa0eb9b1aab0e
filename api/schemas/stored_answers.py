"""Reads stored answers from JSON into their types."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gpuplan.catalog.runtime.errors import UnusableInput

_ANOTHER_RELEASE = "another release stored this answer; read it as JSON, or ask again"


def read_stored[Answer](
    kind: type[Answer], document: Mapping[str, Any], *, otherwise: str = _ANOTHER_RELEASE
) -> Answer:
    """The answer of this type. Raises `UnusableInput`, with `otherwise`, at the first field unknown to this release."""
    hashable: Any = kind  # mypy does not take `type[Answer]` to be hashable
    try:
        answer: Answer = _adapter(hashable).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UnusableInput.at(*first["loc"], message=f"{first['msg']}: {otherwise}") from None
    return answer


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Building one takes about a millisecond, and lists read many answers of one type."""
    return TypeAdapter(kind)
