"""HTTP/1.1 as this service takes it: uvicorn's own protocol, with bounds on how long a request may be and may take.

With httptools uvicorn bounds neither: headers without end would fill the memory, and a client that sends a byte now
and then would keep its connection, and what it sent, for ever. A proxy in front usually bounds both; a service must
not fall where there is none.
"""

import asyncio
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

#: Of a request's line and headers, or of what stands between pieces of its body. Several times the longest token that
#: is taken (16 KiB), cursor and cookie together.
MOST_HEAD_BYTES = 64 * 1024
#: From the connection, or a request's first byte, to its last: the longest body (3 MiB) comes in at 100 kB a second.
MOST_SECONDS_TO_ARRIVE = 30.0


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose request has too long a head (431), or does not arrive in time (408)."""

    most_head_bytes = MOST_HEAD_BYTES
    most_seconds = MOST_SECONDS_TO_ARRIVE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As uvicorn makes it, one for each connection."""
        super().__init__(*args, **kwargs)
        self._in_head = True
        #: What has come since something of a request could last be passed on.
        self._held_bytes = 0
        self._arriving: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Whoever connects has something to ask."""
        super().connection_made(transport)
        self._await_the_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more arrives."""
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes more, of whatever they turn out to be."""
        self._held_bytes += len(data)
        self._await_the_rest()
        super().data_received(data)
        if self._held_bytes > self.most_head_bytes:
            self._end(431)

    def on_message_begin(self) -> None:
        """A request's first byte, perhaps in one piece with the end of the one before."""
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
        said = self._answering() if self._in_head else self.cycle.response_started
        if status is not None and not said:
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
