"""Answers are what the client's types and the OpenAPI document say, key by key: no more, no less."""

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from pydantic import ConfigDict, TypeAdapter

from gpuplan.api.http.answer_schemas import ANSWERS
from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.openapi_bodies import examples_of
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.schemas.watch import WatchDocument
from gpuplan.api.services.composition import open_services
from gpuplan.planner.model.wire import wire
from tests.api.clouds_for_tests import NOWHERE, aws, making

EXAMPLES = Path(__file__).parents[3] / "examples"
#: Questions about something that must be there first.
ABOUT_SOMETHING = {"/v1/verify", "/v1/refreshes", "/v1/shares", "/v1/shares/open"}
#: A dollar and an hour are enough for the first; why not for the second takes as long to find as why for all others.
NOT_HOPELESS = {"mnist-cnn", "gpt3-175b"}
SETTINGS = {"channels": [{"name": "team", "kind": "slack", "url_from": "TEAM_URL"}]}


def exact(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """`document`, which reads as the answer `name` without a key too many, and is written again as the same JSON."""
    [answer] = _adapter(name).validate_json(json.dumps([document]))
    assert wire(answer) == document
    return document


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    alone: Any = GenericAlias(tuple, (ANSWERS[name],))
    return TypeAdapter(alone, config=ConfigDict(extra="forbid", strict=True))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("answers")
    settings = folder / "settings.yaml"
    settings.write_text(json.dumps(SETTINGS))
    environment = Environment(
        database_url=f"sqlite:///{folder / 'gpuplan.sqlite3'}", settings=settings, inventory=EXAMPLES / "inventory.yaml"
    )
    with pytest.MonkeyPatch.context() as nobody_asked, TestClient(create_service(open_services(environment))) as client:
        nobody_asked.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield client


def documented_bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, schema of its answer and body of every example of a question."""
    for path, methods in document["paths"].items():
        operation = methods.get("post")
        if operation is None or "{" in path or path in ABOUT_SOMETHING:
            continue
        [answered] = [answer for status, answer in operation["responses"].items() if status in {"200", "201"}]
        schema = answered["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for example in operation["requestBody"]["content"]["application/json"]["examples"].values():
            # A plan that is named must be stored first.
            if "plan" not in example["value"]:
                yield path, schema, example["value"]


@pytest.mark.slow(reason="one long case")
def test_every_example_is_answered_as_its_schema_says(asked: TestClient) -> None:
    seen = set()
    for path, schema, body in documented_bodies(asked.get("/openapi.json").json()):
        response = asked.post(path, json=body, headers={"Prefer": "wait=50"})
        assert response.status_code in {200, 201}, f"{path}: {response.text}"
        seen.add(path)
        if schema in ANSWERS:
            exact(schema, response.json())
    assert {
        "/v1/plans",
        "/v1/estimates",
        "/v1/import",
        "/v1/afford",
        "/v1/capacity",
        "/v1/why",
        "/v1/replan",
        "/v1/portfolios",
        "/v1/buy",
        "/v1/watches",
        "/v1/run-policies",
        "/v1/simulations",
    } <= seen


@pytest.mark.slow(reason="long cases")
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: str(file.stem))
def test_plans_of_all_kinds_are_as_the_types_say(asked: TestClient, file: Path) -> None:
    if file.stem == "inventory":
        return
    job = yaml.safe_load(file.read_text())
    answer = asked.post(
        "/v1/plans?frontier=true", content=file.read_bytes(), headers={"Content-Type": "application/yaml"}
    )
    exact("PlanAnswer", answer.json())
    if job["name"] not in NOT_HOPELESS:
        hopeless = asked.post("/v1/plans", json=job | {"deadline": "1h", "budget_usd": 1})
        assert exact("PlanAnswer", hopeless.json())["outcome"] == "infeasible"


@pytest.mark.parametrize("path", ["accelerators", "presets", "snapshots", "offers"])
def test_listings_are_as_the_types_say(asked: TestClient, path: str) -> None:
    assert exact(path.capitalize(), asked.get(f"/v1/{path}").json())[path]


def test_lists_of_what_was_done_are_as_the_types_say(own_store: str, tmp_path: Path, job: dict[str, Any]) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps(SETTINGS))
    environment = Environment(database_url=own_store, settings=settings, **NOWHERE)  # type: ignore[arg-type]
    with TestClient(create_service(open_services(environment, clouds={"aws": making(aws())}))) as client:
        plan = client.post("/v1/plans", json=job).json()["plan"]
        exact("Actual", client.post(f"/v1/plans/{plan['id']}/actuals", json={"hours": "9h"}).json())
        exact("Watch", client.post("/v1/watches", json=examples_of(WatchDocument)[0]).json())
        begun = exact("Refresh", client.post("/v1/refreshes").json())
        while client.get(f"/v1/refreshes/{begun['id']}").json()["status"] == "running":
            time.sleep(0.05)
        for path, schema in (("refreshes", "Refresh"), ("runs", "Run")):
            assert exact(schema, client.get(f"/v1/{path}/{begun['id']}").json())["status"] == "done"
        for path in ("actuals", "watches", "refreshes", "snapshots"):
            assert exact(path.capitalize(), client.get(f"/v1/{path}").json())[path], path
        current, *_ = client.get("/v1/snapshots").json()["snapshots"]
        differs = exact("SnapshotDiff", client.get(f"/v1/snapshots/{current['id']}/diff").json())
        assert differs["changes"]
        assert differs["instance_types"]


@pytest.mark.slow(reason="one long case")
def test_a_verification_and_prices_and_problems_are_as_the_types_say(asked: TestClient, job: dict[str, Any]) -> None:
    plan = asked.post("/v1/plans", json=job).json()
    verified = exact("VerificationAnswer", asked.post("/v1/verify", json=plan).json())
    assert verified["outcome"] == "verified"
    assert exact("Prices", asked.get("/v1/prices?instance_type=p5.48xlarge").json())["prices"]
    assert exact("Problem", asked.post("/v1/plans", json={}).json())["errors"]
    reported = asked.post(f"/v1/plans/{plan['plan']['id']}/actuals", json={"hours": "9h"})
    exact("Actual", reported.json())
    exact("Actuals", asked.get("/v1/actuals").json())


def test_links_are_as_the_types_say(asked: TestClient, job: dict[str, Any]) -> None:
    plan_id = asked.post("/v1/plans", json=job).json()["plan"]["id"]
    made = exact("NewShare", asked.post("/v1/shares", json={"plan": plan_id}).json())
    shared_plan = exact("SharedObject", asked.post("/v1/shares/open", json={"link": made["link"]}).json())
    assert shared_plan == {"kind": "plan", "object_id": plan_id}
    assert [share["id"] for share in exact("Shares", asked.get("/v1/shares").json())["shares"]]
    revoked = exact("Share", asked.delete(f"/v1/shares/{made['id']}").json())
    assert revoked["revoked_at"]
