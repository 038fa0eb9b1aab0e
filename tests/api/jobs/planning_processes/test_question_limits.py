"""A question that takes more memory or time than it may is refused in words, and the service goes on."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.jobs.planning_processes.process_pool import PlanningProcesses
from gpuplan.api.jobs.planning_processes.question_limits import MOST_PROCESSES_UNLESS_SET, Budget, budget
from gpuplan.api.observability.service_telemetry import Watching
from gpuplan.api.observability.telemetry_settings import TelemetrySettings
from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.snapshot import snapshot_of
from gpuplan.planner.model.wire import wire
from tests.api.http.guarded import Guarded, guarded
from tests.api.jobs.planning_processes.hungry import hungry
from tests.catalog.snapshots_for_tests import TYPES, offer
from tests.patience import until
from tests.ports import free_port

pytestmark = pytest.mark.slow(reason="starts planning processes")

#: A planning process may not take so little that the ordinary plan of these tests does not fit.
SMALL = Budget(seconds=60.0, mib=256, processes=4)


@pytest.fixture(scope="module")
def service(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service that lets in who has a key, with planning processes that do what a job's name says."""
    with guarded(embedded_store, tmp_path_factory.mktemp("budget")) as guarded_service:
        processes = PlanningProcesses(guarded_service.gpuplan.context.environment, SMALL, life=hungry)
        guarded_service.gpuplan.planner.use(processes)
        guarded_service.app.state.workers = Workers(at_once=SMALL.processes - 1, most_seconds=SMALL.seconds)
        yield guarded_service
        processes.stop()


def ask(service: Guarded, job: dict[str, Any], name: str, key: str = "plan") -> httpx.Response:
    return service.ask("POST", "/v1/plans", key, json=job | {"name": name})


def test_a_question_that_eats_memory_is_refused_and_the_next_is_answered(service: Guarded, job: dict[str, Any]) -> None:
    for _ in range(2):
        answer = ask(service, job, "memory")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert "more than the limit of 256 MiB" in answer.json()["detail"]
        assert "GPUPLAN_MOST_MIB_PER_PLAN" in answer.json()["detail"]
    assert ask(service, job, "usual").json()["outcome"] == "planned"


def test_a_question_whose_process_is_killed_is_refused_and_the_next_is_answered(
    service: Guarded, job: dict[str, Any]
) -> None:
    for _ in range(2):
        answer = ask(service, job, "killed")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "ended (SIGKILL) and was replaced" in answer.json()["detail"]
    assert ask(service, job, "usual").json()["outcome"] == "planned"


@pytest.mark.parametrize("name", ["slow", "for-ever"])
def test_a_question_that_never_ends_is_stopped_and_the_next_is_answered(
    service: Guarded, job: dict[str, Any], name: str
) -> None:
    usual = service.app.state.workers
    service.app.state.workers = Workers(most_seconds=0.2)
    try:
        answer = ask(service, job, name)
    finally:
        service.app.state.workers = usual
    assert answer.status_code == 503
    assert "GPUPLAN_MOST_SECONDS_PER_PLAN" in answer.json()["detail"]
    assert ask(service, job, "usual").json()["outcome"] == "planned"


def test_what_was_given_up_counts_and_is_recorded(service: Guarded, job: dict[str, Any]) -> None:
    made = service.ask("POST", "/v1/keys", "admin", json={"name": "greedy", "scope": "plan", "plans_per_day": 1})
    key = made.json()["key"]
    assert ask(service, job, "memory", key).status_code == 422
    assert ask(service, job, "usual", key).status_code == 429
    entries = service.gpuplan.store.access.audit(identity="greedy")
    assert [(entry.record.action, entry.record.outcome) for entry in entries] == [("plan", "too large")]


def test_four_heavy_requests_of_one_caller_hold_up_nobody_else(
    service: Guarded, job: dict[str, Any], tmp_path: Path
) -> None:
    keys = {
        name: service.ask("POST", "/v1/keys", "admin", json={"name": name, "scope": "plan"}).json()["key"]
        for name in ("heavy", "light")
    }
    waits = job | {"name": f"waits {tmp_path}"}
    came: list[int] = []

    def heavy() -> None:
        headers = {"Authorization": f"Bearer {keys['heavy']}"}
        came.append(
            httpx.post(service.client.base_url.join("/v1/plans"), json=waits, headers=headers, timeout=90).status_code
        )

    threads = [threading.Thread(target=heavy, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    # All that one identity may have at once are under way.
    until(lambda: len(list(tmp_path.glob("began-*"))) == SMALL.processes - 2)
    for number in range(3):
        assert ask(service, job, f"light {number}", keys["light"]).json()["outcome"] == "planned"
    assert came == []
    (tmp_path / "go-on").touch()
    for thread in threads:
        thread.join(90)
    assert came == [200] * 4


def test_an_answer_is_the_same_from_a_process(
    service: Guarded, gpuplan: Services, job: dict[str, Any], hopeless: dict[str, Any], question: dict[str, Any]
) -> None:
    def without_meta(answer: object) -> dict[str, Any]:
        return {name: value for name, value in wire(answer).items() if name != "meta"}

    for document in (job, hopeless):
        assert without_meta(service.gpuplan.plans.plan(document)) == without_meta(gpuplan.plans.plan(document))
    asked = {"job": job}
    assert without_meta(service.gpuplan.explanations.why(asked)) == without_meta(gpuplan.explanations.why(asked))
    assert wire(service.gpuplan.estimates.estimate(question)) == wire(gpuplan.estimates.estimate(question))
    planned = wire(gpuplan.plans.plan(job))
    assert (
        service.gpuplan.verification.verify(planned).verification == gpuplan.verification.verify(planned).verification
    )


def test_a_process_reads_for_who_asks_alone(service: Guarded, job: dict[str, Any]) -> None:
    mine, yours = (
        service.ask("POST", "/v1/keys", "admin", json={"name": name, "scope": "plan"}).json()["key"]
        for name in ("mine", "yours")
    )
    plan_id = ask(service, job, "mine alone", mine).json()["plan"]["id"]
    for path, document in (
        ("/v1/replan", {"plan": plan_id, "running": {"done": 0.5}}),
        ("/v1/run-policies", {"plan": plan_id}),
    ):
        answer_to_owner = service.ask("POST", path, mine, json=document)
        other = service.ask("POST", path, yours, json=document)
        assert answer_to_owner.status_code != 404, answer_to_owner.text
        assert other.status_code == 404, other.text


def test_what_cannot_be_used_is_refused_field_by_field_from_a_process(service: Guarded, job: dict[str, Any]) -> None:
    answer = service.ask("POST", "/v1/plans", "plan", json=job | {"deadline": "soon", "budget_usd": -1})
    assert answer.status_code == 422
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/deadline", "/budget_usd"}
    missing = service.ask("POST", "/v1/plans?snapshot=none", "plan", json=job)
    assert missing.status_code == 404


def test_a_process_that_cannot_be_replaced_at_once_is_replaced_later(
    service: Guarded, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = service.gpuplan.planner.processes
    assert processes is not None

    def no_room() -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as full:
        full.setattr(processes, "_new", no_room)
        for _ in range(2 * SMALL.processes):
            assert ask(service, job, "killed").status_code == 503
    for number in range(2 * SMALL.processes):
        assert ask(service, job, f"usual {number}").status_code == 200


def test_stages_of_a_process_are_counted_in_the_service(service: Guarded, job: dict[str, Any]) -> None:
    def request_counts() -> dict[str, float]:
        text = service.ask("GET", "/metrics", "read").text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {
            sample.labels["stage"]: sample.value
            for sample in samples
            if sample.name == "gpuplan_plan_stage_seconds_count"
        }

    watching = Watching(TelemetrySettings())
    try:
        before = request_counts()
        assert ask(service, job, "usual").status_code == 200
        after = request_counts()
    finally:
        watching.end()
    for stage in ("parse", "candidates", "solve", "store"):
        assert after[stage] == before.get(stage, 0) + 1


def test_new_prices_count_for_requests_answered_by_a_process(
    embedded_store: Path, tmp_path: Path, job: dict[str, Any]
) -> None:
    with guarded(embedded_store, tmp_path) as guarded_service:
        processes = PlanningProcesses(guarded_service.gpuplan.context.environment, Budget(processes=3))
        guarded_service.gpuplan.planner.use(processes)
        try:
            assert guarded_service.gpuplan.plans.plan(job, save=False).outcome == "planned"
            newer = snapshot_of(TYPES[:1], (offer(98_320_000, observed_at=datetime.now(UTC)),))
            guarded_service.gpuplan.store.put_snapshot(newer, source="refresh")
            # Where preparing them takes long, questions rest on the last ones meanwhile.
            until(lambda: wire(guarded_service.gpuplan.plans.plan(job, save=False))["plan"]["snapshot_id"] == newer.id)
        finally:
            processes.stop()


def descendants(pid: int) -> set[int]:
    """Every process below this one."""
    try:
        below = {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except FileNotFoundError:
        return set()
    return below.union(*(descendants(child) for child in below))


def is_there(pid: int) -> bool:
    """A process that has ended and that nobody has asked about yet is not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow(reason="long cases")
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_service(own_store: str, sent: signal.Signals) -> None:
    port = free_port()
    command = (sys.executable, "-m", "gpuplan.api.cli.main", "serve", "--port", str(port))
    environment = os.environ | {"GPUPLAN_DATABASE_URL": own_store, "GPUPLAN_PLANNING_PROCESSES": "3"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as service:
        try:

            def answers() -> bool:
                assert service.poll() is None
                try:
                    return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).is_success
                except httpx.TransportError:
                    return False

            until(answers)
            below = descendants(service.pid)
            assert len(below) >= 3
            service.send_signal(sent)
            service.wait(60)
            until(lambda: not any(is_there(child) for child in below))
        finally:
            service.kill()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("GPUPLAN_MOST_MIB_PER_PLAN", "1"),
        ("GPUPLAN_MOST_MIB_PER_PLAN", "1 GiB"),
        ("GPUPLAN_PLANNING_PROCESSES", "2"),
        ("GPUPLAN_PLANNING_PROCESSES", "3.5"),
        ("GPUPLAN_PLANNING_PROCESSES", "nan"),
        ("GPUPLAN_MOST_SECONDS_PER_PLAN", "0"),
        ("GPUPLAN_MOST_SECONDS_PER_PLAN", "1h"),
        ("GPUPLAN_MOST_SECONDS_PER_PLAN", "1e9"),
    ],
)
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(UnusableInput, match=f"{name}: .* is not a valid limit; accepted: "):
        budget()


def test_a_machine_of_many_cores_has_no_more_processes_than_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(96), raising=False)
    assert budget().processes == MOST_PROCESSES_UNLESS_SET
    monkeypatch.setenv("GPUPLAN_PLANNING_PROCESSES", "97")
    assert budget().processes == 97
