"""Methods, addresses and conditional requests as HTTP has them, whichever route is asked."""

import socket
from contextlib import closing
from typing import Any

import httpx
import pytest

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from tests.api.conftest import serving

OF_ONE_REQUEST = {"date", "x-request-id"}


def stable(answer: httpx.Response) -> dict[str, str]:
    """Its headers without those of a single request."""
    return {name: value for name, value in answer.headers.items() if name not in OF_ONE_REQUEST}


@pytest.mark.parametrize("path", ["/v1/offers?limit=1", "/v1/presets", "/", "/v1/plans/nothing", "/v1/offers?limit=x"])
def test_head_is_answered_as_get_without_the_body(client: httpx.Client, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, stable(head), head.content) == (get.status_code, stable(get), b"")


def test_the_body_of_a_head_stays_away_from_the_next_answer(client: httpx.Client) -> None:
    at = client.base_url
    request = b" /healthz HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection((at.host, at.port or 80), timeout=60) as connection:
        connection.sendall(b"HEAD" + request + b"\r\nGET" + request + b"Connection: close\r\n\r\n")
        heard = b"".join(iter(lambda: connection.recv(65_536), b""))
    first, second, body = heard.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 200")
    assert b"alive" in body


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/watches", "GET, HEAD, POST"),
        ("PATCH", "/v1/runs/x", "DELETE, GET, HEAD"),
        ("OPTIONS", "/v1/plans", "POST"),
        ("HEAD", "/v1/plans", "POST"),
        ("POST", "/v1/actuals", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
    ],
)
def test_another_method_is_refused_with_all_that_are_accepted(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert answer.headers["content-type"] == "application/problem+json"
    if method != "HEAD":
        assert allowed in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/plans/", "/v1/offers/?limit=1"])
def test_a_slash_too_many_leads_nowhere_and_says_so(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "remove the slash" in answer.json()["detail"]


def test_an_address_of_nothing_says_where_to_look(client: httpx.Client) -> None:
    assert "/docs" in client.get("/v2/plans").json()["detail"]


def test_wishes_on_several_lines_count_together(client: httpx.Client) -> None:
    first = client.get("/v1/offers", params={"limit": 1}, headers={"Accept": "text/csv"})
    tags = [("If-None-Match", '"other"'), ("If-None-Match", first.headers["etag"]), ("Accept", "text/html")]
    assert client.get("/v1/offers", params={"limit": 1}, headers=[*tags, ("Accept", "text/csv")]).status_code == 304


@pytest.mark.parametrize("accept", ["", ",", ",, ;"])
def test_who_names_no_kind_takes_any(client: httpx.Client, accept: str) -> None:
    answer = client.get("/v1/offers", params={"limit": 1}, headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"


def test_any_tag_matches_what_there_is_and_hides_no_refusal(client: httpx.Client) -> None:
    any_tag = {"If-None-Match": "*"}
    assert client.get("/v1/offers", params={"limit": 1}, headers=any_tag).status_code == 304
    assert client.get("/v1/offers", params={"provider": "nobody"}, headers=any_tag).status_code == 422


def test_a_saved_plan_is_sent_once_to_who_keeps_it(client: httpx.Client, job: dict[str, Any]) -> None:
    path = f"/v1/plans/{client.post('/v1/plans', json=job).json()['plan']['id']}"
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": f'"a", {first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])


def test_what_is_wrong_with_a_key_in_the_address_is_said_of_the_address(client: httpx.Client) -> None:
    made = client.post("/v1/keys", json={"name": "ci", "scope": "read"}).json()
    client.delete(f"/v1/keys/{made['id']}")
    answer = client.post(f"/v1/keys/{made['id']}/rotate")
    assert (answer.status_code, answer.json()["errors"][0]["in"]) == (422, "path")


IDS_OF = ("plans/{}", "plans/{}/actuals", "runs/{}", "refreshes/{}", "watches/{}", "portfolios/{}", "snapshots/{}/diff")


def test_an_id_with_a_nul_is_not_found_on_postgresql_either(postgresql_url: str) -> None:
    gpuplan = open_services(Environment(database_url=postgresql_url))
    with closing(gpuplan.store), serving(create_service(gpuplan)) as client:
        for path in IDS_OF:
            answer = client.get(f"/v1/{path.format('a%00b')}")
            assert answer.status_code == 404, f"{path}: {answer.text}"
            assert answer.json()["errors"][0]["in"] == "path", path
        for query in ("offers?snapshot=a%00b", "prices?instance_type=a%00b", "offers?region=a%00b", "audit?who=a%00b"):
            assert client.get(f"/v1/{query}").status_code < 500, query


def test_a_portfolio_of_no_jobs_is_told_what_to_list(client: httpx.Client) -> None:
    answer = client.post("/v1/portfolios", json={"jobs": []})
    assert answer.json()["errors"] == [{"pointer": "/jobs", "in": "body", "detail": "is empty; list at least one job"}]
