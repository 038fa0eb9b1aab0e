"""The three interfaces that the corpus asks: the command line, HTTP and MCP, each in this process, over one store.

This is the only module of the golden tests that imports gpuplan: when a module of gpuplan is renamed, only this changes.
"""

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import typer
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp_types import TextContent
from typer.core import TyperGroup

from gpuplan.api.cli.main import application, main
from gpuplan.api.http.http_service import create_service
from gpuplan.api.mcp.server import create_mcp
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services

#: The start of an error line on the command line: the field, then what is wrong with it.
_FIELD = re.compile(r"gpuplan: ([^ :]+): ", re.MULTILINE)


class Answered(NamedTuple):
    """How a question ended (exit code, HTTP status, or 1 for an MCP error), its JSON, and the fields that were refused."""

    code: int
    answer: Any
    refused: list[str]


class Interfaces:
    """gpuplan on one SQLite store, which holds the embedded catalogue after the first question."""

    def __init__(self, folder: Path, portal: BlockingPortal, http: httpx.AsyncClient, mcp: Client) -> None:
        """Use `opened`, which makes the parts."""
        self._folder, self._portal, self._http, self._mcp = folder, portal, http, mcp

    def cli(self, arguments: list[str], files: Mapping[str, object]) -> Answered:
        """Run a command with these files in its working directory; a file is JSON unless it is text already."""
        with TemporaryDirectory(dir=self._folder) as place:
            for name, document in files.items():
                text = document if isinstance(document, str) else json.dumps(document)
                Path(place, name).write_text(text, encoding="utf-8")
            named = [str(Path(place, argument)) if argument in files else argument for argument in arguments]
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(named)
        text = out.getvalue()
        return Answered(code, json.loads(text) if text.startswith(("{", "[")) else None, _FIELD.findall(err.getvalue()))

    def http(self, method: str, path: str, body: object) -> Answered:
        """Send a request; a run that goes on (202) is waited for."""
        response = self._portal.call(self._request, method, path, body)
        refused = []
        answer = response.json()
        if response.headers["content-type"] == "application/problem+json":
            refused, answer = [error["pointer"] for error in answer.get("errors", [])], None
        return Answered(response.status_code, answer, refused)

    async def _request(self, method: str, path: str, body: object) -> httpx.Response:
        return await self._http.request(method, path, json=body, headers={"Prefer": "wait=60"})

    def text(self, path: str) -> str:
        """What a path shows as text."""
        return str(self._portal.call(self._request, "GET", path, None).text)

    def mcp(self, tool: str, arguments: dict[str, Any]) -> Answered:
        """Call a tool."""
        result = self._portal.call(self._mcp.call_tool, tool, arguments)
        if result.is_error:
            [content] = result.content
            assert isinstance(content, TextContent)
            text = content.text.removeprefix(f"Error executing tool {tool}: ")
            fields = [problem.partition(": ")[0] for problem in text.split("; ")]
            return Answered(1, None, [field for field in fields if " " not in field])
        return Answered(0, result.structured_content, [])


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables, and no others of gpuplan."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("GPUPLAN_")]:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def open_interfaces(folder: Path) -> Iterator[Interfaces]:
    """The interfaces over a store in this folder, which is made where there is none."""
    url = f"sqlite:///{folder / 'gpuplan.sqlite3'}"
    with _environment({"GPUPLAN_DATABASE_URL": url}), start_blocking_portal() as portal:
        gpuplan = open_services(Environment(database_url=url))
        gpuplan.warm_up()
        transport = httpx.ASGITransport(app=create_service(gpuplan), client=("127.0.0.1", 50000))
        http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=120)
        with (
            portal.wrap_async_context_manager(http),
            portal.wrap_async_context_manager(Client(create_mcp(gpuplan))) as mcp,
        ):
            yield Interfaces(folder, portal, http, mcp)


def commands() -> Iterator[str]:
    """Every command, and every command with each of its flags."""
    yield from _flags("gpuplan", typer.main.get_command(application()))


def _flags(path: str, command: Any) -> Iterator[str]:
    yield path
    for parameter in command.params:
        yield from (f"{path} {flag}" for flag in parameter.opts if flag.startswith("-"))
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from _flags(f"{path} {name}", below)


def metrics(interfaces: Interfaces) -> set[str]:
    """The names of the figures that `/metrics` shows."""
    return {line.split()[2] for line in interfaces.text("/metrics").splitlines() if line.startswith("# TYPE gpuplan_")}
