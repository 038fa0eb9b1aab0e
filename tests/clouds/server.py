"""A local HTTP server that a cloud's real SDK talks to, with whatever may go wrong between the two."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call as it came over the socket; header names in lower case, query values decoded."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def parameter(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [default])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back. `sent_share` below 1 breaks the connection after that part of the body."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    sent_share: float = 1.0


@dataclass(slots=True, kw_only=True)
class Fault:
    """Changes the replies to calls that `matches` picks, the first `times` of them (None: all)."""

    matches: Callable[[Request], bool]
    change: Callable[[Reply], Reply]
    times: int | None = None


class CloudServer:
    """Answers with `answer`, after `latency_seconds`, keeping every request; safe for parallel calls."""

    def __init__(self, answer: Callable[[Request], Reply], *, latency_seconds: float = 0.0) -> None:
        self.answer = answer
        self.latency_seconds = latency_seconds
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._http = _Server(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def break_with(
        self,
        change: Callable[[Reply], Reply],
        *,
        when: Callable[[Request], bool] = lambda _: True,
        times: int | None = None,
    ) -> None:
        """From now on the first `times` calls that `when` picks are answered with `change` of the true reply."""
        self.faults.append(Fault(matches=when, change=change, times=times))

    def reply_to(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            time.sleep(self.latency_seconds)
            return self._broken(request, self.answer(request))
        finally:
            with self._lock:
                self._at_once -= 1

    def _broken(self, request: Request, reply: Reply) -> Reply:
        for fault in self.faults:
            with self._lock:
                hit = fault.times != 0 and fault.matches(request)
                if hit and fault.times is not None:
                    fault.times -= 1
            if hit:
                return fault.change(reply)
        return reply

    @contextmanager
    def running(self) -> Iterator["CloudServer"]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def answering(
    status: int, body: bytes, *, content_type: str = "application/json", **headers: str
) -> Callable[[Reply], Reply]:
    """A change that puts another answer in place of the true one; `Retry_After="1"` is the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Reply(status=status, body=body, content_type=content_type, headers=named)


def reset_after(share: float) -> Callable[[Reply], Reply]:
    """A change that resets the connection in the middle of the body."""
    return lambda reply: replace(reply, sent_share=share)


def truncated(reply: Reply) -> Reply:
    """The first half of the body, as if it were all of it."""
    return replace(reply, body=reply.body[: len(reply.body) // 2])


def html(_: Reply) -> Reply:
    """What a proxy or a login page answers in place of the API."""
    return Reply(body=b"<!doctype html><html><body>Please sign in</body></html>", content_type="text/html")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, cloud: CloudServer) -> None:
        self.cloud = cloud
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=parts.path,
            query=parse_qs(parts.query, keep_blank_values=True),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        reply = self.server.cloud.reply_to(request)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.sent_share < 1:
            self.wfile.write(reply.body[: int(len(reply.body) * reply.sent_share)])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            # Without this the handler waits for a next request, and the socket stays open under its files.
            self.close_connection = True
            return
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests read `CloudServer.requests` instead."""
