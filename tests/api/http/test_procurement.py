"""Own, commit or rent over HTTP: the object of the command line, kept under its id; what is no forecast is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import Ended

JOB = {
    "workload": {"kind": "preset", "model": "resnet-50", "samples": "115M"},
    "deadline": "5d",
    "constraints": {"price_kinds": ["on_demand"]},
}
FORECAST: dict[str, Any] = {
    "name": "lab",
    "start": "2026-11-21T12:00Z",
    "electricity_usd_per_kwh": 0.2,
    "limits": {"upfront_usd": 20000},
    "machines": ["RTX 4090"],
    "jobs": [{"job": JOB, "per_month": {"low": 5, "expected": 15, "high": 30}}],
}

#: Less than one sequence: no step could be made of it.
TOO_FEW_TOKENS = {"kind": "preset", "model": "llama-3-8b", "tokens": 8, "sequence_length": 4096}


@pytest.mark.slow(reason="one long case")
def test_a_decision_is_the_object_that_the_command_line_gives_and_can_be_read_again(
    client: httpx.Client, run: Callable[..., Ended], job_file: Callable[..., Path]
) -> None:
    response = client.post("/v1/buy", json=FORECAST, headers={"Idempotency-Key": "buy-1"})
    assert response.status_code == 200, response.text
    answer = response.json()
    shown = json.loads(run("buy", job_file(FORECAST), "--json").out)
    assert answer["decision"] == shown["decision"]
    assert set(answer) == set(shown)
    assert response.headers["content-location"] == f"/v1/buy/{answer['decision']['id']}"
    read_again = client.get(response.headers["content-location"])
    assert read_again.json() == answer
    assert client.get(read_again.url, headers={"If-None-Match": read_again.headers["etag"]}).status_code == 304
    assert client.post("/v1/buy", json=FORECAST, headers={"Idempotency-Key": "buy-1"}).json() == answer
    assert client.get(f"/v1/portfolios/{answer['decision']['id']}").status_code == 404


def test_a_forecast_that_no_hardware_meets_is_an_answer_that_nobody_keeps(client: httpx.Client) -> None:
    hopeless = FORECAST | {"jobs": [{"job": JOB | {"deadline": "1min"}, "per_month": 1}], "machines": []}
    response = client.post("/v1/buy", json=hopeless)
    assert (response.status_code, response.json()["outcome"]) == (200, "infeasible")
    assert "content-location" not in response.headers


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"jobs": [{"job": JOB, "per_month": -1}]}, "/jobs/0/per_month"),
        ({"jobs": [{"job": JOB, "per_month": 1}] * 51}, "/jobs"),
        ({"jobs": [{"job": JOB | {"deadline": "soon"}, "per_month": 1}]}, "/jobs/0/job/deadline"),
        (
            {"jobs": [{"job": JOB | {"workload": TOO_FEW_TOKENS}, "per_month": 1}]},
            "/jobs/0/job/workload/tokens",
        ),
        ({"horizon_years": 1e9}, "/horizon_years"),
        ({"pue": 0.5}, "/pue"),
        ({"horizont": 1}, "/horizont"),
    ],
)
def test_what_is_no_forecast_is_a_problem_with_a_pointer(
    client: httpx.Client, change: dict[str, Any], pointer: str
) -> None:
    response = client.post("/v1/buy", json=FORECAST | change)
    assert response.status_code == 422, response.text
    assert pointer in [error["pointer"] for error in response.json()["errors"]]


def test_a_snapshot_that_is_not_there_is_not_found(client: httpx.Client) -> None:
    assert client.post("/v1/buy?snapshot=feed", json=FORECAST).status_code == 404
