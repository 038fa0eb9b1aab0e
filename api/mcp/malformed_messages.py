"""Error responses for lines that are not messages, so that their sender does not wait forever.

The library gives such lines to nobody who answers them. JSON-RPC 2.0 defines an error for each kind, with a null `id`
because the message cannot be identified.
"""

from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

Heard = SessionMessage | Exception


class AnsweringUnreadable:
    """The received messages of a transport without the unreadable ones: those are answered with an error; blank lines
    are ignored.
    """

    def __init__(self, heard: ReadStream[Heard], responses: WriteStream[SessionMessage]) -> None:
        """Wrap the stream of received messages, which is closed with this one."""
        self._heard, self._said = heard, responses

    async def receive(self) -> Heard:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        while isinstance(item := await self._heard.receive(), Exception):
            error = fault_of(item)
            if error is not None:
                # If the reader is gone, later writes report it.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self._said.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
        return item

    async def aclose(self) -> None:
        """Close the wrapped stream."""
        await self._heard.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Heard:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def fault_of(error: Exception) -> ErrorData | None:
    """The error of a line in words; None for a blank one."""
    if not isinstance(error, ValidationError):
        return ErrorData(code=PARSE_ERROR, message="this line cannot be read")
    [first, *_] = error.errors(include_url=False, include_context=False)
    if first["type"] != "json_invalid":
        message = "this line is not a JSON-RPC 2.0 message; accepted: one request, notification or response per line"
        return ErrorData(code=INVALID_REQUEST, message=message)
    if isinstance(first["input"], str | bytes) and not first["input"].strip():
        return None
    return ErrorData(code=PARSE_ERROR, message=f"this line cannot be read: {first['msg']}")
