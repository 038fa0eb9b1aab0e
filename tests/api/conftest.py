"""One store with the embedded prices for all tests of the doors, and ways to knock at both of them."""

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp

from gpuplan.api.cli.main import main
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def job() -> dict[str, Any]:
    """A job that has a plan."""
    return {
        "name": "llama-3-8b-lora",
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
        "training": {"method": "lora", "precision": "bf16"},
        "start": "2026-11-21T12:00Z",
        "deadline": "36h",
        "constraints": {"max_nodes": 8},
    }


@pytest.fixture
def hopeless(job: dict[str, Any]) -> dict[str, Any]:
    """A job that no hardware does in time for that money."""
    return job | {"deadline": "1h", "budget_usd": 1}


@pytest.fixture
def question(job: dict[str, Any]) -> dict[str, Any]:
    """A request for an estimate."""
    return {"job": job, "on": {"accelerator": "H100", "gpus": 8}}


@pytest.fixture(scope="session")
def database_url(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{shutil.copy(embedded_store, tmp_path_factory.mktemp('store'))}"


@pytest.fixture(scope="session")
def gpuplan(database_url: str) -> Services:
    return open_services(Environment(database_url=database_url))


@contextmanager
def serving(service: ASGIApp) -> Iterator[httpx.Client]:
    """The service on a real socket in this process, so that tests can replace what is inside it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(uvicorn.Config(service, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="session")
def served() -> Callable[[ASGIApp], AbstractContextManager[httpx.Client]]:
    """A way to serve another service than the usual one."""
    return serving


@pytest.fixture(scope="session")
def client(gpuplan: Services) -> Iterator[httpx.Client]:
    with serving(create_service(gpuplan)) as served_client:
        yield served_client


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run the command line in this process, on the same store."""
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", database_url)
    for name in ("GPUPLAN_INVENTORY", "GPUPLAN_SETTINGS"):
        monkeypatch.delenv(name, raising=False)

    def command(*arguments: str | Path) -> Ended:
        code = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    return command


@pytest.fixture
def job_file(tmp_path: Path) -> Callable[[object], Path]:
    """A document as a file: JSON is YAML too."""

    def write(document: object, name: str = "job.yaml") -> Path:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    return write
