"""uvicorn's HTTP/1.1 protocol with limits on the resources that one client may use.

With httptools, uvicorn does not limit any of these: the size of headers, requests that arrive one byte at a time,
requests sent before the responses to earlier ones are read (pipelining), responses that nobody reads, and connections
per address. A proxy in front usually limits them; the service must also survive without one.
"""

import asyncio
import logging
from asyncio import TimerHandle
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gpuplan.api.http.request_limits import place_of

log = logging.getLogger("gpuplan.http")

#: Limit for the request line and headers, and for the bytes between pieces of a body. Several times the longest
#: accepted token (16 KiB), cursor and cookie together.
MOST_HEAD_BYTES = 64 * 1024
#: From the connection or the first byte of a request to its last byte: the longest body (3 MiB) arrives in time at 100
#: kB/s.
MOST_SECONDS_TO_ARRIVE = 30.0
#: Requests of one connection that wait for the response to an earlier one. Browsers and common libraries do not
#: pipeline; each request takes about 4 KB, and one piece from the network may contain thousands of them.
MOST_PIPELINED = 16
#: A client must read at least `LEAST_BYTES_READ` of a response in this time: 1 KiB/s, less than any modem.
MOST_SECONDS_UNREAD = 10.0
LEAST_BYTES_READ = 10 * 1024
#: A browser opens six connections; dozens of people may share an address.
MOST_CONNECTIONS_PER_ADDRESS = 256


class _PipelineFull(Exception):
    """Stops the parser in the same way as unreadable input."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request head is too long (431) or does not arrive in time (408).

    When a client pipelines too many requests, the first ones are answered, the last of these with `Connection: close`,
    and the client must send the others again (RFC 9112, section 9.3.2). A connection whose client does not read its
    responses is cut. Connections above `most_connections_per_address` are refused (429); those of a proxy named by
    `FORWARDED_ALLOW_IPS` are not counted.
    """

    most_head_bytes = MOST_HEAD_BYTES
    most_seconds = MOST_SECONDS_TO_ARRIVE
    most_pipelined = MOST_PIPELINED
    most_seconds_unread = MOST_SECONDS_UNREAD
    most_connections_per_address = MOST_CONNECTIONS_PER_ADDRESS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Created by uvicorn, once per connection."""
        super().__init__(*args, **kwargs)
        self._in_head = True
        #: Bytes received since part of a request was last passed on.
        self._held_bytes = 0
        self._arriving: TimerHandle | None = None
        self._takes_more = True
        #: The key under which connections are counted together; None is not counted.
        self._place: str | None = None
        self._unread_bytes = 0
        self._reading: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and start the timer for its first request."""
        super().connection_made(transport)
        self._await_the_rest()
        address = self.client[0] if self.client else ""
        if not (isinstance(self.app, ProxyHeadersMiddleware) and address in self.app.trusted_hosts):
            self._place = place_of(address)
            same = sum(getattr(connection, "_place", None) == self._place for connection in self.connections)
            if same > self.most_connections_per_address:
                log.info("connection of %s refused: it has %d already", address, same - 1)
                self._end(429)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and stop counting the connection."""
        self._arrived()
        self._read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes within the limits."""
        if not self._takes_more:
            return
        self._held_bytes += len(data)
        self._await_the_rest()
        super().data_received(data)
        if self._held_bytes > self.most_head_bytes:
            self._end(431)

    def on_message_begin(self) -> None:
        """The first byte of a request has arrived, perhaps together with the end of the previous one."""
        if len(self.pipeline) >= self.most_pipelined:
            raise _PipelineFull
        super().on_message_begin()
        self._await_the_rest()

    def on_headers_complete(self) -> None:
        """The headers are complete; the body follows and is limited where it is read."""
        self._in_head, self._held_bytes = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body has arrived."""
        self._held_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole request has arrived."""
        super().on_message_complete()
        self._in_head, self._held_bytes = True, 0
        self._arrived()

    def send_400_response(self, msg: str) -> None:
        """The parser stopped: earlier requests are still answered, and nothing further is read."""
        if self._in_head and self._answering():
            self._takes_more = False
            self.cycle.keep_alive = False
        else:
            self._end(400)

    def pause_writing(self) -> None:
        """The response's write buffer is full; start checking that the client reads."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """The client has read nearly all of the buffered response."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._read()

    def on_response_complete(self) -> None:
        """The response is written; after the last one, wait for the client to read it."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a further request."""
        super().timeout_keep_alive_handler()
        self._await_reading()

    def _await_reading(self) -> None:
        """Check later whether the client has read more."""
        if self._reading is None:
            self._unread_bytes = self.transport.get_write_buffer_size()
            self._reading = self.loop.call_later(self.most_seconds_unread, self._look_at_reading)

    def _read(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _look_at_reading(self) -> None:
        self._reading = None
        unread = self.transport.get_write_buffer_size()
        if unread and unread > self._unread_bytes - LEAST_BYTES_READ:
            log.info("connection of %s cut: it does not read its answers", self.client and self.client[0])
            self.transport.abort()
        elif unread:
            self._await_reading()

    def _await_the_rest(self) -> None:
        if self._arriving is None:
            self._arriving = self.loop.call_later(self.most_seconds, self._too_late)

    def _arrived(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _too_late(self) -> None:
        self._arriving = None
        if self.flow.read_paused or (self._in_head and self._answering()):
            # The service itself is slow; the client may still receive the responses to its earlier requests.
            self._await_the_rest()
        else:
            self._end(408 if self._held_bytes or not self._in_head else None)

    def _answering(self) -> bool:
        """Whether a request has arrived whose response is not yet sent."""
        return self.cycle is not None and not self.cycle.response_complete

    def _end(self, status: int | None) -> None:
        """Close the connection, with a status only if it cannot be mistaken for (part of) the response to another
        request.
        """
        if self.transport.is_closing():
            return
        is_answering = self._answering() if self._in_head else bool(self.pipeline) or self.cycle.response_started
        if status is not None and not is_answering:
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
        self._await_reading()
