"""Answers are what the client's types and the OpenAPI document say, key by key: no more, no less."""

import importlib
import json
import pkgutil
import time
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

import gpuplan_client.answers as answers
from api.app import Gpuplan
from api.http.answers import ANSWERS
from api.http.describe import WATCH_EXAMPLE
from api.http.service import create_service
from api.settings import Environment
from tests.api.clouds_for_tests import NOWHERE, aws, making

EXAMPLES = Path(__file__).parents[3] / "examples"
#: Questions about something that must be there first.
ABOUT_SOMETHING = {"/v1/verify", "/v1/refreshes", "/v1/shares", "/v1/shares/open"}
#: A dollar and an hour are enough for these.
WITHIN_AN_HOUR = {"mnist-cnn"}
SETTINGS = {"channels": [{"name": "team", "kind": "slack", "url_from": "TEAM_URL"}]}


@pytest.fixture(scope="module")
def exact() -> Iterator[dict[str, TypeAdapter[Any]]]:
    """Adapters that take no key too many and turn nothing into anything else."""
    modules = [
        importlib.import_module(f"{answers.__name__}.{each.name}") for each in pkgutil.iter_modules(answers.__path__)
    ]
    types = [each for module in modules for each in vars(module).values() if typing.is_typeddict(each)]
    with pytest.MonkeyPatch.context() as patch:
        for each in types:
            patch.setattr(each, "__pydantic_config__", {"extra": "forbid", "strict": True}, raising=False)
        yield {name: TypeAdapter(each) for name, each in ANSWERS.items()}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("answers")
    settings = folder / "settings.yaml"
    settings.write_text(json.dumps(SETTINGS))
    environment = Environment(
        database_url=f"sqlite:///{folder / 'gpuplan.sqlite3'}", settings=settings, inventory=EXAMPLES / "inventory.yaml"
    )
    with TestClient(create_service(Gpuplan(environment))) as client:
        yield client


def examples_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, schema of its answer and body of every example of a question."""
    for path, methods in document["paths"].items():
        operation = methods.get("post")
        if operation is None or "{" in path or path in ABOUT_SOMETHING:
            continue
        [answered] = [each for status, each in operation["responses"].items() if status in {"200", "201"}]
        schema = answered["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for example in operation["requestBody"]["content"]["application/json"]["examples"].values():
            yield path, schema, example["value"]


def test_every_example_is_answered_as_its_schema_says(asked: TestClient, exact: dict[str, TypeAdapter[Any]]) -> None:
    seen = set()
    for path, schema, body in examples_of(asked.get("/openapi.json").json()):
        response = asked.post(path, json=body, headers={"Prefer": "wait=50"})
        if schema not in exact:
            continue
        assert response.status_code in {200, 201}, f"{path}: {response.text}"
        exact[schema].validate_python(response.json())
        seen.add(path)
    assert {"/v1/plans", "/v1/estimates", "/v1/why", "/v1/replan", "/v1/portfolios", "/v1/buy", "/v1/watches"} <= seen


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: str(file.stem))
def test_plans_of_all_kinds_are_as_the_types_say(
    asked: TestClient, exact: dict[str, TypeAdapter[Any]], file: Path
) -> None:
    if file.stem == "inventory":
        return
    job = yaml.safe_load(file.read_text())
    answer = asked.post(
        "/v1/plans?frontier=true", content=file.read_bytes(), headers={"Content-Type": "application/yaml"}
    )
    exact["PlanAnswer"].validate_python(answer.json())
    hopeless = asked.post("/v1/plans", json=job | {"deadline": "1h", "budget_usd": 1})
    if job["name"] not in WITHIN_AN_HOUR:
        assert exact["PlanAnswer"].validate_python(hopeless.json())["outcome"] == "infeasible"


@pytest.mark.parametrize("path", ["accelerators", "presets", "snapshots", "offers"])
def test_listings_are_as_the_types_say(asked: TestClient, exact: dict[str, TypeAdapter[Any]], path: str) -> None:
    assert exact[path.capitalize()].validate_python(asked.get(f"/v1/{path}").json())[path]


def test_lists_of_what_was_done_are_as_the_types_say(
    exact: dict[str, TypeAdapter[Any]], own_store: str, tmp_path: Path, job: dict[str, Any]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps(SETTINGS))
    environment = Environment(database_url=own_store, settings=settings, **NOWHERE)  # type: ignore[arg-type]
    with TestClient(create_service(Gpuplan(environment, clouds={"aws": making(aws())}))) as client:
        plan = client.post("/v1/plans", json=job).json()["plan"]
        exact["Actual"].validate_python(client.post(f"/v1/plans/{plan['id']}/actuals", json={"hours": "9h"}).json())
        exact["Watch"].validate_python(client.post("/v1/watches", json=WATCH_EXAMPLE).json())
        begun = exact["Refresh"].validate_python(client.post("/v1/refreshes").json())
        while client.get(f"/v1/refreshes/{begun['id']}").json()["status"] == "running":
            time.sleep(0.05)
        for path, schema in (("refreshes", "Refresh"), ("runs", "Run")):
            assert exact[schema].validate_python(client.get(f"/v1/{path}/{begun['id']}").json())["status"] == "done"
        for path in ("actuals", "watches", "refreshes", "snapshots"):
            assert exact[path.capitalize()].validate_python(client.get(f"/v1/{path}").json())[path], path
        current, *_ = client.get("/v1/snapshots").json()["snapshots"]
        differs = exact["SnapshotDiff"].validate_python(client.get(f"/v1/snapshots/{current['id']}/diff").json())
        assert differs["changes"]
        assert differs["instance_types"]


def test_a_verification_and_prices_and_problems_are_as_the_types_say(
    asked: TestClient, exact: dict[str, TypeAdapter[Any]], job: dict[str, Any]
) -> None:
    plan = asked.post("/v1/plans", json=job).json()
    verified = exact["VerificationAnswer"].validate_python(asked.post("/v1/verify", json=plan).json())
    assert verified["outcome"] == "verified"
    assert exact["Prices"].validate_python(asked.get("/v1/prices?instance_type=p5.48xlarge").json())["prices"]
    assert exact["Problem"].validate_python(asked.post("/v1/plans", json={}).json())["errors"]
    reported = asked.post(f"/v1/plans/{plan['plan']['id']}/actuals", json={"hours": "9h"})
    exact["Actual"].validate_python(reported.json())
    exact["Actuals"].validate_python(asked.get("/v1/actuals").json())


def test_links_are_as_the_types_say(asked: TestClient, exact: dict[str, TypeAdapter[Any]], job: dict[str, Any]) -> None:
    plan_id = asked.post("/v1/plans", json=job).json()["plan"]["id"]
    made = exact["NewShare"].validate_python(asked.post("/v1/shares", json={"plan": plan_id}).json())
    opened = exact["OpenedShare"].validate_python(asked.post("/v1/shares/open", json={"link": made["link"]}).json())
    assert opened == {"kind": "plan", "object_id": plan_id}
    assert [each["id"] for each in exact["Shares"].validate_python(asked.get("/v1/shares").json())["shares"]]
    revoked = exact["Share"].validate_python(asked.delete(f"/v1/shares/{made['id']}").json())
    assert revoked["revoked_at"]
