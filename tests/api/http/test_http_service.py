"""The HTTP service: answers, problems with pointers, caching, paging, idempotency, and no traceback for anyone."""

import json
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.middleware import LOOPBACK_HOSTS
from gpuplan.api.http.request_bodies import BODY_LIMIT_BYTES
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.services.plans import PlanService

pytestmark = pytest.mark.slow(reason="starts the service")

Served = Callable[[ASGIApp], AbstractContextManager[httpx.Client]]


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["request_id"] == response.headers["x-request-id"]
    return body


def test_a_plan_is_answered_and_can_be_read_again(client: httpx.Client, job: dict[str, Any]) -> None:
    answer = client.post("/v1/plans", json=job).json()
    assert answer["outcome"] == "planned"
    again = client.get(f"/v1/plans/{answer['plan']['id']}")
    assert again.status_code == 200
    assert again.json()["plan"] == answer["plan"]


def test_no_plan_is_an_answer_too(client: httpx.Client, hopeless: dict[str, Any]) -> None:
    response = client.post("/v1/plans", json=hopeless)
    assert response.status_code == 200
    assert response.json()["outcome"] == "infeasible"


def test_yaml_and_json_give_the_same_plan(client: httpx.Client, job: dict[str, Any]) -> None:
    yaml = "\n".join(f"{key}: {json.dumps(value)}" for key, value in job.items())
    first = client.post("/v1/plans", content=yaml, headers={"content-type": "application/yaml"}).json()
    assert first["plan"] == client.post("/v1/plans", json=job).json()["plan"]


def test_the_frontier_comes_when_asked_for(client: httpx.Client, job: dict[str, Any]) -> None:
    assert client.post("/v1/plans?frontier=true", json=job).json()["plan"]["frontier"]
    assert not client.post("/v1/plans", json=job).json()["plan"].get("frontier")


def test_a_plan_can_rest_on_a_named_snapshot(client: httpx.Client, job: dict[str, Any]) -> None:
    [snapshot] = client.get("/v1/snapshots").json()["snapshots"]
    answer = client.post(f"/v1/plans?snapshot={snapshot['id']}", json=job).json()
    assert answer["plan"]["snapshot_id"] == snapshot["id"]
    problem(client.post("/v1/plans?snapshot=feed", json=job), 404)


def test_an_estimate_is_answered(client: httpx.Client, question: dict[str, Any]) -> None:
    answer = client.post("/v1/estimates", json=question).json()
    assert answer["memory"]["fits"] is True
    assert {"hours", "layout", "terms", "band"} <= set(answer)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"deadline": "7 dogs"}, "/deadline"),
        ({"deadlin": "3d"}, "/deadlin"),
        ({"a/b~c": 1}, "/a~1b~0c"),
        ({"constraints": {"accelerators": ["H1000"]}}, "/constraints/accelerators/0"),
        ({"constraints": {"regions": ["atlantis-*"]}}, "/constraints/regions/0"),
        ({"workload": {"kind": "explicit", "total_flops": 1e40, "memory_gib": 1}}, "/workload/total_flops"),
        ({"workload": {"kind": "preset", "model": "lama-3-8b", "tokens": 1e9}}, "/workload/model"),
        ({"budget_usd": -5}, "/budget_usd"),
        ({"deadline": "2020-01-01T00:00Z"}, "/deadline"),
        (
            {
                "workload": {
                    "kind": "transformer",
                    "layers": 2,
                    "hidden_size": 100,
                    "ffn_size": 400,
                    "attention_heads": 7,
                    "vocabulary_size": 1000,
                    "sequence_length": 128,
                    "tokens": 1e9,
                }
            },
            "/workload/attention_heads",
        ),
    ],
)
def test_an_unusable_job_is_a_problem_with_a_pointer(
    client: httpx.Client, job: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    body = problem(client.post("/v1/plans", json=job | change), 422)
    assert pointer in {error["pointer"] for error in body["errors"]}
    assert all(error["detail"] and error["in"] == "body" for error in body["errors"])


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "1e999"])
def test_a_figure_that_is_no_number_is_a_problem_with_a_pointer(
    client: httpx.Client, job: dict[str, Any], figure: str
) -> None:
    content = json.dumps(job).replace('"36h"', figure)
    response = client.post("/v1/plans", content=content, headers={"content-type": "application/json"})
    assert [error["pointer"] for error in problem(response, 422)["errors"]] == ["/deadline"]


def test_an_unusable_configuration_points_into_the_request(client: httpx.Client, question: dict[str, Any]) -> None:
    question["on"]["layout"] = {"tensor": 3}
    question["job"]["deadline"] = "7 dogs"
    body = problem(client.post("/v1/estimates", json=question), 422)
    assert "/job/deadline" in {error["pointer"] for error in body["errors"]}


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"deadline: 3d", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"a": 1, "a": 2}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"a: &a [x]\nb: [*a]", "application/yaml", 400),
        (b"\xff\xfe", "application/yaml", 400),
        (b"x" * (BODY_LIMIT_BYTES + 1), "application/json", 413),
        (b"{}", "text/plain", 415),
        (b"{}", "application/json; charset=utf-16", 415),
        (b"{}", "", 415),
    ],
)
def test_a_body_that_is_no_document_is_refused(client: httpx.Client, content: bytes, kind: str, status: int) -> None:
    problem(client.post("/v1/plans", content=content, headers={"content-type": kind}), status)


def test_a_body_is_cut_off_whatever_it_announced(client: httpx.Client) -> None:
    chunks = (b" " * 65_536 for _ in range(17))
    problem(client.post("/v1/plans", content=chunks, headers={"content-type": "application/json"}), 413)


def test_a_compressed_body_is_refused(client: httpx.Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    problem(client.post("/v1/plans", content=b"{}", headers=headers), 415)


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/v1/offers?colour=red", "/colour"),
        ("/v1/offers?limit=0", "/limit"),
        ("/v1/offers?limit=many", "/limit"),
        ("/v1/offers?provider=amazon", "/provider"),
        ("/v1/offers?region=atlantis-*", "/region"),
        ("/v1/offers?accelerator=H1000", "/accelerator"),
        ("/v1/offers?cursor=nonsense", "/cursor"),
    ],
)
def test_a_wrong_parameter_is_a_problem_with_a_pointer(client: httpx.Client, path: str, pointer: str) -> None:
    body = problem(client.get(path), 422)
    assert [(error["pointer"], error["in"]) for error in body["errors"]] == [(pointer, "query")]


def test_what_is_not_there_is_a_problem(client: httpx.Client) -> None:
    for path, within in (
        ("/v1/plans/absent", "path"),
        ("/v1/plans/%00", "path"),
        ("/v1/offers?snapshot=feed", "query"),
    ):
        assert [error["in"] for error in problem(client.get(path), 404)["errors"]] == [within]
    problem(client.get("/nowhere"), 404)
    allowed = client.delete("/v1/offers")
    problem(allowed, 405)
    assert allowed.headers["allow"] == "GET, HEAD"


def test_pages_fit_together_to_the_whole_listing(client: httpx.Client) -> None:
    filters = "provider=aws&kind=on_demand"
    whole = client.get(f"/v1/offers?{filters}&limit=10000").json()
    assert whole["next_cursor"] is None
    rows, path = [], f"/v1/offers?{filters}&limit=150"
    while path:
        response = client.get(path)
        rows += response.json()["offers"]
        path = response.links.get("next", {}).get("url", "")
    assert rows == whole["offers"]
    assert len(rows) == whole["total"] > 150


def test_a_cursor_is_bound_to_its_filters(client: httpx.Client) -> None:
    cursor = client.get("/v1/offers?provider=aws&limit=1").json()["next_cursor"]
    assert client.get(f"/v1/offers?provider=aws&limit=1&cursor={cursor}").status_code == 200
    problem(client.get(f"/v1/offers?provider=gcp&limit=1&cursor={cursor}"), 422)
    problem(client.get(f"/v1/offers?provider=aws&limit=1&cursor={cursor}&snapshot=feed"), 422)


def test_csv_is_given_to_those_who_ask(client: httpx.Client) -> None:
    response = client.get("/v1/offers?limit=3", headers={"accept": "text/csv, application/json;q=0.5"})
    assert response.headers["content-type"].startswith("text/csv")
    lines = response.text.splitlines()
    assert lines[0].startswith("provider,region,zone,instance_type,")
    assert len(lines) == 4
    refused = client.get("/v1/offers", headers={"accept": "image/png"})
    problem(refused, 406)
    assert refused.headers["vary"] == "Accept"


@pytest.mark.parametrize("path", ["/v1/offers?limit=2", "/v1/accelerators", "/v1/presets", "/v1/snapshots"])
def test_what_did_not_change_is_not_sent_again(client: httpx.Client, path: str) -> None:
    first = client.get(path)
    etag = first.headers["etag"]
    assert not etag.startswith("W/")
    revalidated = client.get(path, headers={"if-none-match": f'"other", {etag}'})
    assert (revalidated.status_code, revalidated.content, revalidated.headers["etag"]) == (304, b"", etag)
    assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


def test_another_query_or_media_type_has_another_etag(client: httpx.Client) -> None:
    csv = {"accept": "text/csv"}
    tags = [
        client.get("/v1/offers?limit=2").headers["etag"],
        client.get("/v1/offers?limit=3").headers["etag"],
        client.get("/v1/offers?limit=2", headers=csv).headers["etag"],
    ]
    assert len(set(tags)) == 3


def test_the_same_key_gets_the_same_answer_and_another_request_a_problem(
    client: httpx.Client, job: dict[str, Any]
) -> None:
    headers = {"idempotency-key": "order-66"}
    first = client.post("/v1/plans", json=job, headers=headers)
    assert client.post("/v1/plans", json=job, headers=headers).json() == first.json()
    other = client.post("/v1/plans", json=job | {"deadline": "48h"}, headers=headers)
    assert problem(other, 422)["errors"][0] | {"detail": ""} == {
        "pointer": "/Idempotency-Key",
        "in": "header",
        "detail": "",
    }
    problem(client.post("/v1/plans?frontier=true", json=job, headers=headers), 422)
    problem(client.post("/v1/plans", json=job, headers={"idempotency-key": "k" * 256}), 400)


def test_a_request_id_is_echoed_if_it_is_harmless(client: httpx.Client) -> None:
    assert client.get("/healthz", headers={"x-request-id": "trace-1"}).headers["x-request-id"] == "trace-1"
    for harmful in ("a b", "x" * 200, "", "<script>"):
        made = client.get("/healthz", headers={"x-request-id": harmful}).headers["x-request-id"]
        assert made != harmful
        assert len(made) == 32


def test_the_service_lives_and_is_ready(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    ready = client.get("/readyz").json()
    assert ready["status"] in {"ready", "degraded"}  # the embedded prices grow old
    assert ready["offers"] > 1000
    assert ready["snapshot_id"] == client.get("/v1/snapshots").json()["snapshots"][0]["id"]


def test_a_broken_store_is_said_to_be_unavailable_but_the_process_lives(tmp_path: Path, served: Served) -> None:
    path = tmp_path / "broken.sqlite3"
    path.write_bytes(b"no database " * 200)
    broken = open_services(Environment(database_url=f"sqlite:///{path}"))
    with served(create_service(broken)) as client:
        assert client.get("/healthz").status_code == 200
        response = client.get("/readyz")
        assert str(path) in problem(response, 503)["detail"]
        assert int(response.headers["retry-after"]) > 0
        problem(client.get("/v1/offers"), 503)


def test_a_bug_is_a_problem_with_the_id_under_which_it_is_logged(
    database_url: str,
    job: dict[str, Any],
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def bug(*_: object, **__: object) -> dict[str, Any]:
        raise ZeroDivisionError("secret inside")

    monkeypatch.setattr(PlanService, "plan_text", bug)
    with served(create_service(open_services(Environment(database_url=database_url)))) as client:
        response = client.post("/v1/plans", json=job)
    body = problem(response, 500)
    assert "secret inside" not in response.text
    assert "secret inside" in caplog.text
    assert body["request_id"] in caplog.text


def test_a_page_elsewhere_cannot_ask_by_its_own_name(gpuplan: Services, served: Served) -> None:
    with served(create_service(gpuplan, hosts=LOOPBACK_HOSTS)) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"host": "LOCALHOST:1"}).status_code == 200
        for address in ("10.2.3.4:8080", "[2001:db8::1]:8080"):
            assert client.get("/healthz", headers={"host": address}).status_code == 200
        for other in ("example.org", "127.0.0.1.example.org", "localhost@example.org:80", "", "[::1", "10.2.3"):
            problem(client.get("/healthz", headers={"host": other}), 421)


def test_too_long_a_queue_is_refused_at_once(
    gpuplan: Services, served: Served, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def waits(*_: Any, **__: Any) -> str:
        began.set()
        may_end.wait(60)
        return "{}"

    monkeypatch.setattr(gpuplan.plans, "plan_text", waits)
    service = create_service(gpuplan)
    service.state.workers = Workers(at_once=1, most_waiting=0, retry_after_seconds=3)
    with served(service) as client:
        first = threading.Thread(target=client.post, args=("/v1/plans",), kwargs={"json": job}, daemon=True)
        first.start()
        assert began.wait(60)
        response = client.post("/v1/plans", json=job)
        may_end.set()
        first.join(60)
        problem(response, 503)
        assert response.headers["retry-after"] == "3"


def test_the_documentation_page_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    response = client.get("/docs")
    page = response.text
    assert response.headers["content-type"].startswith("text/html")
    assert page.count("<script") == page.count('<script src="/static/')
    assert "https://" not in page
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page


def test_the_documentation_page_shows_code_as_code_and_asks_where_the_reader_is(client: httpx.Client) -> None:
    page = client.get("/docs").text
    outside_examples = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert "`" not in outside_examples
    assert "<code>" in outside_examples
    assert "&lt;code&gt;" not in page
    assert "127.0.0.1:8080" not in page
    port = client.base_url.port
    assert f"curl -sS http://127.0.0.1:{port}/v1/snapshots" in page
    elsewhere = client.get("/docs", headers={"host": "localhost:9999"}).text
    assert "curl -sS http://localhost:9999/v1/snapshots" in elsewhere


def test_every_operation_has_a_name_and_every_body_an_example(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    operations = [method for methods in document["paths"].values() for method in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content["examples"]


def test_a_parameter_given_twice_is_refused_rather_than_counted_once(client: httpx.Client) -> None:
    answer = client.get("/v1/offers", params=[("provider", "aws"), ("provider", "gcp")])
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"pointer": "/provider", "in": "query", "detail": "is given more than once; give it once"}
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/watches?colour=red", "unknown parameter; this operation accepts no parameters"),
        ("/v1/actuals?colour=red", "unknown parameter; this operation accepts no parameters"),
        ("/v1/snapshots?colour=red", "unknown parameter; "),
        ("/v1/prices?instance_type=p5.48xlarge&colour=red", "unknown parameter; accepted: cursor, instance_type, kind"),
    ],
)
def test_a_parameter_that_nobody_knows_is_refused_rather_than_left_out(
    client: httpx.Client, path: str, message: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 422, answer.text
    [fault] = answer.json()["errors"]
    assert (fault["pointer"], fault["in"]) == ("/colour", "query")
    assert fault["detail"].startswith(message)


def test_an_empty_snapshot_is_no_snapshot(client: httpx.Client, job: dict[str, Any]) -> None:
    assert client.post("/v1/plans", json=job, params={"snapshot": ""}).status_code == 404
