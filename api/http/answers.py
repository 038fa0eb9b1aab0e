"""The schemas of all answers for the OpenAPI document, from the types that the client reads them with."""

import importlib
import pkgutil
import typing
from typing import Any, TypedDict

from pydantic import TypeAdapter

from gpuplan_client import answers

Schema = dict[str, Any]


class Health(TypedDict):
    """Whether the process lives, or can answer, and what stands in its way."""

    status: str


#: The answers of operations, by the name of their schema.
ANSWERS: dict[str, Any] = {name: getattr(answers, name) for name in answers.__all__} | {"Health": Health}

#: What a document says of the strings that have a meaning.
_MEANT: dict[str, Schema] = {
    "Usd": {"type": "string", "description": "US dollars as a decimal string", "examples": ["1234.56"]},
    "Moment": {"type": "string", "format": "date-time", "examples": ["2026-11-21T08:00:00Z"]},
}
_REF = "#/components/schemas/{model}"


def answer_schemas() -> dict[str, Schema]:
    """Every answer and its parts by name."""
    for module in pkgutil.iter_modules(answers.__path__):
        for each in vars(importlib.import_module(f"{answers.__name__}.{module.name}")).values():
            if typing.is_typeddict(each):
                # The client's types know nothing of pydantic; this is how it reads what stands below each field.
                each.__pydantic_config__ = {"use_attribute_docstrings": True}
    adapters = [(name, "serialization", TypeAdapter(each)) for name, each in ANSWERS.items()]
    given, together = TypeAdapter.json_schemas(adapters, ref_template=_REF)  # type: ignore[arg-type]
    found: dict[str, Schema] = dict(together["$defs"])
    for (name, _), schema in given.items():
        if schema != {"$ref": _REF.format(model=name)}:
            found[str(name)] = schema
    for schema in found.values():
        _without_titles(schema)
    return found | {name: schema for name, schema in _MEANT.items() if name in found}


def _without_titles(schema: Any) -> None:
    """Titles that only repeat the name of a field."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for each in schema.values():
            _without_titles(each)
    elif isinstance(schema, list):
        for each in schema:
            _without_titles(each)
