"""What the OpenAPI document says about access: how to show who one is, which scope each operation needs, how it is refused."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from api.http.access import scopes_of_routes
from api.http.describe import Schema, ref
from api.identity.who import MEANING, SCOPES, Scope

SCHEMES: Schema = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "gpk_<id>_<secret>, or a token of the service's issuer",
        "description": "A key of this service (`gpuplan keys create`), or an OpenID Connect token where an issuer is set."
        " A service on loopback asks for none. Scopes, each with those before it: "
        + "; ".join(f"`{scope}`: {MEANING[scope]}" for scope in SCOPES),
    },
}

_HEADERS: dict[int, Schema] = {
    401: {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}},
    403: {"WWW-Authenticate": {"description": "The scope that is missing", "schema": {"type": "string"}}},
    429: {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
}


def describe_access(app: FastAPI, document: dict[str, Any]) -> None:
    """Puts the scheme, and the scope and the refusals of each operation, into the document.

    A service that is open to all who reach it says so: it asks for no key, and looks at none that is shown.
    """
    open_to_all = app.state.access.gate is None
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
            for status, headers in _HEADERS.items():
                operation["responses"].setdefault(str(status), _refusal(status, headers))


def _scopes_by_operation(app: FastAPI) -> dict[tuple[str, str], Scope | None]:
    scopes = scopes_of_routes(app)
    return {
        (method, str(context.path_format)): scopes.get((context.endpoint, method), "admin")
        for context in iter_route_contexts(app.routes)
        for method in context.methods or ()
    }


def _refusal(status: int, headers: Schema) -> Schema:
    content = {"application/problem+json": {"schema": ref("Problem")}}
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": content}
