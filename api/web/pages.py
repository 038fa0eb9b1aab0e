"""How a page is made: templates that refuse unknown names and escape everything, strict headers, compression.

A route of the page uses `PageRoute`, so that what it refuses is a page too, and `render` for its answer.
"""

import gzip
from collections.abc import Callable, Coroutine
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from api.http.caching import takes_gzip
from api.http.problems import RETRY_AFTER_SECONDS, Refused
from api.http.rates import quota_refused
from api.identity.who import Identity
from api.version import gpuplan_version
from api.web.assets import asset_url
from api.web.words import FILTERS
from catalog.errors import Fault, StoreFailure, UnusableInput
from catalog.ownership import NotOwned
from catalog.quota_use import QuotaExceeded
from catalog.snapshot_list import NotStored

#: Everything comes from here, nothing stands inline, and no other site may frame the page or be sent its forms.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding, HX-Request",
}
#: Where each name in the navigation leads.
SECTIONS = (
    ("Plan", "/"),
    ("Catalogue", "/catalogue"),
    ("Prices", "/prices"),
    ("What changed", "/changes"),
    ("Portfolio", "/portfolio"),
    ("Docs", "/docs"),
)
#: Shorter answers gain nothing from compression.
_WORTH_COMPRESSING_BYTES = 1024

#: What ends a request without an answer and is no fault of the service.
EXPECTED = (UnusableInput, StoreFailure, Refused, QuotaExceeded, RequestValidationError, HTTPException)

#: What the title alone would say twice.
_STRAYED = {
    404: "there is no page at this address; it may have been cut short on its way",
    405: "this address is no page to open; it only takes what a form sends",
}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@cache
def templates() -> Environment:
    """The templates; a name that a template uses and nobody gave is an error, not an empty place."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.do"],
    )
    found.filters.update(FILTERS)
    found.globals.update(asset=asset_url, sections=SECTIONS, version=gpuplan_version())
    return found


def render(
    request: Request,
    template: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """The page that `template` makes of `context`; `section`, the name in the navigation, may be among it."""
    text = (
        templates()
        .get_template(template)
        .render({"section": None, "path": request.url.path, "session_of": _session_of(request)} | context)
    )
    body = text.encode()
    sent = HEADERS | (headers or {})
    if len(body) >= _WORTH_COMPRESSING_BYTES and takes_gzip(request):
        body = gzip.compress(body, 5, mtime=0)
        sent["Content-Encoding"] = "gzip"
    return HTMLResponse(body, status_code=status, headers=sent)


def _session_of(request: Request) -> str | None:
    """Whose session the page is shown in; None for a service that nobody logs in to, and for keys."""
    identity: Identity | None = getattr(request.state, "identity", None)
    return identity.name if identity is not None and identity.via == "session" else None


class PageRoute(APIRoute):
    """A route whose refusals are pages: what is wrong, by field, and what would be accepted."""

    def get_route_handler(self) -> Handler:
        """The usual handler, with every expected error shown to the reader."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await usual(request)
            except EXPECTED as error:
                return failed(request, error)

        return handler


def failed(request: Request, error: Exception) -> Response:
    """An expected error as a page, with the status that the same error has under `/v1`."""
    status, faults, headers = refusal_of(error)
    title = HTTPStatus(status).phrase
    return render(
        request, "error.html", {"title": title, "status": status, "faults": faults}, status=status, headers=headers
    )


def refusal_of(error: Exception) -> tuple[int, list[Fault], dict[str, str]]:
    """Status, faults and headers of one of the `EXPECTED` errors; any other is raised again."""
    match error:
        case NotStored():
            return 404, list(error.faults), {}
        case NotOwned():
            return 403, list(error.faults), {}
        case UnusableInput():
            return 422, list(error.faults), {}
        case StoreFailure():
            return 503, [Fault((), str(error))], {"Retry-After": str(RETRY_AFTER_SECONDS)}
        case QuotaExceeded():
            return refusal_of(quota_refused(error))
        case Refused():
            return error.status, list(error.faults) or [Fault((), error.detail)], error.headers
        case RequestValidationError():
            unknown = "unknown parameter"
            faults = [
                Fault(tuple(each["loc"][1:]), unknown if each["type"] == "extra_forbidden" else str(each["msg"]))
                for each in error.errors()
            ]
            return 422, faults, {}
        case HTTPException():
            said = (
                _STRAYED.get(error.status_code, error.detail)
                if error.detail == HTTPStatus(error.status_code).phrase
                else error.detail
            )
            return error.status_code, [Fault((), str(said))], dict(error.headers or {})
    raise error
