"""What comes over the wire: whoever sends too much, too slowly, too far ahead or reads nothing is cut, and nobody else."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gpuplan.api.http.bounded_protocol import MOST_PIPELINED, BoundedProtocol
from tests.patience import until

pytestmark = pytest.mark.slow(reason="starts the service")

HOST = b"Host: x\r\n"


class Brief(BoundedProtocol):
    most_head_bytes = 8 * 1024


class Hasty(Brief):
    most_seconds = 0.5


class Impatient(BoundedProtocol):
    most_seconds_unread = 0.5


class Few(BoundedProtocol):
    most_connections_per_address = 3


#: More than the kernel holds of an answer that nobody reads: its largest buffers for sending and receiving together.
LARGE_BYTES = 64 * 1024 * 1024


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """The length of the body; at `/unread` an answer before any of it; at `/large` one of `LARGE_BYTES`."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/large":
        await PlainTextResponse(b"x" * LARGE_BYTES)(scope, receive, send)
        return
    length, has_body_left = 0, scope["path"] != "/unread"
    while has_body_left:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        has_body_left = message.get("more_body", False)
    await PlainTextResponse(str(length))(scope, receive, send)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(Brief) as served_port:
        yield served_port


@pytest.fixture(scope="module")
def hasty_port() -> Iterator[int]:
    """Where requests must arrive sooner than one that is as it should be does on a busy machine."""
    with serving(Hasty) as served_port:
        yield served_port


@contextlib.contextmanager
def serving(protocol: type[BoundedProtocol], *, proxies: str = "") -> Iterator[int]:
    with running(protocol, proxies=proxies) as (_, port):
        yield port


@contextlib.contextmanager
def running(protocol: type[BoundedProtocol], *, proxies: str = "") -> Iterator[tuple[uvicorn.Server, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            echo,
            http=protocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=1,
            forwarded_allow_ips=proxies,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield server, listener.getsockname()[1]
        server.should_exit = True
        thread.join(10)


def reply(port: int, *pieces: bytes) -> bytes:
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
    assert reply(port, head).split(b"\r\n")[0] in {b"HTTP/1.1 431 Request Header Fields Too Large", b""}


@pytest.mark.parametrize("between", [b"X: " + b"a" * 400_000, b"X: a\r\n" * 80_000])
def test_what_follows_a_body_is_bounded_too(port: int, between: bytes) -> None:
    chunked = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    assert b" 200 " not in reply(port, chunked, between, b"\r\n\r\n")


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
    assert reply(hasty_port, sent).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_connection_on_which_nothing_is_asked_is_closed_without_a_word(hasty_port: int) -> None:
    assert reply(hasty_port) == b""
    # Blank lines before a request are passed over, and are none.
    assert reply(hasty_port, b"\r\n").count(b"HTTP/1.1") <= 1


def test_an_answer_that_has_gone_out_is_not_followed_by_another(hasty_port: int) -> None:
    unread = b"POST /unread HTTP/1.1\r\n" + HOST + b"Content-Length: 50\r\n\r\nabc"
    heard = reply(hasty_port, unread)
    assert heard.startswith(b"HTTP/1.1 200 OK")
    assert heard.count(b"HTTP/1.1") == 1


def test_what_is_as_it_should_be_is_answered_one_after_the_other(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for length in (0, 1, 3_000_000):
            assert client.post("/", content=b"x" * length).text == str(length)
        assert client.post("/", content=(b"x" for _ in range(5_000))).text == "5000"
    one = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nab"
    assert reply(port, one * 3).count(b"\r\n\r\n2") == 3


def test_of_requests_sent_far_ahead_the_first_are_answered_and_the_others_dropped(port: int) -> None:
    asked = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
    heard = reply(port, asked * 5_000)
    answers = heard.lower().split(b"http/1.1 200 ok\r\n")[1:]
    assert len(answers) == MOST_PIPELINED + 1
    assert [b"connection: close" in answer for answer in answers] == [False] * MOST_PIPELINED + [True]


def test_what_cannot_be_read_is_no_answer_to_the_request_before(port: int) -> None:
    heard = reply(port, b"GET / HTTP/1.1\r\n" + HOST + b"\r\nno request\r\n\r\n")
    assert heard.startswith(b"HTTP/1.1 200 OK")
    assert heard.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("times", [1, 100])
def test_a_client_that_does_not_read_its_answers_is_cut(times: int) -> None:
    with running(Impatient) as (server, port), socket.create_connection(("127.0.0.1", port)) as connection:
        until(lambda: server.server_state.connections)
        connection.sendall((b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n") * times)
        until(lambda: not server.server_state.connections and not server.server_state.tasks)
        # Others are answered meanwhile.
        assert httpx.get(f"http://127.0.0.1:{port}/", timeout=60).text == "0"


def test_who_reads_gets_a_large_answer_whole(port: int) -> None:
    assert len(httpx.get(f"http://127.0.0.1:{port}/large", timeout=60).content) == LARGE_BYTES


def test_an_address_has_so_many_connections_and_no_more() -> None:
    with serving(Few) as port, contextlib.ExitStack() as connections:
        connected = [connections.enter_context(answered(port)) for _ in range(Few.most_connections_per_address)]
        assert reply(port).startswith(b"HTTP/1.1 429 ")
        connected[0].close()
        until(
            lambda: reply(port, b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n").startswith(
                b"HTTP/1.1 200 "
            )
        )


def test_connections_of_a_proxy_that_is_believed_are_not_counted() -> None:
    with serving(Few, proxies="127.0.0.1") as port, contextlib.ExitStack() as connections:
        for _ in range(2 * Few.most_connections_per_address):
            connections.enter_context(answered(port))


@contextlib.contextmanager
def answered(port: int) -> Iterator[socket.socket]:
    """A connection on which the answer to one request is being read, and another is on its way."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            b"GET / HTTP/1.1\r\n" + HOST + b"\r\nPOST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 200"
        yield connection
