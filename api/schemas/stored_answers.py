"""Reads stored answers from JSON into their types."""

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gpuplan.catalog.runtime.errors import UnusableInput

_ANOTHER_RELEASE = "another release stored this answer; read it as JSON, or ask again"


def read_stored[Answer](
    kind: type[Answer], document: Any, *, otherwise: str = _ANOTHER_RELEASE, strict: bool = False
) -> Answer:
    """The answer of this type. Raises `UnusableInput`, with `otherwise`, at the first field unknown to this release.

    `strict` accepts no text for a number, and no yes or no for one.
    """
    hashable: Any = kind  # mypy does not take `type[Answer]` to be hashable
    adapter = _adapter(hashable)
    try:
        answer: Answer = (
            adapter.validate_json(_text(document), strict=True) if strict else adapter.validate_python(document)
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UnusableInput.at(*first["loc"], message=f"{first['msg']}: {otherwise}") from None
    return answer


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Building one takes about a millisecond, and lists read many answers of one type."""
    return TypeAdapter(kind)


def _text(document: Any) -> str:
    """The document as JSON; halves of surrogate pairs, which UTF-8 lacks, are replaced."""
    return json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
