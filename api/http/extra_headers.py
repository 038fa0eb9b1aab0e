"""Response headers that are added to any response: the remaining rate limit and the headers for authenticated requests."""

from collections.abc import Mapping

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuplan.api.security.identity import LOCAL

_KEY = "gpuplan.extra_headers"
#: Default policy for responses that are not pages and set none: load nothing from other origins.
_STRICT = "default-src 'none'; frame-ancestors 'none'"


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """Add these headers to the response of this request, unless the response sets them itself."""
    request.scope.setdefault(_KEY, {}).update(headers)


class ExtraHeaders:
    """ASGI middleware that adds the headers from `add_headers` and the headers that every response has."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        extra: dict[str, str] = scope.setdefault(_KEY, {})

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-security-policy" not in headers:
                    headers["Content-Security-Policy"] = _STRICT
                for name, value in extra.items():
                    headers.setdefault(name, value)
                if _of_somebody(scope):
                    # Responses to authenticated requests must not be cached, in particular pages on a shared screen.
                    headers.setdefault("Cache-Control", "no-store")
                    if headers.get("content-type", "").startswith("text/html"):
                        headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, send_with_headers)


def _of_somebody(scope: Scope) -> bool:
    identity = scope.get("state", {}).get("identity")
    return identity is not None and identity is not LOCAL
