"""Addresses that are no page, opened by people: they get a page that leads on, and programs the problem that they know."""

from collections.abc import Awaitable, Callable
from typing import cast

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from api.web.pages import failed

#: Where programs ask; what they send as `Accept` says little.
_FOR_PROGRAMS = ("/v1", "/slack", "/mcp")


def register(app: FastAPI) -> None:
    """Show a page where a browser asked for what is not there; all else is left to the handler that was registered before."""
    usual = cast(Callable[[Request, Exception], Awaitable[Response]], app.exception_handlers[HTTPException])

    async def stray(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and _opened_by_a_person(request):
            return failed(request, error)
        return await usual(request, error)

    app.add_exception_handler(HTTPException, stray)


def _opened_by_a_person(request: Request) -> bool:
    """Browsers ask for pages as text/html, and say so before all else."""
    path = request.url.path
    if any(path == each or path.startswith(f"{each}/") for each in _FOR_PROGRAMS):
        return False
    return request.headers.get("accept", "").startswith("text/html")
