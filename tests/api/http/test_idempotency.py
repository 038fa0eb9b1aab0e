"""`Idempotency-Key` where requests come at once, are refused first, or carry two keys: never a second answer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest


def at_once(client: httpx.Client, path: str, body: dict[str, Any], **headers: str) -> list[httpx.Response]:
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(client.post, path, json=body, headers=headers) for _ in range(6)]
        return [future.result(60) for future in asked]


def test_requests_that_come_at_once_with_one_key_get_one_answer(client: httpx.Client, job: dict[str, Any]) -> None:
    key = {"Idempotency-Key": "at-once-1"}
    answers = at_once(client, "/v1/plans", job, **key)
    assert {answer.status_code for answer in answers} == {200}
    # Also what changes by the clock: the time at which the plan was made is that of the first.
    assert len({answer.content for answer in answers}) == 1
    assert client.post("/v1/plans", json=job, headers=key).content == answers[0].content
    other = client.post("/v1/plans", json=job | {"name": "other"}, headers=key)
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/Idempotency-Key")


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "at-once-2"}])
def test_a_report_that_comes_at_once_many_times_is_one(
    client: httpx.Client, job: dict[str, Any], headers: dict[str, str]
) -> None:
    named = job | {"name": f"reported {len(headers)}"}
    path = f"/v1/plans/{client.post('/v1/plans', json=named).json()['plan']['id']}/actuals"
    answers = at_once(client, path, {"hours": "9h"}, **headers)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    actuals = client.get(path).json()["actuals"]
    assert len(actuals) == 1
    assert client.delete(f"/v1/actuals/{actuals[0]['id']}").status_code == 200


def test_a_key_of_a_request_that_was_refused_is_free(client: httpx.Client, job: dict[str, Any]) -> None:
    key = {"Idempotency-Key": "refused-first"}
    assert client.post("/v1/plans", json={}, headers=key).status_code == 422
    assert client.post("/v1/plans", json=job, headers=key).status_code == 200


def test_two_keys_are_none(client: httpx.Client, job: dict[str, Any]) -> None:
    keys = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
    refused = client.post("/v1/plans", json=job, headers=keys)
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["pointer"], error["in"]) == (400, "/Idempotency-Key", "header")
    assert "more than once" in error["detail"]


def test_an_answer_with_a_secret_is_kept_under_no_key(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "key-of-a-key"}
    first, second = (client.post("/v1/keys", json={"name": "ci"}, headers=headers).json() for _ in range(2))
    assert first["key"] != second["key"]
    for made in (first, second):
        assert client.delete(f"/v1/keys/{made['id']}").json()["state"] == "revoked"
