"""What counts against the plans of a day and what the audit log says of it; keys that are of one identity alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.thread_workers import Workers
from tests.api.http.guarded import Guarded, guarded
from tests.api.spot_run import RUN
from tests.patience import DAY, enough_left


@pytest.fixture(scope="module")
def service(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(embedded_store, tmp_path_factory.mktemp("counted")) as guarded_service:
        yield guarded_service


def made(service: Guarded, name: str, **limits: int) -> str:
    answer = service.ask("POST", "/v1/keys", "admin", json={"name": name, "scope": "plan"} | limits)
    key: str = answer.json()["key"]
    return key


def recorded(service: Guarded, identity: str) -> list[tuple[str, str, str]]:
    entries = service.gpuplan.store.access.audit(identity=identity)
    return [(entry.record.action, entry.record.subject, entry.record.outcome) for entry in reversed(entries)]


@pytest.mark.slow(reason="one long case")
def test_every_question_that_makes_the_planner_work_is_recorded_and_counts(
    service: Guarded, job: dict[str, Any], question: dict[str, Any]
) -> None:
    enough_left(DAY, 60)
    key = made(service, "curious", plans_per_day=5)
    plan = service.ask("POST", "/v1/plans", key, json=job).json()
    plan_id = plan["plan"]["id"]
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/v1/estimates", question),
        ("/v1/why", {"job": job}),
        ("/v1/verify", plan),
        ("/v1/run-policies", {"run": RUN}),
    )
    for path, document in asked:
        answer = service.ask("POST", path, key, json=document)
        assert answer.status_code == 200, answer.text
    entries = recorded(service, "curious")
    assert entries[0] == ("plan", plan_id, "planned")
    assert [entry[0] for entry in entries] == ["plan", "estimate", "why", "verify", "run-policy"]
    assert entries[1][2] == "fits"
    assert entries[2][2] == "explained"
    assert entries[3][1:] == (plan_id, "verified")
    for path, document in asked:
        assert service.ask("POST", path, key, json=document).status_code == 429
    assert len(recorded(service, "curious")) == 5


@pytest.mark.parametrize(
    ("path", "document", "field"),
    [
        ("/v1/plans", {"workload": {"kind": "preset", "model": "no-such-model", "tokens": 1e9}}, "workload.model"),
        ("/v1/estimates", {"job": {}, "on": {}}, "job.workload"),
        ("/v1/why", {"job": {"deadline": "soon"}}, "job.workload"),
        ("/v1/import", {"files": {"a.yaml": 1}}, "files"),
        ("/v1/afford", {"budget_usd": "50k", "training": {"method": "lora"}}, "training.method"),
        ("/v1/capacity", {"machine": "p5.48xlarge", "nodes": 0}, "nodes"),
        ("/v1/verify", {"outcome": "nothing"}, "outcome"),
        ("/v1/buy", {"jobs": 1}, "jobs"),
        ("/v1/portfolios", {"jobs": 1}, "jobs"),
        ("/v1/run-policies", {"run": {}}, "run.work"),
        ("/v1/simulations", {"run": RUN, "traces": [], "starts": -1}, "starts"),
    ],
)
def test_what_is_refused_is_recorded_and_counts_for_nothing(
    service: Guarded, path: str, document: dict[str, Any], field: str
) -> None:
    name = f"refused at {path}"
    key = made(service, name, plans_per_day=1)
    for _ in range(2):
        assert service.ask("POST", path, key, json=document).status_code == 422
    entries = recorded(service, name)
    assert [(entry[1], entry[2]) for entry in entries] == [(field, "refused")] * 2
    assert service.gpuplan.store.access.used(f"key:{key.split('_')[1]}", found_day(service, name)) == 0


def found_day(service: Guarded, identity: str) -> Any:
    [first, *_] = service.gpuplan.store.access.audit(identity=identity)
    return first.record.at.date()


def test_an_idempotency_key_belongs_to_who_used_it(service: Guarded, job: dict[str, Any]) -> None:
    mine, yours = made(service, "mine"), made(service, "yours")
    headers = {"Idempotency-Key": "nightly"}

    def ask(key: str, document: dict[str, Any]) -> httpx.Response:
        return service.ask("POST", "/v1/plans", key, json=document, headers=headers)

    first = ask(mine, job)
    assert ask(mine, job).json() == first.json()
    # The same words of somebody else are another request: not refused for what they do not know, and their own.
    other = ask(yours, job | {"name": "another"})
    assert other.status_code == 200
    assert other.json()["plan"]["job"]["name"] == "another"
    assert ask(mine, job | {"name": "another"}).status_code == 422
    assert [entry[0] for entry in recorded(service, "yours")] == ["plan"]


class Full(Workers):
    """Has as many calls as it takes."""

    def _refuse_excess(self, identity: str) -> None:
        raise Refused(503, "too many requests are waiting")


@pytest.mark.parametrize("path", ["/v1/verify", "/v1/buy", "/v1/run-policies", "/v1/simulations"])
def test_what_cannot_be_read_is_refused_while_long_requests_fill_their_queue(service: Guarded, path: str) -> None:
    usual = service.app.state.long_workers
    service.app.state.long_workers = Full()
    try:
        assert service.ask("POST", path, "admin", json={"nothing": "known"}).status_code == 422
        assert service.ask("POST", "/v1/run-policies", "admin", json={"run": RUN}).status_code == 503
    finally:
        service.app.state.long_workers = usual
