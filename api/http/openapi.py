"""The OpenAPI document: FastAPI's own, with the job's schema, the answers' schemas and examples put in."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.documents.actuals import ActualsDocument
from api.documents.estimate_request import EstimateDocument
from api.documents.forecast import ForecastDocument
from api.documents.job import JobDocument
from api.documents.key import KeyDocument
from api.documents.portfolio import PortfolioDocument, PortfolioJobDocument
from api.documents.refresh import RefreshDocument
from api.documents.replan import ReplanDocument
from api.documents.share import OpenedLinkDocument, ShareDocument
from api.documents.spot_questions import PolicyQuestion, SimulationQuestion
from api.documents.spot_run import SpotRunDocument
from api.documents.watch import WatchDocument
from api.documents.why import WhyDocument
from api.http.answers import answer_schemas
from api.http.describe_access import describe_access
from api.http.describe_examples import describe_examples
from api.http.describe_links import describe_links

BODIES = (
    JobDocument,
    EstimateDocument,
    ActualsDocument,
    RefreshDocument,
    WatchDocument,
    PortfolioDocument,
    PortfolioJobDocument,
    ForecastDocument,
    PolicyQuestion,
    SimulationQuestion,
    SpotRunDocument,
    WhyDocument,
    ReplanDocument,
    KeyDocument,
    ShareDocument,
    OpenedLinkDocument,
)


def attach(app: FastAPI) -> None:
    """Make `app.openapi()` give the whole document, built once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    found["servers"] = [{"url": "/", "description": "where this document was read"}]
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    _add(schemas, answer_schemas())
    for model in BODIES:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        _add(schemas, schema.pop("$defs", {}))
        _add(schemas, {model.__name__: schema})
    for operations in found["paths"].values():
        for operation in operations.values():
            _drop_undocumented_validation(operation)
    describe_access(app, found)
    describe_links(found)
    describe_examples(found)
    # FastAPI's own error shapes, which this service never sends.
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return found


def _add(schemas: dict[str, Any], more: dict[str, Any]) -> None:
    """Two things of one name would each be described as the other: names of schemas are given once."""
    for name, schema in more.items():
        if schemas.setdefault(name, schema) != schema:
            raise TypeError(
                f"the OpenAPI document has two schemas named {name}; give one of their classes another name"
            )


def _drop_undocumented_validation(operation: dict[str, Any]) -> None:
    """FastAPI adds a 422 of its own shape to operations with parameters; ours is a problem like the others."""
    answer = operation["responses"].get("422", {})
    if "application/json" in answer.get("content", {}):
        answer["content"] = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        answer["description"] = "Unprocessable Content"
