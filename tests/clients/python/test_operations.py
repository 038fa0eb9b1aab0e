"""Both clients against the whole OpenAPI document: each operation with all its parameters, and an error for each status."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

import gpuplan_client
from gpuplan_client import AsyncClient, Client, GpuplanError, Refused, Unreachable
from tests.openapi_document import openapi_document

ANY = "any"
PROBLEM = {"type": "about:blank", "title": "No", "detail": "no"}
#: An answer that fits wherever the client itself looks into one; each page names one more page.
ANSWER: dict[str, Any] = {"id": ANY, "kind": "portfolio", "status": "done", "answer": {}, "error": None}
LISTS = ("offers", "prices", "entries")
#: What a method is called beside what the operations need.
OF_THE_CLIENT = {"close", "send", "from_environment"}

Asked = dict[tuple[str, str], set[str]]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document()


@pytest.fixture(scope="module")
def wanted(document: dict[str, Any]) -> Asked:
    """The query's parameters of every operation, by its method and path."""
    return {
        (method.upper(), path): {
            parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    }


def noting(wanted: Asked) -> tuple[Callable[[httpx.Request], httpx.Response], Asked]:
    """A service that answers everything, and what it was asked with which parameters; other paths are refused."""
    asked: Asked = {}

    def answer(request: httpx.Request) -> httpx.Response:
        for method, path in wanted:
            pattern = re.sub(r"\{[^}]+\}", "[^/]+", path)
            if method == request.method and re.fullmatch(pattern, request.url.path):
                asked.setdefault((method, path), set()).update(request.url.params)
                next_cursor = None if "cursor" in request.url.params else ANY
                return httpx.Response(200, json=ANSWER | {name: [] for name in LISTS} | {"next_cursor": next_cursor})
        return httpx.Response(404, json=PROBLEM)

    return answer, asked


def answering(response: httpx.Response) -> Client:
    """A client of a service that says nothing else."""
    return Client(transport=httpx.MockTransport(lambda _: response), attempts=1)


def called(client: Client | AsyncClient) -> Iterator[Any]:
    """What each method gives for arguments of every kind that it takes."""
    for name in vars(type(client)):
        if name.startswith("_") or name in OF_THE_CLIENT:
            continue
        method = getattr(client, name)
        parameters = inspect.signature(method).parameters.values()
        given = [
            argument(parameter) for parameter in parameters if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        named = {
            parameter.name: argument(parameter)
            for parameter in parameters
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        yield method(*given, **named)
    yield client.actuals()


def argument(parameter: inspect.Parameter) -> Any:
    kind = str(parameter.annotation)
    if "Document" in kind:
        return {"name": ANY}
    if "bool" in kind:
        return True
    return 3 if re.search(r"\b(int|float)\b", kind) else ANY


def test_the_client_that_waits_asks_every_operation_with_all_its_parameters(wanted: Asked) -> None:
    answer, asked = noting(wanted)
    with Client(transport=httpx.MockTransport(answer)) as client:
        for result in called(client):
            if isinstance(result, Iterator):
                assert list(result) == []
    assert asked == wanted


def test_the_client_to_be_awaited_asks_every_operation_with_all_its_parameters(wanted: Asked) -> None:
    answer, asked = noting(wanted)

    async def ask() -> None:
        async with AsyncClient(transport=httpx.MockTransport(answer)) as client:
            for result in called(client):
                if isinstance(result, AsyncIterator):
                    assert [row async for row in result] == []
                else:
                    assert isinstance(result, Awaitable)
                    await result

    asyncio.run(ask())
    assert asked == wanted


def test_every_refusal_that_the_document_names_has_an_error_of_its_own(document: dict[str, Any]) -> None:
    statuses = {
        int(status)
        for path, methods in document["paths"].items()
        for operation in methods.values()
        for status in operation["responses"]
        if path.startswith("/v1/") and 400 <= int(status) < 500
    } - {406}  # the client names no media type that could be refused
    assert statuses >= {404, 409, 422, 429}
    for status in sorted(statuses):
        with answering(httpx.Response(status, json=PROBLEM)) as client, pytest.raises(Refused) as raised:
            client.presets()
        assert type(raised.value) is not Refused, status
        assert type(raised.value).__name__ in gpuplan_client.__all__
        assert raised.value.status == status


@pytest.mark.parametrize("body", [b"[]", b"null", b'"planned"', b"7", b"\xff", b"[" * 100_000, b"9" * 5_000])
def test_what_is_no_object_is_no_answer_of_gpuplan_and_no_problem_either(body: bytes) -> None:
    for status, error in ((200, Unreachable), (500, Refused)):
        with answering(httpx.Response(status, content=body)) as client, pytest.raises(error) as raised:
            client.snapshots()
        assert isinstance(raised.value, GpuplanError)
