"""The outermost layer of the service: a request id for every answer, and no traceback for any client."""

import asyncio
import ipaddress
import logging
import re
import time
import uuid
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.methods import head_as_get
from api.http.problems import Refused, problem
from api.telemetry.context import bind, restore
from api.telemetry.metrics import IN_FLIGHT, request_answered
from api.telemetry.routes import route_of

#: How this machine calls itself; another name in `Host` means that a page elsewhere made a browser ask (DNS rebinding).
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

log = logging.getLogger("gpuplan.http")

#: Asked every few seconds: their answers are worth a line only where they are bad.
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})

#: Until another process has taken over.
_RETRY_ELSEWHERE_SECONDS = "1"

#: RFC 9112, section 3.2: a proxy in front may have let a request in by the one name, and a check here look at the other.
_TWO_NAMES = "the request names its host more than once; send one Host header"

#: What may be echoed into a header and a log line; anything else gets a fresh id.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")


class Edge:
    """ASGI middleware: echoes or makes `X-Request-ID`, logs and counts each request, answers 500 for what nobody foresaw.

    A request that the end of the process cuts off is told so (503) rather than failed. One whose client closes the
    connection before its body is here gets no answer, and is no failure of the service. While `stopping` says so, each
    answer asks its client to connect anew, which a balancer then does elsewhere.
    """

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool] = lambda: False) -> None:
        """Around `app`."""
        self.app = app
        self.stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; lifespan events go through untouched."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        request_id = asked if _REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex
        scope["request_id"] = request_id
        status, client_left = 0, False
        began = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                if self.stopping():
                    headers["Connection"] = "close"
            await send(message)

        inside = head_as_get(scope)
        before = bind(request_id=request_id)
        IN_FLIGHT.inc()
        try:
            if sum(name == b"host" for name, _ in scope["headers"]) > 1:
                await problem(Refused(400, _TWO_NAMES), request_id)(scope, receive, send_with_id)
            else:
                await self.app(inside, receive, send_with_id)
        except asyncio.CancelledError:
            # The server waits for it no longer (GPUPLAN_FINISH_SECONDS).
            if status or not self.stopping():
                raise
            detail = "gpuplan stops and could not finish this request in time; ask again, with the same Idempotency-Key"
            away = Refused(503, detail, headers={"Retry-After": _RETRY_ELSEWHERE_SECONDS})
            await problem(away, request_id)(scope, receive, send_with_id)
        except ClientDisconnect:
            client_left = True
        except Exception:
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if status:
                raise
            detail = f"gpuplan failed on this request; the service's log says why under {request_id}"
            await problem(Refused(500, detail), request_id)(scope, receive, send_with_id)
        finally:
            IN_FLIGHT.dec()
            _note(inside, scope["method"], status, time.perf_counter() - began, client_left=client_left)
            restore(before)


def _note(scope: Scope, method: str, status: int, seconds: float, *, client_left: bool) -> None:
    """Log and count a request by its own method; `status` 0 is one whose client left before an answer."""
    route = route_of(scope)
    request_answered(method, route, status, seconds)
    level = logging.DEBUG if route in _PROBES and status < 400 else logging.INFO
    if log.isEnabledFor(level):
        identity = scope.get("state", {}).get("identity")
        said = {
            "method": method,
            "path": scope["path"],
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1e3, 2),
            "identity": getattr(identity, "id", None),
        }
        log.log(level, "request closed by the client" if client_left else "request", extra={"fields": said})


class OnlyHosts:
    """ASGI middleware: refuses requests that call this service by any other name than one of `hosts`.

    A service without authentication that listens on loopback must not answer a web page whose name was
    made to point here: the browser would let that page read the answers. Who calls it by an address, as probes do, was
    led here by no name.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        """Around `app`; `hosts` are names without port."""
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or answer 421."""
        if scope["type"] == "http":
            host = re.sub(r":\d*$", "", Headers(scope=scope).get("host", "").lower())
            if host not in self.hosts and not _is_address(host):
                refused = Refused(421, f"this service is not {host[:80]!r}; accepted: {', '.join(sorted(self.hosts))}")
                await problem(refused, scope.get("request_id", ""))(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
