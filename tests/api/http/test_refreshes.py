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

from gpuplan.api.http.authentication import access_by
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.access_settings import AccessSettings, Variables
from gpuplan.api.services.composition import open_services
from gpuplan.catalog.runtime.errors import StoreFailure
from gpuplan.catalog.store.run_store import SILENCE, Run
from gpuplan.catalog.store.store import Store
from gpuplan.planner.model.wire import wire
from gpuplan.providers.contract import Rows
from tests.api.clouds_for_tests import NOWHERE, making
from tests.patience import until
from tests.providers.fake_clouds import FakeCloud, price, rows

pytestmark = pytest.mark.slow(reason="refreshes prices in the service")

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]


class Authenticator:
    """A cloud that answers when it is told to."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.cloud = FakeCloud(parallel=1, answers={"us-east-1": rows(price("us-east-1")), "us-east-2": self.answer})

    def answer(self) -> Rows:
        self.inside.set()
        self.go_on.wait(90)
        return rows(price("us-east-2"))


@pytest.fixture
def authenticator() -> Iterator[Authenticator]:
    made = Authenticator()
    yield made
    made.go_on.set()


@pytest.fixture
def client(authenticator: Authenticator, served: Served, own_store: str) -> Iterator[httpx.Client]:
    environment = Environment(database_url=own_store, **NOWHERE)  # type: ignore[arg-type]
    gpuplan = open_services(environment, clouds={"aws": making(authenticator.cloud)})
    with served(create_service(gpuplan)) as served_client:
        yield served_client
    gpuplan.store.close()


def ended(client: httpx.Client, path: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        answer: dict[str, Any] = client.get(path).json()
        return None if answer["status"] == "running" else answer

    return until(over)


@pytest.mark.slow(reason="one long case")
def test_a_refresh_begins_at_once_and_its_report_is_found_where_location_says(
    authenticator: Authenticator, client: httpx.Client
) -> None:
    response = client.post("/v1/refreshes")
    assert response.status_code == 202, response.text
    begun = response.json()
    assert response.headers["location"] == f"/v1/refreshes/{begun['id']}"
    assert (begun["status"], begun["asked"]) == ("running", ["aws"])
    assert authenticator.inside.wait(90)
    # The second region is inside the gate before the first has been counted.
    progress = {"aws": {"done": 1, "total": 2}}
    until(lambda: client.get(response.headers["location"]).json()["progress"] == progress)
    authenticator.go_on.set()
    report = ended(client, response.headers["location"])
    assert (report["id"], report["outcome"]) == (begun["id"], "whole")
    [current] = [snapshot for snapshot in client.get("/v1/snapshots").json()["snapshots"] if snapshot["current"]]
    assert current["id"] == report["snapshot_id"]
    assert [refresh["id"] for refresh in client.get("/v1/refreshes").json()["refreshes"]] == [begun["id"]]
    assert client.get("/readyz").json()["last_refresh"]["outcome"] == "whole"


def test_a_second_refresh_is_a_conflict_while_one_runs(authenticator: Authenticator, client: httpx.Client) -> None:
    first = client.post("/v1/refreshes", json={"provider": ["aws"]})
    second = client.post("/v1/refreshes", json={})
    assert (second.status_code, second.headers["content-type"]) == (409, "application/problem+json")
    assert "another refresh is running" in second.json()["detail"]
    authenticator.go_on.set()
    ended(client, first.headers["location"])
    assert client.post("/v1/refreshes").status_code == 202


def test_the_same_key_starts_one_refresh(authenticator: Authenticator, client: httpx.Client) -> None:
    authenticator.go_on.set()
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
    authenticator: Authenticator, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    monkeypatch.setattr(Store, "record_refresh", full)
    authenticator.go_on.set()
    response = client.post("/v1/refreshes")
    report = ended(client, response.headers["location"])
    assert (report["status"], report["error"]) == ("failed", "database: disk is full; nothing was written")


@pytest.mark.slow(reason="one long case")
def test_another_process_on_the_same_store_sees_a_refresh_run_and_end(
    authenticator: Authenticator, client: httpx.Client, served: Served, tmp_path: Path
) -> None:
    other = open_services(Environment(database_url=f"sqlite:///{tmp_path / 'gpuplan.sqlite3'}"))
    with served(create_service(other)) as elsewhere:
        begun = client.post("/v1/refreshes").json()
        assert authenticator.inside.wait(90)
        for path in (f"/v1/refreshes/{begun['id']}", f"/v1/runs/{begun['id']}"):
            assert elsewhere.get(path).json()["status"] == "running"
        refused = elsewhere.delete(f"/v1/runs/{begun['id']}")
        assert (refused.status_code, "cannot be cancelled" in refused.json()["detail"]) == (409, True)
        authenticator.go_on.set()
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
        status = str(connection.exec_driver_sql(asked, (refresh_id,)).scalar_one())
    store.close()
    return status


def test_a_killed_refresh_has_failed_at_the_next_start_however_soon_that_is(own_store: str, tmp_path: Path) -> None:
    killed(tmp_path, "refresh-1", ago=timedelta(seconds=1))
    started = open_services(Environment(database_url=own_store))
    started.warm_up()
    assert status_of(tmp_path, "refresh-1") == "failed"
    [listed] = wire(started.refreshes.listed())["refreshes"]
    assert (listed["id"], listed["outcome"]) == ("refresh-1", "failed")
    started.store.close()


def test_a_start_ends_no_refresh_of_a_process_that_lives(
    authenticator: Authenticator, client: httpx.Client, own_store: str, tmp_path: Path
) -> None:
    begun = client.post("/v1/refreshes").json()
    assert authenticator.inside.wait(90)
    started = open_services(Environment(database_url=own_store))
    started.warm_up()
    assert status_of(tmp_path, begun["id"]) == "running"
    authenticator.go_on.set()
    assert ended(client, f"/v1/refreshes/{begun['id']}")["outcome"] == "whole"
    started.store.close()


def test_the_next_refresh_ends_one_that_was_killed(
    authenticator: Authenticator, client: httpx.Client, tmp_path: Path
) -> None:
    killed(tmp_path, "refresh-1", ago=timedelta(seconds=1))
    authenticator.go_on.set()
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
    authenticator: Authenticator, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFailure("database: disk is full; nothing was written")

    authenticator.go_on.set()
    written = ended(client, client.post("/v1/refreshes").headers["location"])
    with monkeypatch.context() as broken:
        broken.setattr(Store, "record_refresh", full)
        failed = ended(client, client.post("/v1/refreshes").headers["location"])
    listed = client.get("/v1/refreshes").json()["refreshes"]
    assert [refresh["id"] for refresh in listed] == [failed["id"], written["id"]]
    assert listed[0]["summary"] == "refresh: failed; database: disk is full; nothing was written"


def test_a_refresh_that_was_slow_to_say_so_has_ended_as_its_report_says(
    authenticator: Authenticator, client: httpx.Client, tmp_path: Path
) -> None:
    authenticator.go_on.set()
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
    authenticator: Authenticator, served: Served, own_store: str, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    environment = Environment(database_url=own_store, **NOWHERE)  # type: ignore[arg-type]
    gpuplan = open_services(environment, clouds={"aws": making(authenticator.cloud)})
    key = gpuplan.api_keys.make({"name": "nightly", "scope": "refresh", "plans_per_day": 1}).key
    settings = AccessSettings(variables=Variables(), oidc=None, admin_key=None)

    def broken(*_: Any, **__: Any) -> None:
        raise StoreFailure("the disk is full")

    if fails:
        monkeypatch.setattr(Store, "record_refresh", broken)
    with served(create_service(gpuplan, access=access_by(gpuplan.store.access, settings))) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        begun = client.post("/v1/refreshes", json={}).json()
        authenticator.go_on.set()
        ended(client, f"/v1/refreshes/{begun['id']}")
        entries = until(
            lambda: [
                record for record in gpuplan.audit_log.page(identity="nightly").records if record.subject == begun["id"]
            ]
        )
    assert [record.action for record in gpuplan.audit_log.page().records if record.subject == begun["id"]] == [
        "refresh"
    ]
    assert entries[0].via == "key"
    assert (entries[0].outcome == "failed") is fails
    gpuplan.store.close()
