"""Input schemas of the tools: the job document in full in one tool, and by reference in the others."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gpuplan.api.schemas.job import JobDocument
from gpuplan.api.schemas.replan import RunningDocument

Document = dict[str, Any]


class _As:
    """Shows a document's schema for a parameter that is parsed as a plain object, so that its errors can be reported by
    field.
    """

    def __init__(self, document: type[BaseModel]) -> None:
        """For this document."""
        self._document = document

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The document's schema, with its parts among the definitions of the tool."""
        return handler(self._document.__pydantic_core_schema__)


Job = Annotated[
    Document,
    _As(JobDocument),
    Field(
        description="The training job. `workload` is required; quantities may carry units (`300B`, `7d`, `80 GiB`, "
        "`$5k`). Start from a preset (resource gpuplan://presets) where the model is known."
    ),
]

Running = Annotated[
    Document,
    _As(RunningDocument),
    Field(description='The progress of the run: {"done": "40%", "spent_usd": 300, "on": {...}}.'),
]

#: A schema of 19 kB in each tool would fill a context with repetition.
JobAgain = Annotated[
    Document,
    WithJsonSchema(
        {
            "type": "object",
            "required": ["workload"],
            "description": "The training job: the same document as `job` of the tool `plan`, e.g. "
            '{"workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "15B"}, "deadline": "7d"}',
        }
    ),
]

Detail = Annotated[
    Literal["summary", "full"],
    Field(description="`summary` leaves out what is long and names it in `left_out`; `full` is the whole answer."),
]

Snapshot = Annotated[
    str | None, Field(description="Prices of this snapshot (id or its beginning), not the current ones.")
]


def without_titles(schema: Any) -> Any:
    """The schema without titles that only repeat the name of a field."""
    if isinstance(schema, dict):
        own_title = isinstance(schema.get("title"), str) and (
            "type" in schema or "anyOf" in schema or "oneOf" in schema
        )
        return {key: without_titles(value) for key, value in schema.items() if not (own_title and key == "title")}
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    return schema
