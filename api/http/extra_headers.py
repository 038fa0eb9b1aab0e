"""Headers that the door adds to whatever answer comes: what is left of a rate, and what an answer for one must say."""

from collections.abc import Mapping

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.identity.who import LOCAL

_KEY = "gpuplan.extra_headers"
#: Nothing from elsewhere, for answers that are no page and say nothing themselves.
_STRICT = "default-src 'none'; frame-ancestors 'none'"


def add_headers(request: Request, headers: Mapping[str, str]) -> None:
    """The answer to this request carries these, unless it says otherwise itself."""
    request.scope.setdefault(_KEY, {}).update(headers)


class ExtraHeaders:
    """ASGI middleware: adds what was asked for with `add_headers`, and the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        """Around `app`."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        extra: dict[str, str] = scope.setdefault(_KEY, {})

        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-security-policy" not in headers:
                    headers["Content-Security-Policy"] = _STRICT
                for name, value in extra.items():
                    headers.setdefault(name, value)
                if _of_somebody(scope):
                    # What was given to one who showed a key is for nobody's cache, least of all a page on a shared screen.
                    headers.setdefault("Cache-Control", "no-store")
                    if headers.get("content-type", "").startswith("text/html"):
                        headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, send_more)


def _of_somebody(scope: Scope) -> bool:
    identity = scope.get("state", {}).get("identity")
    return identity is not None and identity is not LOCAL
