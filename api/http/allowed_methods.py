"""The methods that a path accepts: those of every route at that path, and `HEAD` wherever there is `GET`."""

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import Scope

#: Only Slack and its users' browsers call these paths, and a `GET` that completes an installation must run only once.
_AS_THEY_ARE = "/slack/"


def head_as_get(scope: Scope) -> Scope:
    """Turn a `HEAD` request into the `GET` without a body (RFC 9110, section 9.3.2); leave other requests unchanged.

    The server keeps the original scope and omits the body of the response.
    """
    if scope["method"] != "HEAD" or scope["path"].startswith(_AS_THEY_ARE):
        return scope
    return {**scope, "method": "GET"}


def methods_at(app: FastAPI, path: str) -> tuple[str, ...]:
    """Every method that a route accepts at this path, sorted. The router itself reports only the methods of a single
    route.
    """
    methods: set[str] = set()
    for context in iter_route_contexts(app.routes):
        pattern = getattr(context, "path_regex", None)
        if pattern is not None and pattern.match(path):
            methods |= context.methods or set()
    if "GET" in methods:
        methods.add("HEAD")
    return tuple(sorted(methods))
