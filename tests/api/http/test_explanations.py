"""Why and verify over HTTP: the objects of the command line, tampering named, hostile bodies refused quickly."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import Ended

JobFile = Callable[..., Path]


@pytest.fixture(scope="module")
def planned(client: httpx.Client) -> dict[str, Any]:
    job = {
        "name": "llama-3-8b-lora",
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
        "training": {"method": "lora", "precision": "bf16"},
        "start": "2026-11-21T12:00Z",
        "deadline": "36h",
        "constraints": {"max_nodes": 8, "price_kinds": ["on_demand"]},
    }
    answer: dict[str, Any] = client.post("/v1/plans", json=job).json()
    return answer


def test_why_is_what_the_command_line_gives(
    client: httpx.Client, run: Callable[..., Ended], job: dict[str, Any], job_file: JobFile
) -> None:
    shown = json.loads(run("why", job_file(job), "--not", "H100", "--json").out)
    response = client.post("/v1/why", json={"job": job, "not": "H100"})
    assert response.status_code == 200, response.text
    assert response.json()["why"] == shown["why"]


def test_why_there_is_no_plan_is_an_answer_too(client: httpx.Client, hopeless: dict[str, Any]) -> None:
    response = client.post("/v1/why", json={"job": hopeless})
    assert (response.status_code, response.json()["outcome"]) == (200, "infeasible")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"not": 7}, "/not"),
        ({"not": "x" * 101}, "/not"),
        ({"nott": "H100"}, "/nott"),
        ({"job": {"workload": {"kind": "preset", "model": "resnet-50"}}}, "/job/workload/samples"),
        ({"job": []}, "/job"),
    ],
)
def test_a_wrong_question_is_a_problem_with_a_pointer(
    client: httpx.Client, job: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    response = client.post("/v1/why", json={"job": job} | change)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


@pytest.mark.parametrize(
    ("key", "detail"),
    [
        ("not_", "unknown key; did you mean not?"),
        ("with_", "unknown key; did you mean with?"),
        ("colour", "unknown key; accepted are job, not, with"),
    ],
)
def test_a_wrong_key_is_answered_with_the_keys_that_users_write(
    client: httpx.Client, job: dict[str, Any], key: str, detail: str
) -> None:
    [fault] = client.post("/v1/why", json={"job": job, key: "H100"}).json()["errors"]
    assert fault["detail"] == detail


@pytest.mark.slow(reason="one long case")
def test_a_plan_is_verified_as_it_came_and_an_altered_one_named(client: httpx.Client, planned: dict[str, Any]) -> None:
    verified = client.post("/v1/verify", json=planned)
    assert verified.status_code == 200, verified.text
    assert (verified.json()["outcome"], verified.json()["verification"]["wrong"]) == ("verified", [])
    altered = copy.deepcopy(planned)
    altered["plan"]["cost_usd"]["expected"] = "0.01"
    body = client.post("/v1/verify", json=altered).json()
    assert body["outcome"] == "not_verified"
    assert any("cost_usd" in finding["figure"] for finding in body["verification"]["wrong"])


def test_a_plan_whose_snapshot_is_not_here_is_said_to_be(client: httpx.Client, planned: dict[str, Any]) -> None:
    elsewhere = copy.deepcopy(planned)
    elsewhere["plan"]["snapshot_id"] = "feed" * 8
    response = client.post("/v1/verify", json=elsewhere)
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/plan/snapshot_id")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"outcome": "planned"},
        {"outcome": "planned", "plan": []},
        {"outcome": "planned", "plan": {"id": 3, "phases": None}, "meta": {}},
        {"outcome": "infeasible", "infeasible": {"conflicts": [[[]]]}},
        {"plan": "plan-5cc3ddf113d641b9c615"},
    ],
)
def test_what_is_no_plan_is_a_problem(client: httpx.Client, body: dict[str, Any]) -> None:
    response = client.post("/v1/verify", json=body)
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")


def test_a_plan_of_a_hundred_megabytes_is_cut_off_before_it_is_read(client: httpx.Client) -> None:
    def chunks() -> Any:
        try:
            for _ in range(100):
                yield b" " * 1024 * 1024
        except GeneratorExit:
            return

    try:
        response = client.post("/v1/verify", content=chunks(), headers={"content-type": "application/json"})
    except httpx.WriteError:
        return  # the service closed the connection while this still wrote
    assert response.status_code == 413
