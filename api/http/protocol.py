"""HTTP/1.1 as this service takes it: uvicorn's own protocol, with bounds on what one client may make the process hold.

With httptools uvicorn bounds none of these: headers without end, a request that arrives a byte at a time, requests that
are sent before the answers to earlier ones are read (pipelining), answers that nobody reads, and connections of one
address. A proxy in front usually bounds them; a service must not fall where there is none.
"""

import asyncio
import logging
from asyncio import TimerHandle
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.http.rates import place_of

log = logging.getLogger("gpuplan.http")

#: Of a request's line and headers, or of what stands between pieces of its body. Several times the longest token that
#: is taken (16 KiB), cursor and cookie together.
MOST_HEAD_BYTES = 64 * 1024
#: From the connection, or a request's first byte, to its last: the longest body (3 MiB) comes in at 100 kB a second.
MOST_SECONDS_TO_ARRIVE = 30.0
#: Requests of one connection that wait for the answer to an earlier one. Browsers and common libraries send none so; each
#: takes some 4 KB, and one piece from the network may hold thousands of them.
MOST_PIPELINED = 16
#: A client must read at least `LEAST_BYTES_READ` of an answer in this time: 1 KiB a second, less than any modem.
MOST_SECONDS_UNREAD = 10.0
LEAST_BYTES_READ = 10 * 1024
#: A browser opens six; dozens of people may share an address.
MOST_CONNECTIONS_PER_ADDRESS = 256


class _PipelineFull(Exception):
    """Stops the parser, as what cannot be read does."""


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose request has too long a head (431), or does not arrive in time (408).

    Of one that sends many requests ahead the first are answered, the last of these with `Connection: close`, and the
    others must be sent anew (RFC 9112, section 9.3.2). One whose client does not read its answers is cut. One more than
    `most_connections_per_address` is refused (429); those of a proxy that `FORWARDED_ALLOW_IPS` names are not counted.
    """

    most_head_bytes = MOST_HEAD_BYTES
    most_seconds = MOST_SECONDS_TO_ARRIVE
    most_pipelined = MOST_PIPELINED
    most_seconds_unread = MOST_SECONDS_UNREAD
    most_connections_per_address = MOST_CONNECTIONS_PER_ADDRESS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As uvicorn makes it, one for each connection."""
        super().__init__(*args, **kwargs)
        self._in_head = True
        #: What has come since something of a request could last be passed on.
        self._held_bytes = 0
        self._arriving: TimerHandle | None = None
        self._takes_more = True
        #: Whose connection counts with this one; None is not counted.
        self._place: str | None = None
        self._unread_bytes = 0
        self._reading: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Whoever connects has something to ask."""
        super().connection_made(transport)
        self._await_the_rest()
        address = self.client[0] if self.client else ""
        if not (isinstance(self.app, ProxyHeadersMiddleware) and address in self.app.trusted_hosts):
            self._place = place_of(address)
            same = sum(getattr(each, "_place", None) == self._place for each in self.connections)
            if same > self.most_connections_per_address:
                log.info("connection of %s refused: it has %d already", address, same - 1)
                self._end(429)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more arrives, and nothing more is read."""
        self._arrived()
        self._read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes more, of whatever they turn out to be."""
        if not self._takes_more:
            return
        self._held_bytes += len(data)
        self._await_the_rest()
        super().data_received(data)
        if self._held_bytes > self.most_head_bytes:
            self._end(431)

    def on_message_begin(self) -> None:
        """A request's first byte, perhaps in one piece with the end of the one before."""
        if len(self.pipeline) >= self.most_pipelined:
            raise _PipelineFull
        super().on_message_begin()
        self._await_the_rest()

    def on_headers_complete(self) -> None:
        """What follows is the body, which whoever reads it bounds."""
        self._in_head, self._held_bytes = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._held_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here as a whole."""
        super().on_message_complete()
        self._in_head, self._held_bytes = True, 0
        self._arrived()

    def send_400_response(self, msg: str) -> None:
        """The parser stopped: what came before is still answered, and nothing after it is read."""
        if self._in_head and self._answering():
            self._takes_more = False
            self.cycle.keep_alive = False
        else:
            self._end(400)

    def pause_writing(self) -> None:
        """More of an answer waits than goes out."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Nearly all of it has gone out."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._read()

    def on_response_complete(self) -> None:
        """An answer is written; where it was the last one, it must still be read."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._await_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more was asked."""
        super().timeout_keep_alive_handler()
        self._await_reading()

    def _await_reading(self) -> None:
        """Looks later whether the client has read on."""
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
            # It is the service that takes its time; the client may still be told what it asked before.
            self._await_the_rest()
        else:
            self._end(408 if self._held_bytes or not self._in_head else None)

    def _answering(self) -> bool:
        """Whether a request has come and its answer has not gone out yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _end(self, status: int | None) -> None:
        """Closes, with a status where it cannot be taken for the answer to another request, or for part of one."""
        if self.transport.is_closing():
            return
        said = self._answering() if self._in_head else bool(self.pipeline) or self.cycle.response_started
        if status is not None and not said:
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
        self._await_reading()
