"""Lines that are no message: answered, so that whoever wrote one does not wait for an answer for ever.

The library gives such a line to nobody who answers it. JSON-RPC 2.0 has an error for each kind, whose `id` is null: what
cannot be read cannot be named.
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
    """What a transport hears, without what it could not read: that is answered over `said`, and a blank line is nothing."""

    def __init__(self, heard: ReadStream[Heard], said: WriteStream[SessionMessage]) -> None:
        """Around `heard`, which is closed with this."""
        self._heard, self._said = heard, said

    async def receive(self) -> Heard:
        """The next message. Raises `anyio.EndOfStream` where there are no more."""
        while isinstance(item := await self._heard.receive(), Exception):
            error = fault_of(item)
            if error is not None:
                # Where nobody listens any more, whoever writes answers finds that out, too.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self._said.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
        return item

    async def aclose(self) -> None:
        """Nothing more is heard."""
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
    """What is wrong with a line, in words; None for a blank one."""
    if not isinstance(error, ValidationError):
        return ErrorData(code=PARSE_ERROR, message="this line cannot be read")
    [first, *_] = error.errors(include_url=False, include_context=False)
    if first["type"] != "json_invalid":
        message = "this line is no message of JSON-RPC 2.0; accepted: one request, notification or response a line"
        return ErrorData(code=INVALID_REQUEST, message=message)
    if isinstance(first["input"], str | bytes) and not first["input"].strip():
        return None
    return ErrorData(code=PARSE_ERROR, message=f"this line cannot be read: {first['msg']}")
