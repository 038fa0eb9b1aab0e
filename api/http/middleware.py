"""The outermost layer of the service: a request id in every response, and no traceback to any client."""

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

from gpuplan.api.http.allowed_methods import head_as_get
from gpuplan.api.http.problem_details import Refused, problem
from gpuplan.api.observability.log_context import bind, restore
from gpuplan.api.observability.route_templates import route_of
from gpuplan.api.observability.service_metrics import IN_FLIGHT, request_answered

#: Names of this machine for itself. Another name in `Host` means that a foreign page made a browser send the request
#: (DNS rebinding).
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

log = logging.getLogger("gpuplan.http")

#: Probes call these every few seconds: log only their failures.
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})

#: Time until another process has taken over.
_RETRY_ELSEWHERE_SECONDS = "1"

#: RFC 9112, section 3.2: a proxy in front might check one name while this process reads the other.
_TWO_NAMES = "the request has more than one Host header; send one"

#: Ids that may be echoed into a header and a log line; any other is replaced with a fresh id.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")


class RequestMiddleware:
    """ASGI middleware: echoes or creates `X-Request-ID`, logs and counts each request, and answers 500 to unexpected
    errors.

    A request interrupted by the end of the process gets a 503, not a 500. If the client closes the connection before
    its body has arrived, there is no response, and it is not counted as a failure of the service. While `stopping`
    returns true, each response asks its client to reconnect, which a load balancer then directs to another process.
    """

    def __init__(self, app: ASGIApp, stopping: Callable[[], bool] = lambda: False) -> None:
        """Wrap `app`."""
        self.app = app
        self.stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; lifespan events pass unchanged."""
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
            # The server no longer waits for this request (GPUPLAN_FINISH_SECONDS).
            if status or not self.stopping():
                raise
            detail = "gpuplan is shutting down and could not finish this request in time; send it again with the same Idempotency-Key"
            away = Refused(503, detail, headers={"Retry-After": _RETRY_ELSEWHERE_SECONDS})
            await problem(away, request_id)(scope, receive, send_with_id)
        except ClientDisconnect:
            client_left = True
        except Exception:
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if status:
                raise
            detail = f"gpuplan failed on this request; the service's log has the cause under {request_id}"
            await problem(Refused(500, detail), request_id)(scope, receive, send_with_id)
        finally:
            IN_FLIGHT.dec()
            _note(inside, scope["method"], status, time.perf_counter() - began, client_left=client_left)
            restore(before)


def _note(scope: Scope, method: str, status: int, seconds: float, *, client_left: bool) -> None:
    """Log and count a request by its original method; `status` 0 means that the client left before the response."""
    route = route_of(scope)
    request_answered(method, route, status, seconds)
    level = logging.DEBUG if route in _PROBES and status < 400 else logging.INFO
    if log.isEnabledFor(level):
        identity = scope.get("state", {}).get("identity")
        fields = {
            "method": method,
            "path": scope["path"],
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1e3, 2),
            "identity": getattr(identity, "id", None),
        }
        log.log(level, "request closed by the client" if client_left else "request", extra={"fields": fields})


class OnlyHosts:
    """ASGI middleware that refuses requests whose host name is not in `hosts`.

    A service without authentication on loopback must not answer a web page whose host name was made to resolve to this
    machine: the browser would let that page read the responses. Requests to an IP address, as sent by probes, are
    accepted because no name was resolved.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        """Wrap `app`; `hosts` are names without port."""
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or answer 421."""
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
