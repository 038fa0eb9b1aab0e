"""Runs on interruptible machines over HTTP: what the command line gives, and hostile traces refused quickly."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import Ended
from tests.api.spot_run import RUN


def trace(name: str, seed: int, hours: int = 40) -> dict[str, Any]:
    draw, up, data = random.Random(seed), True, []
    for _ in range(hours * 4):
        up = up if draw.random() < 0.9 else not up
        data.append(int(up))
    return {"name": name, "metadata": {"gap_seconds": 900}, "data": data}


TRACES = [trace("a", 1), trace("b", 2)]


def asked(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_a_policy_and_its_decision_are_what_the_command_line_gives(
    client: httpx.Client, run: Callable[..., Ended], job_file: Callable[..., Path]
) -> None:
    file, fits = job_file(RUN), [job_file(trace, f"{trace['name']}.json") for trace in TRACES]
    options = [option for fit in fits for option in ("--fit", fit)]
    shown = json.loads(run("run-policy", file, *options, "--json").out)
    assert asked(client, "/v1/run-policies", {"run": RUN, "fit": TRACES}) == shown
    now = ("--time", "1h", "--work-left", "3h30min", "--up", "a,b", "--at", "a", "--since", "a=2h")
    printed = json.loads(run("run-policy", file, *now, "--json").out)
    situation = {"time": "1h", "work_left": "3h30min", "up": ["a", "b"], "at": "a", "since": {"a": "2h"}}
    assert asked(client, "/v1/run-policies", {"run": RUN, "now": situation}) == printed


def test_a_replay_is_what_the_command_line_gives(
    client: httpx.Client, run: Callable[..., Ended], job_file: Callable[..., Path]
) -> None:
    options = [option for trace in TRACES for option in ("--traces", job_file(trace, f"{trace['name']}.json"))]
    shown = json.loads(run("simulate", job_file(RUN), *options, "--starts", "5", "--seed", "7", "--json").out)
    assert asked(client, "/v1/simulations", {"run": RUN, "traces": TRACES, "starts": 5, "seed": 7}) == shown
    assert all(rule["late_runs"] == 0 for rule in shown["rules"] if rule["rule"] == "policy")


def test_a_saved_plan_on_spot_is_run_by_a_policy(client: httpx.Client, job: dict[str, Any]) -> None:
    spot = job | {"constraints": {"providers": ["aws"], "price_kinds": ["spot"], "max_nodes": 1}}
    plan = asked(client, "/v1/plans", spot)["plan"]
    answer = asked(client, "/v1/run-policies", {"plan": plan["id"]})
    assert answer["as_planned"]["confidence"] == 0.9
    assert client.post("/v1/run-policies", json={"plan": "plan-nobody"}).status_code == 404


LONG = trace("a", 3, hours=2000) | {"metadata": {"gap_seconds": 86_400}}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/run"),
        ({"run": RUN, "plan": "p"}, "/run"),
        ({"run": RUN | {"work": "soon"}}, "/run/work"),
        ({"run": RUN | {"work": "7h"}}, "/run/deadline"),
        ({"run": RUN | {"places": []}}, "/run/places"),
        ({"run": RUN | {"step": "1s", "deadline": "60d", "work": "30d"}}, "/run/step"),
        ({"run": RUN, "now": {"time": "1h"}}, "/now/work_left"),
        ({"run": RUN, "now": {"time": "1h", "work_left": "3h", "up": ["c"]}}, "/now/up"),
        ({"run": RUN, "now": {"time": "5h", "work_left": "4h"}}, "/now/time"),
        ({"run": RUN, "fit": [trace("c", 1)]}, "/fit"),
        ({"run": RUN, "fit": [{"data": [0, 1, 7, "x"], "metadata": {"gap_seconds": 300}}]}, "/fit/0/data/3"),
        ({"run": RUN, "fit": [TRACES[0], TRACES[0]]}, "/fit"),
        ({"run": RUN | {"step": "2s", "deadline": "1h", "work": "30min"}, "fit": [LONG]}, "/traces"),
        ({"run": RUN, "fits": []}, "/fits"),
    ],
)
def test_a_wrong_question_is_a_problem_with_a_pointer(client: httpx.Client, body: dict[str, Any], pointer: str) -> None:
    response = client.post("/v1/run-policies", json=body)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"traces": []}, "/traces"),
        ({"traces": [TRACES[0]]}, "/traces"),
        ({"traces": [trace("a", 1, hours=3), trace("b", 1, hours=3)]}, "/traces"),
        ({"starts": 5001}, "/starts"),
        ({"starts": 5000, "run": RUN | {"deadline": "300h", "step": "30min"}}, "/starts"),
        ({"seed": -1}, "/seed"),
        ({"traces": [{"data": [1], "metadata": {"gap_seconds": 0}}]}, "/traces/0/metadata/gap_seconds"),
        ({"traces": [TRACES[0]] * 51}, "/traces"),
    ],
)
def test_a_replay_without_sense_or_end_is_refused(client: httpx.Client, change: dict[str, Any], pointer: str) -> None:
    response = client.post("/v1/simulations", json={"run": RUN, "traces": TRACES} | change)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


def test_the_ladder_of_a_saved_plan_is_replayed(client: httpx.Client, job: dict[str, Any]) -> None:
    spot = job | {"constraints": {"providers": ["aws"], "max_nodes": 1}}
    plan = asked(client, "/v1/plans", spot)["plan"]
    rows = [plan["phases"][0], *plan["capacity_ladder"]["next_choices"]]
    names = [str(number) for number, row in enumerate(rows, start=1) if row["price_kind"] == "spot"]
    hours = float(plan["job"]["deadline"]) + 10
    traces = [{"name": name, "metadata": {"gap_seconds": 3600}, "data": [1] * int(hours)} for name in names]
    question = {"plan": plan["id"], "traces": traces, "starts": 3, "refused": 0.5}
    answer = asked(client, "/v1/ladder-simulations", question)
    assert (answer["runs"], answer["refused"]) == (3, 0.5)
    first = next(rule for rule in answer["rules"] if rule["rule"] == "ladder")["obtained"][0]
    assert (first["choice"], first["first_share"], first["first_after_hours"]) == (1, 1.0, 0.0)
    for change, field in (
        ({"refused": 2}, "refused"),
        ({"traces": [{"data": [1]}]}, "traces"),
        ({"plan": "x"}, "plan"),
    ):
        response = client.post("/v1/ladder-simulations", json=question | change)
        assert response.status_code in {404, 422}
        assert field in response.text
