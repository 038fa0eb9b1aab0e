"""Refreshes over HTTP: begun at once, one at a time, read while they run and when they have ended."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from api.app import Gpuplan
from api.http.service import create_service
from api.settings import Environment
from catalog.errors import StoreFailure
from catalog.store import Store
from providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, making
from tests.providers.fake_clouds import FakeCloud, price, rows

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]


class Gate:
    """A cloud that answers when it is told to."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.cloud = FakeCloud(parallel=1, answers={"us-east-1": rows(price("us-east-1")), "us-east-2": self.answer})

    def answer(self) -> Rows:
        self.inside.set()
        self.go_on.wait(30)
        return rows(price("us-east-2"))


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.go_on.set()


@pytest.fixture
def client(gate: Gate, served: Served, tmp_path: Path) -> Iterator[httpx.Client]:
    environment = Environment(database_url=f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}", **NOWHERE)  # type: ignore[arg-type]
    gpuplan = Gpuplan(environment, clouds={"aws": making(gate.cloud)})
    with served(create_service(gpuplan)) as found:
        yield found
    gpuplan.store.close()


def ended(client: httpx.Client, path: str) -> dict[str, Any]:
    for _ in range(600):
        answer: dict[str, Any] = client.get(path).json()
        if answer["status"] != "running":
            return answer
        time.sleep(0.05)
    pytest.fail("the refresh did not end")


def test_a_refresh_begins_at_once_and_its_report_is_found_where_location_says(gate: Gate, client: httpx.Client) -> None:
    response = client.post("/v1/refreshes")
    assert response.status_code == 202, response.text
    begun = response.json()
    assert response.headers["location"] == f"/v1/refreshes/{begun['id']}"
    assert (begun["status"], begun["asked"]) == ("running", ["aws"])
    assert gate.inside.wait(30)
    for _ in range(600):  # the second region is inside the gate before the first has been counted
        progress = client.get(response.headers["location"]).json()["progress"]
        if progress == {"aws": {"done": 1, "total": 2}}:
            break
        threading.Event().wait(0.05)
    assert progress == {"aws": {"done": 1, "total": 2}}
    gate.go_on.set()
    report = ended(client, response.headers["location"])
    assert (report["id"], report["outcome"]) == (begun["id"], "whole")
    [current] = [each for each in client.get("/v1/snapshots").json()["snapshots"] if each["current"]]
    assert current["id"] == report["snapshot_id"]
    assert [each["id"] for each in client.get("/v1/refreshes").json()["refreshes"]] == [begun["id"]]
    assert client.get("/readyz").json()["last_refresh"]["outcome"] == "whole"


def test_a_second_refresh_is_a_conflict_while_one_runs(gate: Gate, client: httpx.Client) -> None:
    first = client.post("/v1/refreshes", json={"provider": ["aws"]})
    second = client.post("/v1/refreshes", json={})
    assert (second.status_code, second.headers["content-type"]) == (409, "application/problem+json")
    assert "another refresh is running" in second.json()["detail"]
    gate.go_on.set()
    ended(client, first.headers["location"])
    assert client.post("/v1/refreshes").status_code == 202


def test_the_same_key_starts_one_refresh(gate: Gate, client: httpx.Client) -> None:
    gate.go_on.set()
    headers = {"Idempotency-Key": "night-1"}
    first = client.post("/v1/refreshes", headers=headers)
    ended(client, first.headers["location"])
    assert client.post("/v1/refreshes", headers=headers).json() == first.json()
    assert len(client.get("/v1/refreshes").json()["refreshes"]) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"provider": ["oracle"]}, "/provider"),
        ({"provider": "aws"}, "/provider"),
        ({"accept_los": True}, "/accept_los"),
        ({"time_limit_minutes": -1}, "/time_limit_minutes"),
    ],
)
def test_an_unusable_wish_is_a_problem_with_a_pointer(client: httpx.Client, body: object, pointer: str) -> None:
    response = client.post("/v1/refreshes", json=body)
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, pointer)
    assert client.get("/v1/refreshes").json() == {"refreshes": []}


def test_a_refresh_that_nobody_knows_is_not_found(client: httpx.Client) -> None:
    assert client.get("/v1/refreshes/refresh-1").status_code == 404


def test_a_store_that_fails_at_the_end_is_said_where_the_report_would_be(
    gate: Gate, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    monkeypatch.setattr(Store, "record_refresh", full)
    gate.go_on.set()
    response = client.post("/v1/refreshes")
    report = ended(client, response.headers["location"])
    assert (report["status"], report["error"]) == ("failed", "database: disk is full; nothing was written")
