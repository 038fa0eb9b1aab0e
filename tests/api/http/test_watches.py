"""Watched jobs over HTTP: added once per key, listed, read with what was told, removed."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services


@pytest.fixture
def asked(
    own_store: str,
    tmp_path: Path,
    served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[httpx.Client]:
    monkeypatch.setenv("OPS_SECRET", "whsec_" + base64.b64encode(b"k" * 24).decode())
    settings = tmp_path / "settings.yaml"
    channel = {"name": "ops", "kind": "webhook", "url": "https://ops.invalid/hook", "secret_from": "OPS_SECRET"}
    settings.write_text(json.dumps({"channels": [channel]}))
    gpuplan = open_services(Environment(database_url=own_store, settings=settings))
    with served(create_service(gpuplan)) as client:
        yield client
    gpuplan.store.close()


@pytest.fixture
def job(job: dict[str, Any]) -> dict[str, Any]:
    """From now on, whenever that is: what is watched runs by the clock."""
    return {name: value for name, value in job.items() if name != "start"}


def test_a_watch_is_added_listed_read_and_removed(asked: httpx.Client, job: dict[str, Any]) -> None:
    added = asked.post("/v1/watches", json={"job": job, "channels": ["ops"], "name": "n"})
    assert added.status_code == 200, added.text
    watch = added.json()
    assert (watch["name"], watch["cheaper_by_percent"], watch["warnings"]) == ("n", 10.0, [])
    assert asked.get(f"/v1/plans/{watch['last_told']['plan_id']}").status_code == 200
    [listed] = asked.get("/v1/watches").json()["watches"]
    assert listed == {name: value for name, value in watch.items() if name != "warnings"}
    read = asked.get(f"/v1/watches/{watch['id']}").json()
    assert (read["notifications"], read["job"]["name"]) == ([], job["name"])
    assert asked.delete(f"/v1/watches/{watch['id']}").json() == {"forgotten": 1}
    for answer in (asked.get(f"/v1/watches/{watch['id']}"), asked.delete(f"/v1/watches/{watch['id']}")):
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_key_makes_it_safe_to_send_again(asked: httpx.Client, job: dict[str, Any]) -> None:
    key, body = {"Idempotency-Key": "once"}, {"job": job, "channels": ["ops"]}
    first = asked.post("/v1/watches", json=body, headers=key)
    assert asked.post("/v1/watches", json=body, headers=key).json() == first.json()
    assert asked.post("/v1/watches", json=body | {"name": "other"}, headers=key).status_code == 422


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"channels": ["nobody"]}, "/channels"),
        ({"channels": []}, "/channels"),
        ({"cheaper_by_percent": 100}, "/cheaper_by_percent"),
        ({"job": {"workload": {"kind": "preset", "model": "resnet-50"}}}, "/job/workload/samples"),
        ({"chanels": 1}, "/chanels"),
    ],
)
def test_a_wrong_watch_is_a_problem_with_a_pointer(
    asked: httpx.Client, job: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    refused = asked.post("/v1/watches", json={"job": job, "channels": ["ops"]} | change)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
