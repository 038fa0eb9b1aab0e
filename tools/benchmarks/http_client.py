"""A minimal HTTP/1.1 client for load tests: persistent connections, requests encoded once, answers parsed in C.

A usual client takes a millisecond of processor time per request, more than the service takes for a cached page.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools

#: A connection that was idle for longer may be closed by the service (uvicorn: after 5 s) as the next request is sent.
_MOST_IDLE_SECONDS = 4.0


@dataclass(slots=True)
class Answer:
    """One answer; header names in lower case."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def request(method: str, path: str, document: object = None, *, headers: Mapping[str, str] | None = None) -> bytes:
    """A request as it goes over the wire."""
    body = b"" if document is None else json.dumps(document).encode()
    given = {"Host": "localhost", "Accept": "application/json"} | dict(headers or {})
    if body:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class _Connection(asyncio.Protocol):
    """One persistent connection, one request at a time."""

    def __init__(self) -> None:
        self.closed = False
        self.last_used = time.perf_counter()
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error or ConnectionResetError("closed before an answer"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._answer.body += body

    def on_message_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.closed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(self._answer)

    async def ask(self, raw: bytes) -> Answer:
        assert self._transport is not None
        self._answer, self._parser = Answer(), httptools.HttpResponseParser(self)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(raw)
        return await self._waiting

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()


class Client:
    """As many connections as concurrent requests, over the services in turn."""

    def __init__(self, urls: list[str]) -> None:
        parts = [urlsplit(url) for url in urls]
        self._addresses = [(part.hostname or "127.0.0.1", part.port or 80) for part in parts]
        self._idle: list[list[_Connection]] = [[] for _ in urls]
        self._turn = 0

    async def ask(self, raw: bytes, *, at_most_seconds: float = 60.0) -> Answer:
        """The answer. Raises `OSError` for a broken connection and `TimeoutError` for none in time."""
        turn = self._turn = (self._turn + 1) % len(self._addresses)
        idle = self._idle[turn]
        while idle and (idle[-1].closed or time.perf_counter() - idle[-1].last_used > _MOST_IDLE_SECONDS):
            idle.pop().close()
        if idle:
            connection = idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(_Connection, *self._addresses[turn])
        try:
            async with asyncio.timeout(at_most_seconds):
                answer = await connection.ask(raw)
        except BaseException:
            connection.close()
            raise
        connection.last_used = time.perf_counter()
        if not connection.closed:
            idle.append(connection)
        return answer

    async def json(self, raw: bytes) -> Any:
        """The answer's document."""
        return json.loads((await self.ask(raw)).body)

    def close(self) -> None:
        """Close every connection."""
        for connection in (item for idle in self._idle for item in idle):
            connection.close()
