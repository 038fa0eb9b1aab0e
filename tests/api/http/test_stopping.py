"""How a service process ends: told to, it says so, lets requests finish, and leaves with 0; told twice, at once."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

GPUPLAN = (sys.executable, "-m", "api.cli.main")
#: Long enough for a balancer of this test, which looks all the time, to hear of it.
DRAIN_SECONDS = 1.0


@contextmanager
def started(*command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            httpx.get(f"{url}/readyz", timeout=10).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the service did not become ready")


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


def test_no_request_is_cut_when_a_busy_service_is_told_to_stop(
    database_url: str, gpuplan: Any, job: dict[str, Any]
) -> None:
    gpuplan.store.ping()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    gone = threading.Event()
    clients = [Client(url, job, gone) for _ in range(6)]
    variables = {"GPUPLAN_DATABASE_URL": database_url, "GPUPLAN_DRAIN_SECONDS": str(DRAIN_SECONDS)}
    with started(*GPUPLAN, "serve", "--port", str(port), **variables) as process:
        wait_until_ready(url, process)
        threads = [threading.Thread(target=each.run, daemon=True) for each in clients]
        for each in threads:
            each.start()
        while not all(each.statuses for each in clients):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        # What a balancer does: as soon as the service is not ready, it sends nothing more.
        while httpx.get(f"{url}/readyz", timeout=30).status_code == 200:
            pass
        gone.set()
        for each in threads:
            each.join(60)
        _, said = process.communicate(timeout=60)
    assert [each.cut for each in clients] == [[]] * len(clients)
    assert {status for each in clients for status in each.statuses} == {200}
    assert process.returncode == 0, said
    assert "told to stop" in said
    assert "Traceback" not in said


_SLOW = f"""
import asyncio, sys
import uvicorn
from api.http.server import GracefulServer
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await asyncio.sleep(3600 if scope["path"] == "/for-ever" else {DRAIN_SECONDS})
    await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}})
    await send({{"type": "http.response.body", "body": b"ok"}})
config = uvicorn.Config(app, port=int(sys.argv[1]), lifespan="off", timeout_graceful_shutdown=int(sys.argv[2]))
GracefulServer(config, stopping=lambda: print("stopping", file=sys.stderr, flush=True)).run()
"""


@contextmanager
def slow(finish_seconds: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    with started(sys.executable, "-c", _SLOW, str(port), str(finish_seconds)) as process:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                break
        yield process, f"http://127.0.0.1:{port}"


def asking(url: str) -> tuple[threading.Thread, list[str]]:
    """A request under way, and what comes of it."""
    came: list[str] = []

    def ask() -> None:
        try:
            came.append(httpx.get(url, timeout=60).text)
        except httpx.TransportError as error:
            came.append(type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(0.3)
    return thread, came


def test_what_is_under_way_is_finished_before_the_end() -> None:
    with slow(finish_seconds=60) as (process, url):
        thread, came = asking(f"{url}/")
        process.send_signal(signal.SIGTERM)
        thread.join(30)
        assert process.wait(30) == 0
    assert came == ["ok"]


def test_a_second_signal_ends_at_once() -> None:
    with slow(finish_seconds=3600) as (process, url):
        thread, came = asking(f"{url}/for-ever")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while "stopping" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        thread.join(30)
    assert came != ["ok"]


def test_a_request_that_never_ends_does_not_hold_the_process() -> None:
    with slow(finish_seconds=1) as (process, url):
        asking(f"{url}/for-ever")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
