"""Every route asks who is there: nobody, an unknown, expired or revoked key gets one answer, too small a scope another."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from gpuplan.api.http.authentication import scopes_of_routes
from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.security.identity import SCOPES
from gpuplan.api.services.composition import Services, open_services
from gpuplan.api.slack.slack_settings import SlackSettings
from tests.api.conftest import serving
from tests.api.http.guarded import Guarded, guarded, limited
from tests.openapi_document import openapi_document

pytestmark = pytest.mark.slow(reason="starts the service")

#: Routes that anybody may ask, and why: liveness and readiness are asked by machines without keys, files of the page
#: hold nothing of a team, and without a form there is no way in. Slack signs what it sends.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/static/{digest}/{name}"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
}
#: What opens nothing, however it fails to.
NOBODY = (None, "unknown", "malformed", "expired", "revoked", "of another secret", "a b", "gpk_" + "x" * 9_000)


@cache
def routes() -> list[Any]:
    """Every route of the service by method, path and scope (None: open)."""
    slack = SlackSettings(signing_secret="s" * 32, bot_token="xoxb-1", client_id="1.2", client_secret="s" * 32)
    app = create_service(open_services(Environment()), slack=slack)
    scopes = scopes_of_routes(app)
    cases = []
    for context in iter_route_contexts(app.routes):
        for method in sorted(context.methods or {"ANY"}):
            scope = scopes.get((context.endpoint, method), "nobody said")
            cases.append(pytest.param(method, str(context.path), scope, id=f"{method} {context.path}"))
    return cases


@pytest.fixture(scope="module")
def service(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(embedded_store, tmp_path_factory.mktemp("guarded")) as guarded_service:
        yield guarded_service


def ask(service: Guarded, method: str, path: str, key: str | None) -> httpx.Response:
    """A request that changes nothing even where it is let in: its body is none that anybody takes."""
    return service.ask(method, path.format_map(_Names()), key, content=b"x", headers={"content-type": "text/plain"})


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "aws-cli" if name == "format" else "no-such-id"


@pytest.mark.parametrize(("method", "path", "scope"), routes())
def test_every_route_says_who_may_ask(method: str, path: str, scope: str | None) -> None:
    assert scope in {*SCOPES, None}, f"put {method} {path} into gpuplan.api.http.route_scopes"
    if scope is None:
        assert (method, path) in OPEN or path.startswith("/slack/")


@pytest.mark.parametrize(("method", "path", "scope"), [route for route in routes() if route.values[2] in SCOPES])
def test_a_route_answers_nobody_with_one_401_and_too_small_a_scope_with_403(
    service: Guarded, method: str, path: str, scope: str
) -> None:
    for key in (None, "unknown", "expired", "revoked"):
        refused = ask(service, method, path, key)
        assert refused.status_code == 401, key
        assert refused.headers["www-authenticate"].startswith("Bearer")
        body = refused.text.replace(refused.headers["x-request-id"], "")
        assert "no-such-id" not in body
        assert "expired" not in body
    for lesser in SCOPES[: SCOPES.index(scope)]:
        refused = ask(service, method, path, lesser)
        assert refused.status_code == 403
        assert scope in refused.text
        assert refused.headers["www-authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}"'
    assert ask(service, method, path, scope).status_code not in {401, 403, 500}


def test_all_that_opens_nothing_gets_the_same_words(service: Guarded, job: dict[str, Any]) -> None:
    made = service.ask("POST", "/v1/plans", "plan", json=job).json()["plan"]["id"]
    refusals = set()
    for path in (f"/v1/plans/{made}", "/v1/plans/no-such-plan"):
        for key in NOBODY[1:]:
            refused = service.ask("GET", path, key).json()
            refusals.add((refused["status"], refused["title"], refused["detail"]))
    assert len(refusals) == 1


def test_a_key_of_the_environment_opens_everything(service: Guarded) -> None:
    assert service.ask("GET", "/v1/keys", "environment").status_code == 200
    assert service.ask("GET", "/v1/keys", "admin").status_code == 200


def test_what_is_open_answers_without_a_key(service: Guarded) -> None:
    assert service.ask("GET", "/healthz").json() == {"status": "alive"}
    assert service.ask("GET", "/readyz").status_code == 200
    assert set(service.ask("GET", "/readyz").json()) == {"status", "why", "checks"}
    assert not service.ask("GET", "/readyz").json()["checks"]
    assert service.ask("GET", "/readyz", "unknown").json()["checks"] == {}
    assert service.ask("GET", "/readyz", "read").json()["checks"]
    assert service.ask("GET", "/login").status_code == 200


def test_a_path_that_is_not_there_says_nothing_else(service: Guarded) -> None:
    assert service.ask("GET", "/v1/nothing").status_code == 404
    assert service.ask("PUT", "/v1/plans").status_code == 405


def test_a_key_is_taken_only_as_a_bearer_in_the_header(service: Guarded) -> None:
    key = service.keys["admin"]
    for headers in (
        {"Authorization": key},
        {"Authorization": f"Basic {key}"},
        {"Authorization": "Bearer"},
        {"X-Api-Key": key},
        {"Cookie": f"gpuplan={key}"},
    ):
        assert service.ask("GET", "/v1/offers", headers=headers).status_code == 401
    assert service.ask("GET", f"/v1/offers?key={key}").status_code == 401
    assert service.ask("GET", "/v1/offers", headers={"Authorization": f"bearer  {key}"}).status_code == 200


def test_a_browser_that_asks_for_a_page_is_sent_to_log_in_and_back(service: Guarded) -> None:
    sent = service.ask("GET", "/catalogue?provider=aws", headers={"Accept": "text/html"})
    assert sent.status_code == 303
    assert sent.headers["location"] == "/login?next=%2Fcatalogue%3Fprovider%3Daws"
    # A session that ended while somebody typed: the page of the form comes back, and its script fills in what was typed.
    typed = {"HX-Request": "true", "Accept": "text/html", "HX-Current-URL": "http://127.0.0.1/?example=bert"}
    again = service.ask("POST", "/plans", headers=typed)
    assert (again.status_code, again.headers["hx-redirect"]) == (401, "/login?next=%2F%3Fexample%3Dbert")
    form = {"Accept": "text/html", "Referer": "https://evil.example/plans/plan-1?x=1"}
    noted = service.ask("POST", "/plans/plan-1/note", headers=form)
    assert (noted.status_code, noted.headers["location"]) == (303, "/login?next=%2Fplans%2Fplan-1%3Fx%3D1")
    assert service.ask("POST", "/plans", headers={"HX-Request": "true"}).headers["hx-redirect"] == "/login?next=%2F"


def test_no_other_site_is_told_that_it_may_read(service: Guarded) -> None:
    elsewhere = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    for method in ("OPTIONS", "GET"):
        answer = service.ask(method, "/v1/offers", "read", headers=elsewhere)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_service_open_to_all_says_that_a_key_may_be_left_out() -> None:
    document = openapi_document()
    asked = [operation["security"] for methods in document["paths"].values() for operation in methods.values()]
    assert document["paths"]["/v1/plans"]["post"]["security"] == [{}, {"key": ["plan"]}]
    assert all(security == [] or {} in security for security in asked)


def test_the_document_says_the_scope_of_each_operation(service: Guarded) -> None:
    document = service.ask("GET", "/openapi.json", "read").json()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for route in routes():
        method, path, scope = route.values
        if (operation := operations.get((method, path))) is None:
            continue
        assert operation["security"] == ([{"key": [scope]}] if scope else [])
        assert ({"401", "403", "429"} <= set(operation["responses"])) is bool(scope)


def test_figures_need_a_key_unless_they_are_open(service: Guarded) -> None:
    assert service.ask("GET", "/metrics").status_code == 401
    assert service.ask("GET", "/metrics", "read").status_code == 200
    with limited(service, metrics_open=True) as open_service:
        assert open_service.ask("GET", "/metrics").status_code == 200
        assert open_service.ask("GET", "/v1/offers").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
def test_a_page_of_another_site_changes_nothing_even_where_nobody_needs_a_key(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    for path in ("/v1/refreshes", "/v1/plans", "/plans"):
        assert client.post(path, headers=headers).status_code == 403
    assert client.get("/v1/offers?limit=1", headers=headers).status_code == 200


def test_a_plan_that_takes_too_long_is_stopped_and_its_thread_goes_on(gpuplan: Services, job: dict[str, Any]) -> None:
    app = create_service(gpuplan)
    app.state.workers = Workers(at_once=1, most_seconds=1e-6)
    with serving(app) as client:
        for _ in range(3):
            stopped = client.post("/v1/plans", json=job | {"name": "never planned"})
            assert stopped.status_code == 503
            assert "GPUPLAN_MOST_SECONDS_PER_PLAN" in stopped.json()["detail"]
        app.state.workers._most_seconds = 60.0
        assert client.post("/v1/plans", json=job).status_code == 200
