"""What may be asked of a path: every method of every route there, and `HEAD` wherever there is a `GET`."""

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import Scope

#: Slack's and its users' browsers alone come here, and a `GET` that ends an installation is done once.
_AS_THEY_ARE = "/slack/"


def head_as_get(scope: Scope) -> Scope:
    """A `HEAD` request as the `GET` that it is without the body (RFC 9110, section 9.3.2), any other as it is.

    The server, which keeps the scope as it came, leaves the body of the answer out.
    """
    if scope["method"] != "HEAD" or scope["path"].startswith(_AS_THEY_ARE):
        return scope
    return {**scope, "method": "GET"}


def methods_at(app: FastAPI, path: str) -> tuple[str, ...]:
    """Every method that some route takes at this path, sorted; the router itself names those of one route alone."""
    found: set[str] = set()
    for context in iter_route_contexts(app.routes):
        pattern = getattr(context, "path_regex", None)
        if pattern is not None and pattern.match(path):
            found |= context.methods or set()
    if "GET" in found:
        found.add("HEAD")
    return tuple(sorted(found))
