"""A request that the end of a process cuts off is told to ask again; only what began to answer, or nobody stops, is cut."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from gpuplan.api.http.middleware import RequestMiddleware


async def cut_off(sent: list[Message], *, stopping: bool, answering: bool = False) -> None:
    """A request that is cancelled while it waits for ever."""
    waits = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if answering:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        waits.set()
        await asyncio.Event().wait()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/v1/plans", "headers": [], "query_string": b""}
    request = asyncio.create_task(RequestMiddleware(app, stopping=lambda: stopping)(scope, receive, send))
    await waits.wait()
    request.cancel()
    await request


def test_a_request_that_a_stop_cuts_off_is_told_to_ask_again() -> None:
    sent: list[Message] = []
    asyncio.run(cut_off(sent, stopping=True))
    [start, body] = sent
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    assert start["status"] == 503
    assert headers["content-type"] == "application/problem+json"
    assert int(headers["retry-after"]) > 0
    assert headers["connection"] == "close"
    assert "could not finish this request in time" in json.loads(body["body"])["detail"]


@pytest.mark.parametrize(("stopping", "answering"), [(False, False), (True, True)])
def test_what_is_cut_off_otherwise_is_cut(stopping: bool, answering: bool) -> None:
    sent: list[Message] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cut_off(sent, stopping=stopping, answering=answering))
    assert [message.get("status") for message in sent] == [200] * answering
