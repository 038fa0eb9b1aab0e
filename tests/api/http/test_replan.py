"""Jobs under way over HTTP: the objects of the command line, and problems with a pointer."""

import copy
import json
from typing import Any

import httpx
import pytest

from gpuplan.api.http.openapi_bodies import examples_of
from gpuplan.api.schemas.replan import ReplanDocument
from gpuplan.api.services.composition import Services
from gpuplan.planner.model.wire import wire


@pytest.fixture
def asked() -> dict[str, Any]:
    return copy.deepcopy(examples_of(ReplanDocument)[0])


def test_the_answer_is_what_gpuplan_gives_itself(
    client: httpx.Client, gpuplan: Services, asked: dict[str, Any]
) -> None:
    response = client.post("/v1/replan", json=asked)
    assert response.status_code == 200, response.text
    assert response.json()["replan"] == json.loads(json.dumps(wire(gpuplan.replanning.replan(asked))["replan"]))


def test_the_example_of_a_machine_that_is_gone_is_answered(client: httpx.Client) -> None:
    body = client.post("/v1/replan", json=examples_of(ReplanDocument)[1]).json()
    assert (body["outcome"], body["replan"]["continue"]) == ("replanned", None)


def test_a_job_of_which_nothing_is_said_has_done_nothing_yet(client: httpx.Client, asked: dict[str, Any]) -> None:
    nothing_done = asked | {"running": {"done": 0}}
    del asked["running"]
    answers = [client.post("/v1/replan", json=document) for document in (asked, nothing_done)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert answers[0].json()["replan"] == answers[1].json()["replan"]
    nothing = client.post("/v1/replan", json={})
    assert [error["pointer"] for error in nothing.json()["errors"]] == ["/job"]


def test_a_plan_that_is_not_stored_is_not_found(client: httpx.Client) -> None:
    response = client.post("/v1/replan", json={"plan": "plan-of-nobody", "running": {"done": 0.3}})
    assert response.status_code == 404


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"done": -1}, "/running/done"),
        ({"done": [0.3]}, "/running/done"),
        ({"up": "no"}, "/running/up"),
        ({"spent_usd": -3}, "/running/spent_usd"),
        ({"spent": 3}, "/running/spent"),
        ({"on": {"instance_type": "p5.48xlarge", "nodes": 0}}, "/running/on/nodes"),
        ({"on": {"instance_type": "p5.48xlarg", "nodes": 1}}, "/running/on/instance_type"),
        ({"up_hours": "100h"}, "/running/up_hours"),
        ({"rate": {"value": 1}}, "/running/rate"),
    ],
)
def test_what_cannot_be_is_a_problem_with_a_pointer(
    client: httpx.Client, asked: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    asked["running"] |= change
    response = client.post("/v1/replan", json=asked)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]
