"""Questions about capacity by the service and the command: asked once in ten minutes, kept for ever."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from gpuplan.api.http.http_service import create_service
from gpuplan.api.presentation.capacity import render_capacity
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.capacity import planned_candidates
from gpuplan.api.services.capacity_candidates import Candidate
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.live_queries import REUSED_FOR
from gpuplan.catalog.model.capacity_answers import CapacityAnswer
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.live_capacity import CapacityAnswers
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended
from tests.api.http.test_answer_schemas import exact
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import DENIED, AzureCapacityCloud
from tests.clouds.server import answering
from tests.partial_answers import answer_of

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SIZE = "Standard_NC4as_T4_v3"
PLENTY = 60.0


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCapacityCloud]:
    cloud = AzureCapacityCloud(scores={(SIZE, "westus2"): "Low"})
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_AZURE_ARM_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        yield cloud


@pytest.fixture
def gpuplan(cloud: AzureCapacityCloud, tmp_path: Path) -> Services:
    return open_services(Environment(database_url=f"sqlite:///{tmp_path / 'store.db'}"))


def ask(gpuplan: Services, *regions: str, now: datetime = NOW, nodes: int = 2) -> dict[str, Any]:
    return dict(wire(of_machine(gpuplan, *regions, now=now, nodes=nodes)))


def of_machine(gpuplan: Services, *regions: str, now: datetime = NOW, nodes: int = 2) -> CapacityAnswers:
    return gpuplan.capacity.of_machine(SIZE, nodes=nodes, regions=regions, now=now, limit_seconds=PLENTY)


def test_answers_come_most_likely_first_with_all_that_the_cloud_said(gpuplan: Services) -> None:
    answer = ask(gpuplan, "westus2", "eastus")
    assert [(row["region"], row["published"]) for row in answer["answers"]] == [("eastus", "High"), ("westus2", "Low")]
    assert answer["answers"][0]["asked_at"] == "2026-11-27T12:00:00Z"
    assert answer["meta"] == {"asked_at": "2026-11-27T12:00:00Z", "reused": 0, "asked": 2}


def test_an_answer_is_reused_for_minutes_and_no_longer(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    ask(gpuplan, "eastus")
    asked = len(cloud.requests)
    again = ask(gpuplan, "eastus", now=NOW + REUSED_FOR)
    assert (len(cloud.requests), again["meta"]["reused"]) == (asked, 1)
    later = ask(gpuplan, "eastus", now=NOW + REUSED_FOR + timedelta(seconds=1))
    assert (len(cloud.requests), later["meta"]["reused"]) == (2 * asked, 0)


@pytest.mark.parametrize(("nodes", "region"), [(3, "eastus"), (2, "westus2")])
def test_an_answer_for_other_machines_or_places_is_not_reused(gpuplan: Services, nodes: int, region: str) -> None:
    ask(gpuplan, "eastus")
    assert ask(gpuplan, region, nodes=nodes)["meta"]["reused"] == 0


def test_every_answer_stays_as_an_observation(gpuplan: Services) -> None:
    for hours in (0, 1, 2):
        ask(gpuplan, "eastus", now=NOW + timedelta(hours=hours))
    stored = gpuplan.store.capacity.since(NOW)
    assert [row.asked_at for row in stored] == [NOW + timedelta(hours=hours) for hours in (0, 1, 2)]
    assert all(isinstance(row, CapacityAnswer) and row.scored_types == (SIZE,) for row in stored)
    assert [row.quota_available for row in stored] == [True] * 3


def test_what_was_not_learned_is_asked_again(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    cloud.break_with(answering(403, DENIED), times=1)
    first = ask(gpuplan, "eastus")
    assert not first["answers"]
    assert "AuthorizationFailed" in first["not_learned"][0]["reason"]
    assert ask(gpuplan, "eastus")["answers"]


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"machine": "p9.48xlarge"}, "machine", "no instance type"),
        ({"machine": SIZE, "kind": "spots"}, "kind", "no price kind"),
        ({"machine": SIZE, "kind": "flex_start"}, "kind", "no flex_start price; accepted: "),
        ({"machine": SIZE, "regions": ("us-east-1",)}, "region", "no price in 'us-east-1'; accepted: "),
    ],
)
def test_a_question_about_what_the_catalogue_lacks_is_refused(
    gpuplan: Services, cloud: AzureCapacityCloud, given: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(UnusableInput, match=reason) as refused:
        gpuplan.capacity.of_machine(**given, now=NOW)
    assert [fault.path for fault in refused.value.faults] == [(field,)]
    assert not cloud.requests


def test_the_machines_of_a_plan_its_ladder_and_its_alternatives_are_asked_about_once() -> None:
    def row(kind: str, region: str = "eastus") -> dict[str, Any]:
        return {"provider": "azure", "instance_type": SIZE, "region": region, "nodes": 2, "price_kind": kind}

    plan = {
        "phases": [row("spot"), row("owned")],
        "capacity_ladder": {"next_choices": [row("spot", "westus2"), row("spot")]},
        "alternatives": [row("spot"), row("on_demand", "westus2")],
    }
    places = [("eastus", "spot"), ("westus2", "spot"), ("westus2", "on_demand")]
    assert planned_candidates(answer_of(PlannedAnswer, {"plan": plan})) == [
        Candidate(provider="azure", instance_type=SIZE, region=region, nodes=2, kind=kind) for region, kind in places
    ]


def test_a_job_without_a_plan_has_no_machines_to_ask_about() -> None:
    with pytest.raises(UnusableInput, match="gpuplan plan says why"):
        planned_candidates(answer_of(InfeasibleAnswer))


def test_the_table_marks_what_is_read_from_a_score(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    cloud.quota = False
    cloud.break_with(answering(403, DENIED), when=lambda request: "ResourceGraph" in request.path)
    [learned, missing] = render_capacity(of_machine(gpuplan, "eastus"))
    assert "no quota for it" in str(learned)
    assert "gpuplan's reading" in str(learned)
    assert "(interruptions)" in str(missing)


def test_the_command_prints_the_same_answer(run: Callable[..., Ended], cloud: AzureCapacityCloud) -> None:
    common = ("capacity", "--machine", SIZE, "--nodes", "2", "--region", "eastus", "--limit-seconds", "60")
    ended = run(*common, "--json")
    assert (ended.code, ended.err) == (0, "")
    [row] = json.loads(ended.out)["answers"]
    assert (row["published"], row["probability"], row["wait_hours"]) == ("High", 0.85, None)
    assert "85%" in run(*common).out


@pytest.mark.parametrize("words", [(), ("job.yaml", "--machine", SIZE)])
def test_the_command_wants_a_job_or_a_machine(run: Callable[..., Ended], words: tuple[str, ...]) -> None:
    ended = run("capacity", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "machine: give a job file or --machine" in ended.err


@pytest.mark.slow(reason="plans a job with all alternatives")
def test_a_job_is_asked_about_by_its_plan(
    run: Callable[..., Ended], cloud: AzureCapacityCloud, job_file: Callable[..., Path], job: dict[str, Any]
) -> None:
    limited = job | {"constraints": {"providers": ["azure"], "price_kinds": ["spot"], "max_nodes": 1}}
    path = job_file(limited)
    plan = json.loads(run("plan", path, "--json").out)["plan"]
    ended = run("capacity", path, "--json", "--limit-seconds", "60")
    assert ended.code == 0
    by_place = {(row["instance_type"], row["region"], row["nodes"]) for row in json.loads(ended.out)["answers"]}
    rows = [*plan["phases"], *plan["capacity_ladder"]["next_choices"]]
    assert {(row["instance_type"], row["region"], row["nodes"]) for row in rows} <= by_place
    assert len(by_place) > 1


def test_a_request_for_one_machine_is_answered_as_the_schema_says(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    asked = {"machine": SIZE, "nodes": "2", "kind": "Spot", "region": ["eastus", "westus2"], "limit_seconds": 10}
    with TestClient(create_service(gpuplan)) as client:
        response = client.post("/v1/capacity", json=asked)
    assert response.status_code == 200, response.text
    answer = exact("CapacityAnswers", response.json())
    assert [(row["region"], row["published"], row["nodes"]) for row in answer["answers"]] == [
        ("eastus", "High", 2),
        ("westus2", "Low", 2),
    ]
    assert (answer["meta"]["asked"], len(gpuplan.store.capacity.since(NOW - timedelta(days=400)))) == (2, 2)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "machine"),
        ({"machine": SIZE, "job": {"workload": {"kind": "preset", "model": "gpt2", "tokens": 1e9}}}, "machine"),
        ({"machine": SIZE, "nodes": 0}, "nodes"),
        ({"machine": SIZE, "kind": "spots"}, "kind"),
        ({"machine": SIZE, "region": "us-east-1"}, "region"),
        ({"machine": SIZE, "limit_seconds": 11}, "limit_seconds"),
        ({"machine": SIZE, "limit_seconds": True}, "limit_seconds"),
        ({"machine": SIZE, "zone": "1"}, "zone"),
        ({"job": {"workload": {"kind": "preset", "model": "gpt2", "tokens": 1e9}}, "nodes": 2}, "nodes"),
        ({"job": {"workload": {"kind": "preset", "model": "gpt9", "tokens": 1e9}}}, "job.workload.model"),
    ],
)
def test_a_request_that_cannot_be_asked_is_refused_by_field(
    gpuplan: Services, cloud: AzureCapacityCloud, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(UnusableInput) as refused:
        gpuplan.capacity.read(asked)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert not cloud.requests


def test_a_request_for_a_job_asks_about_the_machines_of_its_plan(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    job = {
        "workload": {"kind": "preset", "model": "resnet-50", "samples": "1M"},
        "constraints": {"providers": ["azure"], "price_kinds": ["spot"], "max_nodes": 1},
    }
    plan = wire(gpuplan.plans.plan(job, now=NOW, save=False))["plan"]
    answer = wire(gpuplan.capacity.read({"job": job, "limit_seconds": 10}, now=NOW))
    places = {(row["instance_type"], row["region"], row["nodes"]) for row in answer["answers"]}
    assert {(row["instance_type"], row["region"], row["nodes"]) for row in plan["phases"]} <= places
