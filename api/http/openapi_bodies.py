"""Request bodies and responses in the OpenAPI document, from the schemas of `gpuplan.api.schemas` and their examples."""

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from gpuplan.api.http.problem_details import PROBLEM_JSON

Schema = dict[str, Any]

#: The models of all bodies that an operation takes, by name.
BODIES: dict[str, type[BaseModel]] = {}

IDEMPOTENCY_HEADER: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same request returns the same response; with another request, a 422. Create a new key for each"
    " request, such as `7c1f0a5e-0d3f-4f0e-9a57-2a6f6c1f3b11`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
PREFER_HEADER: Schema = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`wait=N`: wait up to N seconds for the answer, at most 50; `respond-async`: do not wait (RFC 7240)",
    "schema": {"type": "string", "pattern": "^(respond-async|wait=[0-9]{1,2})$"},
    "example": "wait=30",
}


def takes(model: type[BaseModel], *headers: Schema, required: bool = True) -> Schema:
    """The part of an operation that says what it takes: a body of this model in JSON or YAML, with its examples, and headers."""
    BODIES[model.__name__] = model
    examples = {f"example-{number}": {"value": value} for number, value in enumerate(examples_of(model), 1)}
    media = {"schema": ref(model.__name__), "examples": examples}
    body = {"required": required, "content": dict.fromkeys(("application/json", "application/yaml"), media)}
    return {"requestBody": body} | ({"parameters": list(headers)} if headers else {})


def examples_of(model: type[BaseModel]) -> list[Schema]:
    """The examples that the schema of a body states; every body has one."""
    about: Any = model.model_config["json_schema_extra"]
    return list(about["examples"])


def ref(name: str) -> Schema:
    """A reference to one of the document's schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def document_responses(schema: str, *others: int, csv: bool = False) -> dict[int | str, dict[str, Any]]:
    """The responses of an operation that `describe_refusals` does not add: 200 with this schema, and other statuses."""
    content: dict[str, Any] = {"application/json": {"schema": ref(schema)}}
    if csv:
        content["text/csv"] = {"schema": {"type": "string"}}
    answer: dict[int | str, Schema] = {200: {"description": "The answer", "content": content}}
    return answer | {status: problem(status) for status in others}


def started_or_answered(schema: str, *others: int) -> dict[int | str, dict[str, Any]]:
    """The responses of a long operation: 200 with this schema, or 202 with the run that will have the answer."""
    responses = document_responses(schema, *others)
    where = {"description": "the address of the run", "schema": {"type": "string"}}
    responses[202] = {
        "description": "The run continues; Location is its address",
        "headers": {"Location": where},
        "content": {"application/json": {"schema": ref("Run")}},
    }
    return responses


def problem(status: int) -> Schema:
    """The response with this status: a problem, or nothing where the client has the answer already."""
    described: Schema = {"description": HTTPStatus(status).phrase}
    return described if status < 400 else described | {"content": {PROBLEM_JSON: {"schema": ref("Problem")}}}
