"""The schemas of all responses for the OpenAPI document, derived from the types in which answers are declared."""

from collections.abc import Mapping
from types import GenericAlias
from typing import Any, TypedDict

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from gpuplan.api.schemas import wire_types

type Schema = dict[str, Any]


class Health(TypedDict):
    """Whether the process is alive or ready, and why it is not."""

    status: str


#: The response types of the operations, by schema name.
ANSWERS: dict[str, Any] = {name: getattr(wire_types, name) for name in wire_types.__all__} | {"Health": Health}

#: Schemas of the string types that carry a meaning.
_MEANT: dict[str, Schema] = {
    "Usd": {"type": "string", "description": "US dollars as a decimal string", "examples": ["1234.56"]},
    "Moment": {"type": "string", "format": "date-time", "examples": ["2026-11-21T08:00:00Z"]},
}
_PLANNER = "gpuplan.planner."
_REF = "#/components/schemas/{model}"


class _AnswerSchema(GenerateJsonSchema):
    """A field whose default is None may be absent, and is never null."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = schema["schema"]
        return self.generate_inner(inner["schema"] if inner["type"] == "nullable" else inner)


def answer_schemas() -> dict[str, Schema]:
    """Every response schema and its parts, by name."""
    # Answers that are still declared as typed dictionaries, apart: their parts have the names of parts of the others.
    typed_dicts = {name: answer for name, answer in ANSWERS.items() if not answer.__module__.startswith(_PLANNER)}
    dataclasses = {name: answer for name, answer in ANSWERS.items() if name not in typed_dicts}
    schemas = _schemas(dataclasses) | _schemas(typed_dicts)
    for schema in schemas.values():
        _without_titles(schema)
    return schemas | {name: schema for name, schema in _MEANT.items() if name in schemas}


def _schemas(answers: Mapping[str, Any]) -> dict[str, Schema]:
    """The schemas of some answers and of their parts, by name. Classes of one name in two modules are refused."""
    # A tuple, because pydantic takes a configuration for no bare class.
    described = ConfigDict(use_attribute_docstrings=True)
    adapters = [
        (name, "serialization", TypeAdapter[Any](_tuple_of(answer), config=described))
        for name, answer in answers.items()
    ]
    given, together = TypeAdapter.json_schemas(adapters, ref_template=_REF, schema_generator=_AnswerSchema)  # type: ignore[arg-type]
    schemas: dict[str, Schema] = dict(together["$defs"])
    if ambiguous := [name for name in schemas if "__" in name]:
        raise TypeError(f"two classes of answers have one name, give one of them another: {', '.join(ambiguous)}")
    for (name, _), schema in given.items():
        [answer] = schema["prefixItems"]
        if answer != {"$ref": _REF.format(model=name)}:
            schemas[str(name)] = answer
    return schemas


def _tuple_of(answer: Any) -> Any:
    return GenericAlias(tuple, (answer,))


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
