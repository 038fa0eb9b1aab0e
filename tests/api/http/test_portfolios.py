"""Portfolios over HTTP: answered at once or followed as a run, by any process, until done, cancelled or given up."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import KINDS, execute
from gpuplan.api.jobs.thread_pool import Pool
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.run_store import SILENCE, Run
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended
from tests.patience import until

pytestmark = pytest.mark.slow(reason="plans portfolios in the service")

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]

TUNING: dict[str, Any] = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "constraints": {"max_nodes": 2, "providers": ["aws"], "price_kinds": ["on_demand"], "accelerators": ["A10G"]},
}
AT_ONCE = {"Prefer": "wait=30"}
LATER = {"Prefer": "respond-async"}


def document(count: int = 2, **changes: object) -> dict[str, Any]:
    jobs = [TUNING | {"name": f"job-{i}", "deadline": "48h"} for i in range(count)]
    return {"start": "2026-11-21T12:00Z", "slot": "2h", "jobs": jobs} | changes


def hard() -> dict[str, Any]:
    """More jobs than fit, each a little different: no proof within a minute, and a plan at once."""
    workload, jobs = TUNING["workload"], []
    for i in range(30):
        sized = {"workload": workload | {"tokens": f"{150 + 13 * (i % 9)}M"}, "value": 300 + 7 * i % 50}
        jobs.append(TUNING | sized | {"deadline": f"{30 + i % 17}h", "release": f"{i % 11}h"})
    quotas = [{"provider": "aws", "accelerators": 40}]
    return {"start": "2026-11-21T12:00Z", "slot": "1h", "quotas": quotas, "jobs": jobs}


def ended(client: httpx.Client, path: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        run_answer: dict[str, Any] = client.get(path).json()
        return None if run_answer["status"] in {"queued", "running"} else run_answer

    return until(over)


def test_a_portfolio_that_is_soon_planned_is_the_object_that_the_command_line_gives(
    client: httpx.Client, run: Callable[..., Ended], job_file: Callable[..., Path]
) -> None:
    response = client.post("/v1/portfolios?iterations=50&seed=3", json=document(), headers=AT_ONCE)
    assert response.status_code == 200, response.text
    shown = json.loads(run("portfolio", job_file(document()), "--json", "--iterations", "50", "--seed", "3").out)
    answer = response.json()
    assert answer["portfolio"] == shown["portfolio"]
    assert set(answer) == set(shown) == {"portfolio", "meta"}
    assert response.headers["preference-applied"] == "wait=30"
    read_again = client.get(response.headers["content-location"])
    assert read_again.json() == answer
    assert client.get(read_again.url, headers={"If-None-Match": read_again.headers["etag"]}).status_code == 304


def test_one_who_does_not_wait_follows_the_run_to_the_same_answer(client: httpx.Client) -> None:
    response = client.post("/v1/portfolios", json=document(), headers=LATER)
    assert response.status_code == 202
    assert (response.headers["preference-applied"], response.headers["vary"]) == ("respond-async", "Prefer")
    begun = response.json()
    assert response.headers["location"] == f"/v1/runs/{begun['id']}"
    assert begun["kind"] == "portfolio"
    run_answer = ended(client, response.headers["location"])
    assert (run_answer["status"], run_answer["kind"], run_answer["error"]) == ("done", "portfolio", None)
    assert client.get(run_answer["answer_at"]).json() == run_answer["answer"]
    certificate = run_answer["answer"]["portfolio"]["certificate"]
    assert run_answer["progress"]["objective_usd"] == certificate["objective_usd"]
    assert run_answer["progress"]["cost_usd"] == run_answer["answer"]["portfolio"]["cost_usd"]
    assert (run_answer["progress"]["jobs_planned"], run_answer["progress"]["jobs"]) == (2, 2)
    assert run_answer["created_at"] <= run_answer["started_at"] <= run_answer["finished_at"]


def test_one_job_is_refused_as_no_portfolio(client: httpx.Client) -> None:
    refused = client.post("/v1/portfolios", json=TUNING)
    assert refused.status_code == 422
    (fault,) = refused.json()["errors"]
    assert fault["pointer"] == "/jobs"
    assert fault["detail"].startswith("is missing: this is one job, not a portfolio; list jobs under jobs")


def test_a_long_one_answers_within_a_second_or_so_and_a_cancel_keeps_the_best_plan_with_its_gap(
    client: httpx.Client,
) -> None:
    response = client.post("/v1/portfolios?time_limit=600", json=hard())
    assert response.status_code == 202, response.text
    path = response.headers["location"]
    running = until(lambda: response if (response := client.get(path)).json()["progress"] else None)
    assert (running.json()["status"], running.headers["retry-after"]) == ("running", "2")
    assert client.get(f"/v1/portfolios/{running.json()['id']}").status_code == 404
    asked = client.delete(path)
    assert (asked.status_code, asked.json()["cancel_asked"]) == (200, True)
    run_answer = ended(client, path)
    assert run_answer["status"] == "cancelled"
    portfolio = run_answer["answer"]["portfolio"]
    assert portfolio["jobs"]
    assert portfolio["certificate"]["gap"] == pytest.approx(run_answer["progress"]["gap"], rel=1e-4)
    history, final = run_answer["progress"]["history"], run_answer["progress"]
    assert {name: history[-1][name] for name in ("objective_usd", "bound_usd")}.items() <= final.items()
    assert 0 <= history[0]["seconds"] <= history[-1]["seconds"] <= final["seconds"]
    assert client.delete(path).json() == run_answer


def test_who_waits_for_a_run_does_not_hold_a_service_that_is_told_to_stop(gpuplan: Services, served: Served) -> None:
    service = create_service(gpuplan)
    with served(service) as client, ThreadPoolExecutor(1) as thread:
        headers = {"Prefer": "wait=50"}
        waiting = thread.submit(client.post, "/v1/portfolios?time_limit=600", json=hard(), headers=headers)
        time.sleep(1)  # by then it usually waits; one that comes later waits for nothing either
        service.state.health.stop()
        answer = waiting.result(60)
        assert (answer.status_code, answer.headers["connection"]) == (202, "close")
        assert answer.json()["status"] in {"queued", "running"}
        path = answer.headers["location"]
    # The end of the service has let the run keep the best that it found.
    run_answer = wire(gpuplan.runs.one(path.rsplit("/", 1)[1]))
    assert (run_answer["status"], run_answer["error"]) == ("cancelled", {"detail": "the service was stopped"})


def test_the_same_key_is_one_run(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "portfolio-1"}
    first = client.post("/v1/portfolios", json=document(), headers=LATER | key)
    again = client.post("/v1/portfolios", json=document(), headers=AT_ONCE | key)
    assert again.status_code == 200
    assert again.headers["content-location"].rsplit("/", 1)[1] == first.json()["id"]
    other = client.post("/v1/portfolios", json=document(3), headers=key)
    assert (other.status_code, other.json()["errors"][0]["in"]) == (422, "header")


def test_the_same_key_at_the_same_time_is_one_run_too(client: httpx.Client) -> None:
    headers = LATER | {"Idempotency-Key": "portfolio-at-once"}

    def post(_: int) -> str:
        return client.post("/v1/portfolios", json=document(), headers=headers).headers["location"]

    with ThreadPoolExecutor(4) as threads:
        [path] = set(threads.map(post, range(4)))
    assert ended(client, path)["status"] == "done"


class StoppedPlanning:
    """Executes runs when it is told to."""

    def __init__(self, gpuplan: Services) -> None:
        self.gpuplan, self.go_on = gpuplan, threading.Event()

    def __call__(self, heartbeat: Heartbeat) -> None:
        while not self.go_on.wait(0.02) and not heartbeat.cancelled():
            pass
        execute(self.gpuplan, heartbeat)


@pytest.fixture
def held(gpuplan: Services) -> Iterator[StoppedPlanning]:
    made = StoppedPlanning(gpuplan)
    yield made
    made.go_on.set()


@pytest.fixture
def slow(gpuplan: Services, held: StoppedPlanning, served: Served) -> Iterator[httpx.Client]:
    service = create_service(gpuplan)
    service.state.pool = Pool(held, at_once=1, waiting=1)
    with served(service) as slow_client:
        yield slow_client
        held.go_on.set()


def test_more_runs_than_may_wait_are_refused_with_when_to_come_back(slow: httpx.Client, held: StoppedPlanning) -> None:
    begun = [slow.post("/v1/portfolios", json=document(), headers=LATER) for _ in range(2)]
    assert [response.status_code for response in begun] == [202, 202]
    refused = slow.post("/v1/portfolios", json=document(), headers=LATER)
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
    assert int(refused.headers["retry-after"]) > 0
    assert [slow.delete(response.headers["location"]).status_code for response in begun] == [200, 200]
    answers = [ended(slow, response.headers["location"]) for response in begun]
    assert [(answer["status"], answer["answer"], answer["answer_at"]) for answer in answers] == [
        ("cancelled", None, None)
    ] * 2
    missing = slow.get(f"/v1/portfolios/{answers[0]['id']}")
    assert (missing.status_code, "its run cancelled" in missing.json()["detail"]) == (404, True)


def test_another_process_on_the_same_store_follows_and_cancels_a_run(
    slow: httpx.Client, client: httpx.Client, held: StoppedPlanning
) -> None:
    path = slow.post("/v1/portfolios", json=document(), headers=LATER).headers["location"]
    assert client.get(path).json()["status"] in {"queued", "running"}
    assert client.delete(path).json()["cancel_asked"]
    assert ended(client, path)["status"] == "cancelled"
    path = slow.post("/v1/portfolios", json=document(), headers=LATER).headers["location"]
    held.go_on.set()
    assert ended(client, path)["answer"] == ended(slow, path)["answer"]


def test_a_service_that_stops_ends_its_runs_and_the_next_one_knows(
    gpuplan: Services, client: httpx.Client, held: StoppedPlanning, served: Served
) -> None:
    service = create_service(gpuplan)
    service.state.pool = Pool(held, at_once=1, waiting=1)
    with served(service) as stopping:
        path = stopping.post("/v1/portfolios", json=document(), headers=LATER).headers["location"]
    run_answer = client.get(path).json()
    assert (run_answer["status"], run_answer["error"]) == ("cancelled", {"detail": "the service was stopped"})


def test_a_run_whose_process_died_has_failed_and_says_so(gpuplan: Services, client: httpx.Client) -> None:
    long_ago = datetime.now(UTC) - SILENCE - timedelta(seconds=1)
    run = Run(id="of-the-dead", kind="portfolio", status="running", request={}, created_at=long_ago, beat_at=long_ago)
    gpuplan.store.runs.add(run)
    run_answer = client.get("/v1/runs/of-the-dead").json()
    assert run_answer["status"] == "failed"
    assert "its process ended" in run_answer["error"]["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"jobs": [{}] * 100_000}, "/jobs"),
        ({"jobs": []}, "/jobs"),
        ({"jobs": 7}, "/jobs"),
        ({"jobs": [TUNING], "slots": 4}, "/slots"),
        ({"jobs": [TUNING | {"deadline": "soon"}]}, "/jobs/0/deadline"),
        ({"jobs": [TUNING, TUNING | {"workload": TUNING["workload"] | {"tokens": 8}}]}, "/jobs/1/workload/tokens"),
        ({"jobs": [TUNING | {"release": "2020-01-01T00:00Z"}]}, "/jobs/0/release"),
        ({"jobs": [TUNING], "horizon": "7d", "slot": "5min"}, "/slot"),
        ({"jobs": [TUNING], "quotas": [{"provider": "aws", "accelerators": -1}]}, "/quotas/0/accelerators"),
    ],
)
def test_a_portfolio_that_cannot_be_read_is_a_problem_with_a_pointer_and_no_run(
    client: httpx.Client, body: dict[str, Any], pointer: str
) -> None:
    response = client.post("/v1/portfolios", json=body, headers=LATER)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


def test_a_fault_that_only_planning_finds_is_the_same_problem_at_once_and_later(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def too_large(*_: object) -> dict[str, Any]:
        raise UnusableInput.at("slot", message="makes too many columns; give a longer slot")

    monkeypatch.setitem(KINDS, "portfolio", too_large)
    at_once = client.post("/v1/portfolios", json=document(), headers=AT_ONCE)
    assert (at_once.status_code, at_once.headers["content-type"]) == (422, "application/problem+json")
    [fault] = at_once.json()["errors"]
    assert (fault["pointer"], fault["in"]) == ("/slot", "body")
    later = ended(client, client.post("/v1/portfolios", json=document(), headers=LATER).headers["location"])
    assert (later["status"], later["answer"]) == ("failed", None)
    assert later["error"]["errors"] == [{"pointer": "/slot", "detail": fault["detail"]}]
    assert [record.message for record in caplog.records if record.name == "gpuplan.runs"]
    assert not [
        record for record in caplog.records if record.exc_info
    ]  # a fault of the document is no defect of gpuplan


def test_a_body_beyond_all_portfolios_is_cut_off(client: httpx.Client) -> None:
    response = client.post("/v1/portfolios", json={"jobs": [TUNING] * 100_000})
    assert response.status_code == 413


@pytest.mark.parametrize(
    "query",
    ["time_limit=0", "time_limit=nan", "time_limit=inf", "time_limit=3601", "iterations=0", "seed=-1", "limit=3"],
)
def test_a_search_without_sense_is_refused(client: httpx.Client, query: str) -> None:
    response = client.post(f"/v1/portfolios?{query}", json=document())
    assert (response.status_code, response.json()["errors"][0]["in"]) == (422, "query")


def test_a_snapshot_that_is_not_there_is_not_found(client: httpx.Client) -> None:
    assert client.post("/v1/portfolios?snapshot=feed", json=document()).status_code == 404


@pytest.mark.parametrize("path", ["/v1/runs/nobody", "/v1/portfolios/nobody", "/v1/runs/%00", "/v1/buy/nobody"])
def test_what_nobody_asked_for_is_not_found(client: httpx.Client, path: str) -> None:
    for response in (client.get(path), client.delete(path)):
        assert response.status_code in {404, 405}
        assert response.headers["content-type"] == "application/problem+json"
