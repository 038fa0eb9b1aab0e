"""Renders pages: templates that refuse undefined names and escape everything, strict headers, compression.

Routes of the page use `PageRoute`, so that errors are pages too, and `render` for answers.
"""

import gzip
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException

from gpuplan.api.http.problem_details import RETRY_AFTER_SECONDS, Refused
from gpuplan.api.http.request_limits import quota_refused
from gpuplan.api.http.response_caching import takes_gzip
from gpuplan.api.observability.version import gpuplan_version
from gpuplan.api.presentation import text_formatting, watches
from gpuplan.api.security.identity import Identity
from gpuplan.api.web.assets import asset_url
from gpuplan.catalog.runtime.errors import Fault, StoreFailure, UnusableInput
from gpuplan.catalog.store.access_store import QuotaExceeded
from gpuplan.catalog.store.ownership import NotOwned
from gpuplan.catalog.store.snapshot_list import NotStored

#: Only own resources, nothing inline, no framing by other sites, no forms to other sites.
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
#: Links of the navigation.
SECTIONS = (
    ("Plan", "/"),
    ("Plans", "/plans"),
    ("Catalogue", "/catalogue"),
    ("Prices", "/prices"),
    ("What changed", "/changes"),
    ("Portfolio", "/portfolio"),
    ("Costs", "/costs"),
    ("Docs", "/docs"),
)
#: Shorter answers are not compressed.
_WORTH_COMPRESSING_BYTES = 1024

#: Expected errors of requests, which are not bugs of the service.
EXPECTED = (UnusableInput, StoreFailure, Refused, QuotaExceeded, RequestValidationError, HTTPException)

#: Explanations of statuses whose default text only repeats the title.
_STRAYED = {
    404: "there is no page at this address; check that the link is complete",
    405: "this address only accepts submitted forms",
}

#: What a template shows, by name.
Context = Mapping[str, object]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_CODE = re.compile(r"`([^`]+)`")


@cache
def templates() -> Environment:
    """The templates; an undefined name in a template is an error."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.do"],
    )
    environment.filters.update(FILTERS)
    environment.globals.update(asset=asset_url, sections=SECTIONS, version=gpuplan_version())
    return environment


def render(
    request: Request,
    template: str,
    context: Context,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Render `template` with `context`, which may contain `section`, the current entry of the navigation."""
    text = (
        templates()
        .get_template(template)
        .render({"section": None, "path": request.url.path, "session_of": _session_of(request), **context})
    )
    body = text.encode()
    sent = HEADERS | (headers or {})
    if len(body) >= _WORTH_COMPRESSING_BYTES and takes_gzip(request):
        body = gzip.compress(body, 5, mtime=0)
        sent["Content-Encoding"] = "gzip"
    return HTMLResponse(body, status_code=status, headers=sent)


def _session_of(request: Request) -> str | None:
    """The name of the logged-in user; None without login and for requests with a key."""
    identity: Identity | None = getattr(request.state, "identity", None)
    return identity.name if identity is not None and identity.via == "session" else None


class PageRoute(APIRoute):
    """A route whose errors are pages: faults by field with the accepted values."""

    def get_route_handler(self) -> Handler:
        """The default handler, with expected errors rendered as pages."""
        usual = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await usual(request)
            except EXPECTED as error:
                return failed(request, error)

        return handler


#: Titles of pages of refusals for readers who do not know the names of HTTP.
_TITLES = {404: "Not found", 422: "Not understood", 503: "Not available at the moment"}


def failed(request: Request, error: Exception) -> Response:
    """An expected error as a page, with the same status as under `/v1`."""
    status, faults, headers = refusal_of(error)
    title = _TITLES.get(status) or HTTPStatus(status).phrase
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
                Fault(tuple(error["loc"][1:]), unknown if error["type"] == "extra_forbidden" else str(error["msg"]))
                for error in error.errors()
            ]
            return 422, faults, {}
        case HTTPException():
            detail = (
                _STRAYED.get(error.status_code, error.detail)
                if error.detail == HTTPStatus(error.status_code).phrase
                else error.detail
            )
            return error.status_code, [Fault((), str(detail))], dict(error.headers or {})
    raise error


def coded(words: object) -> Markup:
    """Escaped text with `words in backticks` as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(words))))  # noqa: S704 - escaped here


FILTERS: dict[str, Callable[..., str]] = {
    "ago": text_formatting.ago,
    "chance": text_formatting.chance,
    "coded": coded,
    "duration": text_formatting.duration,
    "layout": text_formatting.layout,
    "located": text_formatting.located,
    "number": text_formatting.number,
    "percent": text_formatting.percent,
    "plain": text_formatting.plain,
    "threshold": watches.threshold,
    "usd": text_formatting.usd,
    "usd_per_hour": text_formatting.usd_per_hour,
    "when": text_formatting.when,
}
