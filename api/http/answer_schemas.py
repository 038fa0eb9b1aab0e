"""The schemas of all responses for the OpenAPI document, derived from the types in which answers are declared."""

from types import GenericAlias
from typing import Any, TypedDict

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from gpuplan.api.schemas import service_answers

type Schema = dict[str, Any]


class Health(TypedDict):
    """Whether the process is alive or ready, and why it is not."""

    status: str


#: The response types of the operations, by schema name.
ANSWERS: dict[str, Any] = {name: getattr(service_answers, name) for name in service_answers.__all__} | {
    "Health": Health
}

#: Schemas of the string types that carry a meaning.
_MEANT: dict[str, Schema] = {
    "Usd": {"type": "string", "description": "US dollars as a decimal string", "examples": ["1234.56"]},
    "Moment": {"type": "string", "format": "date-time", "examples": ["2026-11-21T08:00:00Z"]},
}
_REF = "#/components/schemas/{model}"


class _AnswerSchema(GenerateJsonSchema):
    """A field whose default is None may be absent, and is never null."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = schema["schema"]
        return self.generate_inner(inner["schema"] if inner["type"] == "nullable" else inner)


def answer_schemas() -> dict[str, Schema]:
    """Every response schema and its parts, by name. Two classes of one name are refused."""
    schemas: dict[str, Schema] = {}
    for name, answer in ANSWERS.items():
        for part, schema in _schemas(name, answer).items():
            _without_titles(schema)
            described = _MEANT.get(part, schema)
            if schemas.setdefault(part, described) != described:
                raise TypeError(f"two classes of answers are named {part}; give one of them another name")
    return schemas


def _schemas(name: str, answer: Any) -> dict[str, Schema]:
    """The schemas of an answer and of its parts, by name."""
    # A tuple, because pydantic takes a configuration for no bare class.
    alone: Any = GenericAlias(tuple, (answer,))
    adapter = TypeAdapter[Any](alone, config=ConfigDict(use_attribute_docstrings=True))
    document = adapter.json_schema(ref_template=_REF, schema_generator=_AnswerSchema, mode="serialization")
    [schema] = document["prefixItems"]
    parts: dict[str, Schema] = document.get("$defs", {})
    return parts if schema == {"$ref": _REF.format(model=name)} else parts | {name: schema}


def _without_titles(schema: Any) -> None:
    """Remove titles that only repeat the name of a field."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for part in schema.values():
            _without_titles(part)
    elif isinstance(schema, list):
        for part in schema:
            _without_titles(part)
