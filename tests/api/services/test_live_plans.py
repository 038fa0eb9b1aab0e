"""Plans with the answers of clouds, from end to end: asked at a local server, stated in the plan, replayed by verification."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from gpuplan.api.http.http_service import create_service
from gpuplan.api.mcp.tools import Tools
from gpuplan.api.presentation.plan import render_answer
from gpuplan.api.schemas.answers import read_answer
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire
from gpuplan.providers.capacity import capacity_queries
from tests.api.conftest import Ended
from tests.api.http.test_answer_schemas import exact
from tests.clouds.azure import SUBSCRIPTION
from tests.clouds.azure_capacity import DENIED, AzureCapacityCloud
from tests.clouds.server import answering

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
JOB = {
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "1M"},
    "constraints": {"providers": ["azure"], "price_kinds": ["spot"], "regions": ["east*", "west*"], "max_nodes": 1},
}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureCapacityCloud]:
    cloud = AzureCapacityCloud(score="Medium")
    # What a busy machine needs is no matter of these tests.
    monkeypatch.setattr(capacity_queries, "LIMIT_SECONDS", 60.0)
    with cloud.running() as server:
        monkeypatch.setenv("GPUPLAN_AZURE_ARM_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("GPUPLAN_ANONYMOUS", "1")
        yield cloud


@pytest.fixture
def gpuplan(cloud: AzureCapacityCloud, database_url: str) -> Services:
    return open_services(Environment(database_url=database_url))


def test_a_live_plan_states_the_answers_that_its_chances_rest_on(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    first = wire(gpuplan.plans.plan(JOB, now=NOW, live=True, save=False))
    plan, asked = first["plan"], len(cloud.requests)
    assert plan["capacity_ladder"]["chance"] == 0.5
    assert plan["capacity_ladder"]["chance_source"]["published"] == "Medium"
    assert all(choice["chance"] == 0.5 for choice in plan["capacity_ladder"]["next_choices"][:1])
    assert 1 < len(plan["live_capacity"]["answers"]) <= 40
    assert gpuplan.verification.verify(first).outcome == "verified"
    again = wire(gpuplan.plans.plan(JOB, now=NOW, live=True, save=False))
    assert (again["plan"], len(cloud.requests)) == (plan, asked)
    modelled = wire(gpuplan.plans.plan(JOB, now=NOW, save=False))
    assert "live_capacity" not in modelled["plan"]
    assert modelled["plan"]["phases"] == plan["phases"]
    assert len(cloud.requests) == asked
    assert "asked 2026-11-27" in str(render_answer(read_answer(first)))


def test_what_was_not_learned_is_modelled_and_said(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    cloud.break_with(answering(403, DENIED))
    later = NOW + timedelta(hours=1)
    answer = wire(gpuplan.plans.plan(JOB, now=later, live=True, save=False))
    [reason, *_] = {row["reason"] for row in answer["plan"]["live_capacity"]["not_learned"]}
    assert "AuthorizationFailed" in reason
    assert not answer["plan"]["live_capacity"]["answers"]
    modelled = wire(gpuplan.plans.plan(JOB, now=later, save=False))
    assert answer["plan"]["capacity_ladder"] == modelled["plan"]["capacity_ladder"]
    assert gpuplan.verification.verify(answer).outcome == "verified"
    assert "not learned, so modelled: azure" in str(render_answer(read_answer(answer)))


def test_a_cloud_that_does_not_answer_delays_a_plan_by_its_limit_and_no_more(
    gpuplan: Services, cloud: AzureCapacityCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity_queries, "LIMIT_SECONDS", 0.24)
    cloud.latency_seconds = 5.0
    answer = wire(gpuplan.plans.plan(JOB, now=NOW + timedelta(hours=2), live=True, save=False))
    reasons = {row["reason"] for row in answer["plan"]["live_capacity"]["not_learned"]}
    assert reasons == {"no answer within 0.2 s"}  # five sixths: the plan is worked out twice


def test_no_cloud_is_asked_about_another_day(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    answer = wire(gpuplan.plans.plan(JOB | {"start": "2026-12-04T12:00Z"}, now=NOW, live=True, save=False))
    [missing] = answer["plan"]["live_capacity"]["not_learned"]
    assert "starts at 2026-12-04" in missing["reason"]
    assert not cloud.requests


def test_a_job_without_a_plan_asks_nobody(gpuplan: Services, cloud: AzureCapacityCloud) -> None:
    answer = wire(gpuplan.plans.plan(JOB | {"deadline": "1h", "budget_usd": 0.01}, now=NOW, live=True, save=False))
    assert answer["outcome"] == "infeasible"
    assert not cloud.requests


@pytest.mark.parametrize(
    ("variable", "live", "is_asked"), [("1", None, True), ("", None, False), ("yes", False, False)]
)
def test_the_environment_says_whether_clouds_are_asked_by_default(
    database_url: str,
    cloud: AzureCapacityCloud,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    live: bool | None,
    is_asked: bool,
) -> None:
    monkeypatch.setenv("GPUPLAN_LIVE", variable)
    services = open_services(Environment(database_url=database_url))
    answer = wire(services.plans.plan(JOB, now=NOW, live=live, save=False))
    assert ("live_capacity" in answer["plan"]) == is_asked


def test_a_default_that_is_neither_yes_nor_no_is_refused(
    database_url: str, cloud: AzureCapacityCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPLAN_LIVE", "perhaps")
    services = open_services(Environment(database_url=database_url))
    with pytest.raises(UnusableInput, match="GPUPLAN_LIVE: is neither yes nor no"):
        services.plans.plan(JOB, now=NOW, live=None, save=False)


def test_the_command_and_the_request_ask_alike(
    run: Callable[..., Ended], cloud: AzureCapacityCloud, gpuplan: Services, job_file: Callable[..., Path]
) -> None:
    path = job_file(JOB)
    ended = run("plan", path, "--live")
    assert ended.code == 0
    assert ", live 20" in ended.out
    plain: dict[str, Any] = json.loads(run("plan", path, "--no-live", "--json").out)
    assert "live_capacity" not in plain["plan"]
    with TestClient(create_service(gpuplan)) as client:
        response = client.post("/v1/plans?live=true", json=JOB)
    assert response.status_code == 200, response.text
    assert exact("PlanAnswer", response.json())["plan"]["live_capacity"]["answers"]
    brief = Tools(gpuplan).plan(job=JOB, live=True)
    assert "chance_source" in brief["plan"]["capacity_ladder"]
    assert "answers" not in brief["plan"]["live_capacity"]
