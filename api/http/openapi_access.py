"""Access in the OpenAPI document: how to authenticate, which scope each operation needs, and how it refuses."""

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from gpuplan.api.http.authentication import scopes_of_routes
from gpuplan.api.http.openapi_bodies import Schema, problem
from gpuplan.api.security.identity import MEANING, SCOPES, Scope
from gpuplan.catalog.parsing.json_object import JsonObject

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
