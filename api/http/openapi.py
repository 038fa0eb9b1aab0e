"""The OpenAPI document: FastAPI's own, with the schema of the job, the schemas of the responses and examples added."""

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from gpuplan.api.http.answer_schemas import answer_schemas
from gpuplan.api.http.openapi_access import describe_access, describe_refusals
from gpuplan.api.http.openapi_bodies import BODIES
from gpuplan.api.http.openapi_examples import describe_examples
from gpuplan.api.http.openapi_links import describe_links
from gpuplan.api.schemas.portfolio import PortfolioJobDocument
from gpuplan.api.schemas.spot_run import SpotRunDocument
from gpuplan.catalog.parsing.json_object import JsonObject

#: Parts of bodies that the service reads by themselves, so that the schema of the body has them as any JSON.
PARTS: dict[str, type[BaseModel]] = {part.__name__: part for part in (PortfolioJobDocument, SpotRunDocument)}


def attach(app: FastAPI) -> None:
    """Make `app.openapi()` return the whole document, built once."""

    def document() -> JsonObject:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> JsonObject:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    document["servers"] = [{"url": "/", "description": "the server of this document"}]
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    _add(schemas, answer_schemas())
    for name, model in (BODIES | PARTS).items():
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        _add(schemas, schema.pop("$defs", {}))
        _add(schemas, {name: schema})
    describe_access(app, document)
    describe_refusals(document)
    describe_links(document)
    describe_examples(document)
    # FastAPI's own error schemas, which this service never sends.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _add(schemas: JsonObject, additions: JsonObject) -> None:
    """Add schemas; refuse a duplicate name, since one schema would then describe both."""
    for name, schema in additions.items():
        if schemas.setdefault(name, schema) != schema:
            raise TypeError(
                f"the OpenAPI document has two schemas named {name}; give one of their classes another name"
            )
