"""What comes over the wire: a request that is too long in its head, or too slow, ends its connection and no other."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from api.http.protocol import BoundedProtocol

HOST = b"Host: x\r\n"


class Brief(BoundedProtocol):
    most_head_bytes = 8 * 1024


class Hasty(Brief):
    most_seconds = 0.5


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The length of the body; at `/unread` an answer before any of it."""
    if scope["type"] != "http":
        return
    length, more = 0, scope["path"] != "/unread"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await PlainTextResponse(str(length))(scope, receive, send)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(Brief) as found:
        yield found


@pytest.fixture(scope="module")
def hasty_port() -> Iterator[int]:
    """Where requests must arrive sooner than one that is as it should be does on a busy machine."""
    with serving(Hasty) as found:
        yield found


@contextlib.contextmanager
def serving(protocol: type[BoundedProtocol]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            echo, http=protocol, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(10)


def said(port: int, *pieces: bytes) -> bytes:
    """All that comes back until the service ends the connection, which it must."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, contextlib.suppress(ConnectionError):
        for piece in pieces:
            connection.sendall(piece)
        while data := connection.recv(65_536):
            heard += data
    return heard


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 20_000,
        b"GET / HTTP/1.1\r\n" + HOST + (b"a" * 1_000 + b": b\r\n") * 100,
    ],
)
def test_a_head_without_end_is_refused_before_it_fills_the_memory(port: int, head: bytes) -> None:
    assert said(port, head).split(b"\r\n")[0] in {b"HTTP/1.1 431 Request Header Fields Too Large", b""}


@pytest.mark.parametrize("between", [b"X: " + b"a" * 400_000, b"X: a\r\n" * 80_000])
def test_what_follows_a_body_is_bounded_too(port: int, between: bytes) -> None:
    chunked = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    assert b" 200 " not in said(port, chunked, between, b"\r\n\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"G",
        b"GET / HTTP/1.1\r\n" + HOST,
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nabc",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    ],
)
def test_a_request_that_does_not_come_to_its_end_is_told_so(hasty_port: int, sent: bytes) -> None:
    assert said(hasty_port, sent).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_connection_on_which_nothing_is_asked_is_closed_without_a_word(hasty_port: int) -> None:
    assert said(hasty_port) == b""
    # Blank lines before a request are passed over, and are none.
    assert said(hasty_port, b"\r\n").count(b"HTTP/1.1") <= 1


def test_an_answer_that_has_gone_out_is_not_followed_by_another(hasty_port: int) -> None:
    unread = b"POST /unread HTTP/1.1\r\n" + HOST + b"Content-Length: 50\r\n\r\nabc"
    heard = said(hasty_port, unread)
    assert heard.startswith(b"HTTP/1.1 200 OK")
    assert heard.count(b"HTTP/1.1") == 1


def test_what_is_as_it_should_be_is_answered_one_after_the_other(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for length in (0, 1, 3_000_000):
            assert client.post("/", content=b"x" * length).text == str(length)
        assert client.post("/", content=(b"x" for _ in range(5_000))).text == "5000"
    one = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab"
    assert said(port, one * 3).count(b"\r\n\r\n2") == 3
