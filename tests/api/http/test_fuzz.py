"""A sample of what `tools.benchmarks.fuzz` sends: whatever a document holds, the answer is a plan or a problem that names a field."""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.openapi_bodies import examples_of
from gpuplan.api.schemas.estimate_request import EstimateDocument
from gpuplan.api.schemas.job import JOB_EXAMPLE, JobDocument
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tools.benchmarks.fuzz import Route, faults_of
from tools.benchmarks.fuzz_bodies import body
from tools.benchmarks.http_client import Answer

SEED, PER_ROUTE = 11, 40
JOBS = [*examples_of(JobDocument), yaml.safe_load(Path("examples/mixtral-8x7b.yaml").read_text())]
ROUTES = [
    Route(path="/v1/plans", real=JOBS),
    Route(path="/v1/estimates", real=examples_of(EstimateDocument)),
    Route(path="/v1/why", real=[{"job": JOB_EXAMPLE, "not": "H100"}]),
    Route(path="/v1/keys", real=[{"name": "ci", "scope": "plan", "expires": "90d"}]),
]


def fault_of(answer: httpx.Response, route: Route) -> str | None:
    return faults_of(route, Answer(status=answer.status_code, headers=dict(answer.headers), body=answer.content))


@pytest.fixture(scope="module")
def fuzzed(
    embedded_store: Path,
    tmp_path_factory: pytest.TempPathFactory,
    served: Callable[[Any], AbstractContextManager[httpx.Client]],
) -> Any:
    """On a store of its own: some of these documents make keys, and a service whose store has one needs no other."""
    store = shutil.copy(embedded_store, tmp_path_factory.mktemp("fuzzed"))
    gpuplan = open_services(Environment(database_url=f"sqlite:///{store}"))
    with served(create_service(gpuplan)) as client:
        yield client
    gpuplan.store.close()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_a_spoilt_document_is_answered_or_refused_in_full(fuzzed: httpx.Client, route: Route) -> None:
    for number in range(PER_ROUTE):
        sent = body(SEED, number, route.real)
        answer = fuzzed.post(route.path, content=sent.content, headers={"Content-Type": sent.content_type})
        assert fault_of(answer, route) is None, f"body {number} of seed {SEED}"


@pytest.mark.parametrize("figure", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 400])
def test_a_claim_with_a_figure_that_cannot_be_is_refused_at_that_figure(fuzzed: httpx.Client, figure: str) -> None:
    claimed = fuzzed.post("/v1/plans", json=JOB_EXAMPLE).json()
    claimed["plan"]["phases"][0]["mfu"] = "HERE"
    text = json.dumps(claimed).replace('"HERE"', figure)
    answer = fuzzed.post("/v1/verify", content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (
        422,
        ["/plan/phases/0/mfu"],
    )


def test_the_same_seed_makes_the_same_bodies_and_another_makes_others() -> None:
    made = [[body(seed, number, JOBS) for number in range(50)] for seed in (1, 1, 2)]
    assert made[0] == made[1]
    assert made[0] != made[2]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    )
)
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_any_tree_at_all_is_refused_with_a_problem(fuzzed: httpx.Client, tree: Any) -> None:
    answer = fuzzed.post("/v1/plans", content=json.dumps(tree), headers={"Content-Type": "application/json"})
    assert fault_of(answer, ROUTES[0]) is None
    assert answer.status_code in {400, 422}


@pytest.mark.parametrize(
    ("status", "kind", "text", "message"),
    [
        (500, "application/problem+json", "{}", "500"),
        (200, "application/json", "Traceback", "inside"),
        (404, "text/html", "", "text/html"),
        (422, "application/problem+json", '{"status": 422, "detail": "x"}', "no pointer"),
        (422, "application/problem+json", '{"status": 422, "detail": "x", "errors": [{"pointer": "x"}]}', "none"),
        (400, "application/problem+json", '{"status": 400, "detail": " "}', "little"),
    ],
)
def test_what_should_not_be_is_found(status: int, kind: str, text: str, message: str) -> None:
    fault = faults_of(ROUTES[0], Answer(status=status, headers={"content-type": kind}, body=text.encode()))
    assert message in (fault or "")
