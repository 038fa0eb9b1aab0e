"""What tools take, as an agent reads it: the job document in full once, and by reference to that everywhere else."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from api.documents.job import JobDocument
from api.documents.replan import RunningDocument

Document = dict[str, Any]


class _As:
    """Shows the schema of one of our documents for what is read as an object: its faults are then told field by field."""

    def __init__(self, document: type[BaseModel]) -> None:
        """Of this document."""
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
    Document, _As(RunningDocument), Field(description='How far it is: {"done": "40%", "spent_usd": 300, "on": {...}}.')
]

#: A schema of 19 kB in each tool would fill a context with the same text.
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
    """The schema without what says a field's name once more."""
    if isinstance(schema, dict):
        own_title = isinstance(schema.get("title"), str) and (
            "type" in schema or "anyOf" in schema or "oneOf" in schema
        )
        return {key: without_titles(value) for key, value in schema.items() if not (own_title and key == "title")}
    if isinstance(schema, list):
        return [without_titles(each) for each in schema]
    return schema
