"""Unknown addresses: browsers get an error page with links, programs get problem details."""

from collections.abc import Awaitable, Callable
from typing import cast

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from gpuplan.api.web.page_rendering import failed

#: Paths of programs, whose `Accept` header is not reliable.
_FOR_PROGRAMS = ("/v1", "/slack", "/mcp")


def register(app: FastAPI) -> None:
    """Show an error page to browsers; other requests go to the handler registered before."""
    usual = cast(Callable[[Request, Exception], Awaitable[Response]], app.exception_handlers[HTTPException])

    async def not_found(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and _is_browser_request(request):
            return failed(request, error)
        return await usual(request, error)

    app.add_exception_handler(HTTPException, not_found)


def _is_browser_request(request: Request) -> bool:
    """Whether `Accept` starts with text/html, as browsers send it."""
    path = request.url.path
    if any(path == prefix or path.startswith(f"{prefix}/") for prefix in _FOR_PROGRAMS):
        return False
    return request.headers.get("accept", "").startswith("text/html")
