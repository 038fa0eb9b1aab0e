"""Refreshes over HTTP: begun at once, one at a time, read while they run and when they have ended."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from api.app import Gpuplan
from api.http.access import access_by
from api.http.service import create_service
from api.identity.settings import AccessSettings, Variables
from api.settings import Environment
from catalog.errors import StoreFailure
from catalog.runs import SILENCE, Run
from catalog.store import Store
from providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, making
from tests.patience import until
from tests.providers.fake_clouds import FakeCloud, price, rows

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]


class Gate:
    """A cloud that answers when it is told to."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.cloud = FakeCloud(parallel=1, answers={"us-east-1": rows(price("us-east-1")), "us-east-2": self.answer})

    def answer(self) -> Rows:
        self.inside.set()
        self.go_on.wait(90)
        return rows(price("us-east-2"))


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.go_on.set()


@pytest.fixture
def client(gate: Gate, served: Served, own_store: str) -> Iterator[httpx.Client]:
    environment = Environment(database_url=own_store, **NOWHERE)  # type: ignore[arg-type]
    gpuplan = Gpuplan(environment, clouds={"aws": making(gate.cloud)})
    with served(create_service(gpuplan)) as found:
        yield found
    gpuplan.store.close()


def ended(client: httpx.Client, path: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        answer: dict[str, Any] = client.get(path).json()
        return None if answer["status"] == "running" else answer

    return until(over)


def test_a_refresh_begins_at_once_and_its_report_is_found_where_location_says(gate: Gate, client: httpx.Client) -> None:
    response = client.post("/v1/refreshes")
    assert response.status_code == 202, response.text
    begun = response.json()
    assert response.headers["location"] == f"/v1/refreshes/{begun['id']}"
    assert (begun["status"], begun["asked"]) == ("running", ["aws"])
    assert gate.inside.wait(90)
    # The second region is inside the gate before the first has been counted.
    counted = {"aws": {"done": 1, "total": 2}}
    until(lambda: client.get(response.headers["location"]).json()["progress"] == counted)
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
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    monkeypatch.setattr(Store, "record_refresh", full)
    gate.go_on.set()
    response = client.post("/v1/refreshes")
    report = ended(client, response.headers["location"])
    assert (report["status"], report["error"]) == ("failed", "database: disk is full; nothing was written")


def test_another_process_on_the_same_store_sees_a_refresh_run_and_end(
    gate: Gate, client: httpx.Client, served: Served, tmp_path: Path
) -> None:
    other = Gpuplan(Environment(database_url=f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"))
    with served(create_service(other)) as elsewhere:
        begun = client.post("/v1/refreshes").json()
        assert gate.inside.wait(90)
        for path in (f"/v1/refreshes/{begun['id']}", f"/v1/runs/{begun['id']}"):
            assert elsewhere.get(path).json()["status"] == "running"
        refused = elsewhere.delete(f"/v1/runs/{begun['id']}")
        assert (refused.status_code, "cannot be cancelled" in refused.json()["detail"]) == (409, True)
        gate.go_on.set()
        report = ended(elsewhere, f"/v1/refreshes/{begun['id']}")
        assert report["outcome"] == "whole"
        run = ended(elsewhere, f"/v1/runs/{begun['id']}")
        assert (run["status"], run["kind"], run["answer"]) == ("done", "refresh", None)
        assert elsewhere.get(run["answer_at"]).json() == report
        assert run["progress"] == {"aws": {"done": 2, "total": 2}}
    other.store.close()


def test_a_refresh_whose_process_died_has_failed_and_says_so(client: httpx.Client, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    at = datetime.now(UTC) - SILENCE - timedelta(seconds=1)
    run = Run(id="refresh-1", kind="refresh", status="running", request={"asked": ["aws"]}, created_at=at, beat_at=at)
    store.runs.add(run)
    store.close()
    report = client.get("/v1/refreshes/refresh-1").json()
    assert (report["status"], report["asked"]) == ("failed", ["aws"])
    assert "its process ended" in report["error"]
    assert client.get("/v1/runs/refresh-1").json()["status"] == "failed"


def killed(path: Path, refresh_id: str, *, ago: timedelta) -> None:
    """A refresh as its process leaves it that is killed: it runs, and was heard of so long ago."""
    store = Store.open(f"sqlite:///{path / 'gpuplan.sqlite3'}")
    at = datetime.now(UTC) - ago
    run = Run(id=refresh_id, kind="refresh", status="running", request={"asked": ["aws"]}, created_at=at, beat_at=at)
    store.runs.add(run)
    store.close()


def status_of(path: Path, refresh_id: str) -> str:
    """As it stands in the table, which looking at it through gpuplan might change."""
    store = Store.open(f"sqlite:///{path / 'gpuplan.sqlite3'}")
    with store.engine.connect() as connection:
        asked = "SELECT status FROM runs WHERE id = ?"
        found = str(connection.exec_driver_sql(asked, (refresh_id,)).scalar_one())
    store.close()
    return found


def test_a_killed_refresh_has_failed_at_the_next_start_however_soon_that_is(own_store: str, tmp_path: Path) -> None:
    killed(tmp_path, "refresh-1", ago=timedelta(seconds=1))
    started = Gpuplan(Environment(database_url=own_store))
    started.warm_up()
    assert status_of(tmp_path, "refresh-1") == "failed"
    [listed] = started.refreshes()["refreshes"]
    assert (listed["id"], listed["outcome"]) == ("refresh-1", "failed")
    started.store.close()


def test_a_start_ends_no_refresh_of_a_process_that_lives(
    gate: Gate, client: httpx.Client, own_store: str, tmp_path: Path
) -> None:
    begun = client.post("/v1/refreshes").json()
    assert gate.inside.wait(90)
    started = Gpuplan(Environment(database_url=own_store))
    started.warm_up()
    assert status_of(tmp_path, begun["id"]) == "running"
    gate.go_on.set()
    assert ended(client, f"/v1/refreshes/{begun['id']}")["outcome"] == "whole"
    started.store.close()


def test_the_next_refresh_ends_one_that_was_killed(gate: Gate, client: httpx.Client, tmp_path: Path) -> None:
    killed(tmp_path, "refresh-1", ago=timedelta(seconds=1))
    gate.go_on.set()
    ended(client, f"/v1/refreshes/{client.post('/v1/refreshes').json()['id']}")
    assert status_of(tmp_path, "refresh-1") == "failed"


def test_a_killed_refresh_is_listed_as_failed_once_its_lease_is_over(client: httpx.Client, tmp_path: Path) -> None:
    killed(tmp_path, "refresh-1", ago=SILENCE + timedelta(seconds=1))
    [listed] = client.get("/v1/refreshes").json()["refreshes"]
    assert (listed["id"], listed["status"], listed["outcome"]) == ("refresh-1", "failed", "failed")
    assert listed["summary"].startswith("refresh: failed; nothing was heard of it since ")
    assert status_of(tmp_path, "refresh-1") == "failed"
    page = client.get("/changes").text
    assert "refresh-1" in page
    assert client.get("/changes/refreshes/refresh-1").status_code == 200


def test_a_refresh_that_met_a_full_disk_is_listed_beside_those_that_were_written(
    gate: Gate, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    gate.go_on.set()
    written = ended(client, client.post("/v1/refreshes").headers["location"])
    with monkeypatch.context() as broken:
        broken.setattr(Store, "record_refresh", full)
        failed = ended(client, client.post("/v1/refreshes").headers["location"])
    listed = client.get("/v1/refreshes").json()["refreshes"]
    assert [each["id"] for each in listed] == [failed["id"], written["id"]]
    assert listed[0]["summary"] == "refresh: failed; database: disk is full; nothing was written"


def test_a_refresh_that_was_slow_to_say_so_has_ended_as_its_report_says(
    gate: Gate, client: httpx.Client, tmp_path: Path
) -> None:
    gate.go_on.set()
    begun = client.post("/v1/refreshes").json()
    report = ended(client, f"/v1/refreshes/{begun['id']}")
    ended(client, f"/v1/runs/{begun['id']}")
    store = Store.open(f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}")
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET status = 'failed', error = '{\"detail\": \"silent\"}'")
    run = client.get(f"/v1/runs/{begun['id']}").json()
    assert (run["status"], run["error"]) == ("done", None)
    assert client.get(run["answer_at"]).json() == report
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM runs")
    assert client.get(f"/v1/runs/{begun['id']}").json()["status"] == "done"
    assert client.get(f"/v1/refreshes/{begun['id']}").json() == report
    store.close()


@pytest.mark.parametrize("fails", [False, True])
def test_a_refresh_is_recorded_once_as_theirs_who_asked_for_it(
    gate: Gate, served: Served, own_store: str, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    environment = Environment(database_url=own_store, **NOWHERE)  # type: ignore[arg-type]
    gpuplan = Gpuplan(environment, clouds={"aws": making(gate.cloud)})
    key = gpuplan.make_key({"name": "nightly", "scope": "refresh", "plans_per_day": 1})["key"]
    settings = AccessSettings(variables=Variables(), oidc=None, admin_key=None)

    def broken(*_: Any, **__: Any) -> None:
        raise StoreFailure("the disk is full")

    if fails:
        monkeypatch.setattr(Store, "record_refresh", broken)
    with served(create_service(gpuplan, access=access_by(gpuplan.store.access, settings))) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        begun = client.post("/v1/refreshes", json={}).json()
        gate.go_on.set()
        ended(client, f"/v1/refreshes/{begun['id']}")
        found = until(lambda: [each for each in gpuplan.audit(who="nightly").records if each["subject"] == begun["id"]])
    assert [each["action"] for each in gpuplan.audit().records if each["subject"] == begun["id"]] == ["refresh"]
    assert found[0]["via"] == "key"
    assert (found[0]["outcome"] == "failed") is fails
    gpuplan.store.close()
