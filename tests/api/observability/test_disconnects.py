"""A client that closes its connection before its request is here: no answer, no traceback, and no failure of the service."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from tests.api.http.guarded import guarded
from tests.patience import until

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
Lines = Callable[[], list[dict[str, Any]]]

#: A path, the content type it takes, and the route as it is counted.
BODIES = [
    ("/v1/plans", "application/json"),
    ("/v1/why", "application/yaml"),
    ("/login", "application/x-www-form-urlencoded"),
    ("/plans", "application/x-www-form-urlencoded"),
    ("/plans", "multipart/form-data; boundary=x"),
]


def leave_within(at: httpx.URL, path: str, content_type: str) -> None:
    """Announces a body of 50 bytes, sends 5 of them and closes the connection."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\nContent-Length: 50\r\n\r\n--x\r\n"
    )
    with socket.create_connection((at.host, at.port or 80), timeout=60) as connection:
        connection.sendall(head.encode())


def request_counts(client: httpx.Client, route: str) -> dict[str, float]:
    """Requests by status of one route."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        sample.labels["status"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "gpuplan_http_request_seconds_count"
        and sample.labels["route"] == route
        and sample.labels["method"] == "POST"
    }


@pytest.fixture(scope="module")
def client(gpuplan: Any, served: Served) -> Iterator[httpx.Client]:
    with served(create_service(gpuplan)) as served_client:
        yield served_client


@pytest.mark.parametrize(("path", "content_type"), BODIES)
def test_a_client_that_leaves_within_its_body_is_no_failure(
    client: httpx.Client, lines: Lines, path: str, content_type: str
) -> None:
    before = request_counts(client, path)
    leave_within(client.base_url, path, content_type)
    [line_logged] = until(lambda: [line for line in lines() if line.get("path") == path])
    assert (line_logged["event"], line_logged["level"], line_logged["status"]) == (
        "request closed by the client",
        "info",
        0,
    )
    after = request_counts(client, path)
    assert after.pop("none") == before.pop("none", 0) + 1
    assert after == before
    assert not [line for line in lines() if "exception" in line]


def test_a_client_that_leaves_within_a_login_is_no_failed_login(
    embedded_store: Path, tmp_path: Path, lines: Lines
) -> None:
    with guarded(embedded_store, tmp_path) as service:
        leave_within(service.client.base_url, "/login", "application/x-www-form-urlencoded")
        [line_logged] = until(lambda: [line for line in lines() if line.get("path") == "/login"])
        assert line_logged["event"] == "request closed by the client"
        assert not service.gpuplan.store.access.audit(identity="nobody")
        assert not [line for line in lines() if line["level"] in {"warning", "error"}]
