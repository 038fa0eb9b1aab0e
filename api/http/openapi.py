"""The OpenAPI document: FastAPI's own, with the schema of the job, the schemas of the responses and examples added."""

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, JsonValue

from gpuplan.api.http.answer_schemas import answer_schemas
from gpuplan.api.http.authentication import scopes_of_routes
from gpuplan.api.http.openapi_bodies import BODIES, Schema, problem
from gpuplan.api.schemas.portfolio import PortfolioJobDocument
from gpuplan.api.schemas.spot_run import SpotRunDocument
from gpuplan.api.security.identity import MEANING, SCOPES, Scope
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


#: Where an id comes from, by the parameter of a path: the operation, the status of its response, and the id in the body.
#: Without `portfolio_id`, which exists only after its run is done.
SOURCES: Mapping[str, tuple[str, str, str]] = {
    "plan_id": ("plan", "200", "/plan/id"),
    "decision_id": ("buy", "200", "/decision/id"),
    "run_id": ("portfolio", "202", "/id"),
    "actual_id": ("report_actuals", "200", "/id"),
    "watch_id": ("add_watch", "200", "/id"),
    "refresh_id": ("start_refresh", "202", "/id"),
    "key_id": ("make_key", "201", "/id"),
    "share_id": ("share", "201", "/id"),
}


def describe_links(document: JsonObject) -> None:
    """Add the links to the document."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    by_id = {operation["operationId"]: operation for operation in operations}
    for target, operation in by_id.items():
        for name in {parameter["name"] for parameter in operation.get("parameters", ())} & SOURCES.keys():
            source, status, pointer = SOURCES[name]
            links = by_id[source]["responses"][status].setdefault("links", {})
            links[target] = {"operationId": target, "parameters": {name: f"$response.body#{pointer}"}}


def describe_examples(document: JsonObject) -> None:
    """Add to operations without a body and without an id in their path the form of their answer, by its schema."""
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            has_id = any(parameter["in"] == "path" for parameter in operation.get("parameters", ()))
            if not has_id and "requestBody" not in operation:
                for content in operation["responses"]["200"]["content"].values():
                    content["example"] = _form(content["schema"], schemas)


def _form(schema: JsonObject, schemas: JsonObject) -> JsonValue:
    """A value of a schema: its own example, else the first choice, and every property of an object."""
    if "$ref" in schema:
        return _form(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for chosen in ("examples", "enum", "anyOf", "oneOf"):
        if chosen in schema:
            first = schema[chosen][0]
            return _form(first, schemas) if chosen.endswith("Of") else first
    if "const" in schema:
        constant: JsonValue = schema["const"]
        return constant
    match schema.get("type"):
        case "object":
            return {name: _form(part, schemas) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_form(part, schemas) for part in schema.get("prefixItems", [schema.get("items", {})])]
        case "string":
            return "text"
        case "boolean":
            return True
        case "integer" | "number":
            return 1
    return None


SCHEMES: Schema = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "gpk_<id>_<secret>, or a token of the service's issuer",
        "description": "A key of this service (`gpuplan keys create`), or an OpenID Connect token if an issuer is configured."
        " A service on loopback needs none. Scopes, each including those before it: "
        + "; ".join(f"`{scope}`: {MEANING[scope]}" for scope in SCOPES),
    },
}

#: Refusals of every operation that needs a key, with the headers of their responses.
_REFUSALS: dict[int, Schema] = {
    401: {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}},
    403: {"WWW-Authenticate": {"description": "The missing scope", "schema": {"type": "string"}}},
    429: {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
    503: {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
}


def describe_access(app: FastAPI, document: JsonObject) -> None:
    """Add the security scheme, and the scope and refusals of each operation, to the document.

    For a service without authentication the document says that no key is needed and none is read.
    """
    open_to_all = app.state.access.authenticator is None
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    by_operation = _scopes_by_operation(app)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            scope = by_operation.get((method.upper(), path))
            if scope is None:
                operation["security"] = []
                continue
            operation["security"] = [{}, {"key": [scope]}] if open_to_all else [{"key": [scope]}]
            operation["x-scope"] = scope
            for status, headers in _REFUSALS.items():
                operation["responses"].setdefault(str(status), problem(status) | {"headers": headers})


def describe_refusals(document: JsonObject) -> None:
    """Add how each operation refuses what it cannot read: a body, an id in its path, and parameters."""
    for operations in document["paths"].values():
        for operation in operations.values():
            in_path = any(parameter["in"] == "path" for parameter in operation.get("parameters", ()))
            of_body = (400, 413, 415) if "requestBody" in operation else ()
            for status in (*of_body, *((404,) if in_path else ()), 422, 500):
                operation["responses"].setdefault(str(status), problem(status))
            # FastAPI's own description of refused parameters; they are a problem like all others.
            operation["responses"]["422"] = problem(422)


def _scopes_by_operation(app: FastAPI) -> dict[tuple[str, str], Scope | None]:
    scopes = scopes_of_routes(app)
    return {
        (method, str(context.path_format)): scopes.get((context.endpoint, method), "admin")
        for context in iter_route_contexts(app.routes)
        for method in context.methods or ()
    }
