"""How a service process ends: told to, it says so, lets requests finish, and leaves with 0; told twice, at once."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.patience import until
from tests.ports import free_port

pytestmark = pytest.mark.slow(reason="starts the service")

GPUPLAN = (sys.executable, "-m", "gpuplan.api.cli.main")
#: Long enough for a balancer of this test, which looks all the time, to hear of it on a busy machine.
DRAIN_SECONDS = 4.0


@contextmanager
def started(
    *command: str, variables: dict[str, str] | None = None, handed_on: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | (variables or {})
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, pass_fds=handed_on)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    def ready() -> bool:
        assert process.poll() is None
        try:
            return httpx.get(f"{url}/readyz", timeout=60).raise_for_status().is_success
        except httpx.TransportError:
            return False

    until(ready)


@dataclass
class Client:
    """Asks one thing after the other, over a kept connection where it may, until it is told that the service goes."""

    url: str
    job: dict[str, Any]
    gone: threading.Event
    statuses: list[int] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            while not self.gone.is_set():
                try:
                    self.statuses.append(client.post("/v1/plans", json=self.job).status_code)
                except httpx.TransportError as error:
                    self.cut.append(repr(error))
                    return


@pytest.mark.slow(reason="one long case")
def test_no_request_is_cut_when_a_busy_service_is_told_to_stop(
    database_url: str, gpuplan: Any, job: dict[str, Any]
) -> None:
    gpuplan.store.ping()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    gone = threading.Event()
    clients = [Client(url, job, gone) for _ in range(3)]
    variables = {"GPUPLAN_DATABASE_URL": database_url, "GPUPLAN_DRAIN_SECONDS": str(DRAIN_SECONDS)}
    with started(*GPUPLAN, "serve", "--port", str(port), variables=variables) as process:
        wait_until_ready(url, process)
        threads = [threading.Thread(target=client.run, daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        until(lambda: all(client.statuses for client in clients))
        process.send_signal(signal.SIGTERM)
        # What a balancer does: as soon as the service is not ready, it sends nothing more.
        while httpx.get(f"{url}/readyz", timeout=60).status_code == 200:
            pass
        gone.set()
        for thread in threads:
            thread.join(60)
        _, output = process.communicate(timeout=60)
    assert [client.cut for client in clients] == [[]] * len(clients)
    assert {status for client in clients for status in client.statuses} == {200}
    assert process.returncode == 0, output
    assert "shutting down" in output
    assert "Traceback" not in output


_SLOW = """
import asyncio, socket, sys
import uvicorn
from gpuplan.api.http.graceful_server import GracefulServer
told = False
def stopping():
    global told
    told = True
    print("stopping", file=sys.stderr, flush=True)
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    print("asked", file=sys.stderr, flush=True)
    while not told or scope["path"] == "/for-ever":
        await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
config = uvicorn.Config(app, lifespan="off", timeout_graceful_shutdown=int(sys.argv[2]))
GracefulServer(config, stopping=stopping).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


@contextmanager
def slow(finish_seconds: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service that answers nothing before it is told to stop; who connects before it is there waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = (sys.executable, "-c", _SLOW, str(listener.fileno()), str(finish_seconds))
        with started(*command, handed_on=(listener.fileno(),)) as process:
            yield process, f"http://127.0.0.1:{listener.getsockname()[1]}"


def heard(process: subprocess.Popen[str], word: str) -> None:
    """Waits until the process says so."""
    assert process.stderr is not None
    assert any(word in line for line in process.stderr), f"it ended without a word of {word}"


def requester(process: subprocess.Popen[str], url: str) -> tuple[threading.Thread, list[str]]:
    """A request under way, and what comes of it."""
    came: list[str] = []

    def ask() -> None:
        try:
            came.append(httpx.get(url, timeout=60).text)
        except httpx.TransportError as error:
            came.append(type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    heard(process, "asked")
    return thread, came


def test_what_is_under_way_is_finished_before_the_end() -> None:
    with slow(finish_seconds=60) as (process, url):
        thread, came = requester(process, f"{url}/")
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        assert process.wait(60) == 0
    assert came == ["ok"]


def test_a_second_signal_ends_at_once() -> None:
    with slow(finish_seconds=3600) as (process, url):
        thread, came = requester(process, f"{url}/for-ever")
        process.send_signal(signal.SIGTERM)
        heard(process, "stopping")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        thread.join(60)
    assert came
    assert came != ["ok"]


def test_a_request_that_never_ends_does_not_hold_the_process() -> None:
    with slow(finish_seconds=1) as (process, url):
        requester(process, f"{url}/for-ever")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
