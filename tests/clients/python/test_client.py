"""The client against a real service over a real socket, and against servers that misbehave."""

import asyncio
import inspect
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from gpuplan_client import (
    AsyncClient,
    Client,
    Forbidden,
    NotDone,
    NotFound,
    Refused,
    RunFailed,
    TooMany,
    Unauthorized,
    Unavailable,
    Unreachable,
    Unusable,
)
from gpuplan_client.call import retry_after_seconds

PROBLEM = {"type": "about:blank", "title": "Service Unavailable", "detail": "the database is away"}
JOB = {
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "start": "2026-11-21T12:00Z",
    "deadline": "36h",
    "constraints": {"max_nodes": 8},
}
ONE_OF_MANY = {name: value for name, value in JOB.items() if name != "start"} | {"name": "one"}


@pytest.fixture(scope="module")
def url(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service of its own."""
    from gpuplan.api.http.http_service import create_service
    from gpuplan.api.schemas.settings_file import Environment
    from gpuplan.api.services.composition import open_services
    from tests.api.conftest import serving

    database = f"sqlite:///{shutil.copy(embedded_store, tmp_path_factory.mktemp('client'))}"
    with serving(create_service(open_services(Environment(database_url=database)))) as service:
        yield str(service.base_url)


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as new_client:
        yield new_client


def answering(*responses: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """A service that answers so, one after the other, and what it was asked."""
    asked: list[httpx.Request] = []
    left = iter(responses)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        following = next(left)
        if isinstance(following, Exception):
            raise following
        return following

    return httpx.MockTransport(answer), asked


def test_a_plan_is_made_read_explained_verified_and_exported(client: Client) -> None:
    answer = client.plan(JOB, frontier=True)
    assert answer["outcome"] == "planned"
    plan = answer["plan"]
    assert plan["frontier"]
    again = client.saved_plan(plan["id"])
    assert again["outcome"] == "planned"
    assert again["plan"] == plan
    assert client.why(JOB, not_="H100")["why"]["about"] is not None
    assert client.verify(answer)["outcome"] == "verified"
    assert plan["id"] in client.export(plan["id"], "json")
    assert client.estimate(JOB, {"accelerator": "H100", "gpus": 8})["memory"]["fits"]
    assert client.report_actuals(plan["id"], {"hours": "9h"})["plan_id"] == plan["id"]
    assert client.actuals(plan["id"])["actuals"]


def test_no_plan_is_an_answer(client: Client) -> None:
    answer = client.plan({**JOB, "deadline": "1h", "budget_usd": 1})
    assert answer["outcome"] == "infeasible"
    assert answer["infeasible"]["conflicts"]


def test_pages_are_followed_to_the_end(client: Client) -> None:
    offers = list(client.offers(provider="gcp", accelerator="H100-80GB-SXM", limit=7))
    assert len(offers) > 14
    assert len(
        {(offer["region"], offer["zone"], offer["instance_type"], offer["price_kind"]) for offer in offers}
    ) == len(offers)
    assert list(client.prices("p5.48xlarge", limit=5))


def test_a_portfolio_is_begun_and_waited_for(client: Client) -> None:
    answer = client.portfolio({"jobs": [ONE_OF_MANY], "start": "2026-11-21T12:00Z"}, iterations=5)
    assert [job["name"] for job in answer["portfolio"]["jobs"]] == ["one"]


def test_listings_are_read(client: Client) -> None:
    assert client.accelerators()["accelerators"]
    assert client.presets()["presets"]
    assert client.snapshots()["snapshots"]
    assert client.watches()["watches"] == []
    assert client.refreshes()["refreshes"] == []


def test_what_cannot_be_read_names_its_field(client: Client) -> None:
    with pytest.raises(Unusable) as raised:
        client.plan({**JOB, "deadline": "soon"})
    assert raised.value.errors[0]["pointer"] == "/deadline"
    assert raised.value.request_id
    with pytest.raises(NotFound):
        client.saved_plan("plan-of-nobody")
    with pytest.raises(NotFound):
        client.saved_plan("../v1/offers?x=1#y")


def test_the_asynchronous_client_does_the_same(url: str) -> None:
    async def ask() -> None:
        async with AsyncClient(url) as client:
            first, second = await asyncio.gather(client.plan(JOB), client.plan(JOB))
            assert first["outcome"] == second["outcome"] == "planned"
            offers = [offer async for offer in client.offers(provider="gcp", accelerator="H100-80GB-SXM", limit=20)]
            assert len(offers) > 20
            portfolio = await client.portfolio({"jobs": [ONE_OF_MANY], "start": "2026-11-21T12:00Z"}, iterations=5)
            assert portfolio["portfolio"]["jobs"]
            with pytest.raises(NotFound):
                await client.run("run-of-nobody")

    asyncio.run(ask())


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    names = [name for name in vars(Client) if not name.startswith("_")]
    assert names == [name for name in vars(AsyncClient) if not name.startswith("_")]
    for name in set(names) - {"from_environment"}:
        assert str(inspect.signature(getattr(Client, name)).replace(return_annotation=None)) == str(
            inspect.signature(getattr(AsyncClient, name)).replace(return_annotation=None)
        )


def test_every_operation_of_the_service_has_a_method(url: str) -> None:
    document = httpx.get(f"{url}/openapi.json", timeout=60).json()
    operations = {
        operation["operationId"]
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if path.startswith("/v1/")
    }
    another_name = {"all_actuals": "actuals", "plan_actuals": "actuals", "snapshot_diff": "diff"}
    missing = {name for name in operations if not hasattr(Client, another_name.get(name, name))}
    assert not missing


def test_importing_it_loads_nothing_of_the_service() -> None:
    code = (
        "import gpuplan_client, sys;"
        "bad = {'gpuplan', 'numpy', 'pydantic', 'fastapi', 'sqlalchemy', 'pulp'};"
        "sys.exit(repr(bad & set(sys.modules)) if bad & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_keys_are_made_used_rotated_and_revoked_and_the_log_says_so(embedded_store: Path, tmp_path: Path) -> None:
    from tests.api.http.guarded import ADMIN_KEY, guarded

    async def listed(url: str) -> list[str]:
        async with AsyncClient(url, key=ADMIN_KEY) as admin:
            return [entry["action"] async for entry in admin.audit(limit=2)]

    with guarded(embedded_store, tmp_path) as service, Client(str(service.client.base_url), key=ADMIN_KEY) as admin:
        made = admin.make_key("ci", scope="read", expires="90d", requests_per_minute=100)
        assert (made["scope"], made["requests_per_minute"]) == ("read", 100)
        with Client(str(service.client.base_url), key=made["key"]) as reader:
            assert reader.presets()["presets"]
            with pytest.raises(Forbidden):
                reader.keys()
            rotated = admin.rotate_key(made["id"])
            with pytest.raises(Unauthorized):
                reader.presets()
        assert rotated["key"] != made["key"]
        assert admin.revoke_key(made["id"])["state"] == "revoked"
        assert made["id"] in {key["id"] for key in admin.keys()["keys"]}
        done = [entry["action"] for entry in admin.audit(limit=2) if entry["subject"] == made["id"]]
        assert done == ["key.revoke", "key.rotate", "key.create"]
        assert asyncio.run(listed(str(service.client.base_url))) == [entry["action"] for entry in admin.audit()]


def test_what_would_be_done_twice_is_tried_once() -> None:
    ask: Callable[[Client], object]
    for ask in (
        lambda to: to.make_key("ci"),
        lambda to: to.rotate_key("0a1b2c3d4e5f"),
        lambda to: to.share("plan", "plan-1"),
    ):
        transport, asked = answering(httpx.ReadError("cut"), httpx.Response(200, json={}))
        with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(Unreachable):
            ask(client)
        assert len(asked) == 1


def test_what_passes_is_tried_again_with_the_same_key_for_the_request() -> None:
    ready = httpx.Response(200, json={"outcome": "planned"})
    away = httpx.Response(503, json=PROBLEM, headers={"Retry-After": "0"})
    transport, asked = answering(away, httpx.ConnectError("refused"), ready)
    with Client("http://gpuplan.test", key="gpk_1_secret", transport=transport) as client:
        assert client.plan(JOB)["outcome"] == "planned"
    assert len({request.headers["Idempotency-Key"] for request in asked}) == 1
    assert [request.headers["Authorization"] for request in asked] == ["Bearer gpk_1_secret"] * 3


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, Unauthorized), (403, Forbidden), (404, NotFound), (422, Unusable), (500, Refused), (302, Refused)],
)
def test_what_does_not_pass_is_told_at_once(status: int, error: type[Refused]) -> None:
    transport, asked = answering(httpx.Response(status, json=PROBLEM))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(error) as raised:
        client.snapshots()
    assert raised.value.status == status
    assert len(asked) == 1


def test_after_so_many_tries_the_last_problem_is_told() -> None:
    away = [httpx.Response(503, json=PROBLEM, headers={"Retry-After": "0"}) for _ in range(3)]
    transport, asked = answering(*away)
    with Client("http://gpuplan.test", transport=transport, attempts=3) as client, pytest.raises(Unavailable):
        client.snapshots()
    assert len(asked) == 3


def test_a_quota_that_is_used_up_for_the_day_is_not_waited_for() -> None:
    transport, asked = answering(httpx.Response(429, json=PROBLEM, headers={"Retry-After": "40000"}))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(TooMany) as raised:
        client.snapshots()
    assert raised.value.retry_after_seconds == 40_000
    assert len(asked) == 1


@pytest.mark.parametrize("body", [b"<html>hello</html>", b""])
def test_what_is_no_service_is_told(body: bytes) -> None:
    transport, _ = answering(httpx.Response(200, content=body))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(Unreachable, match="not in JSON"):
        client.snapshots()
    transport, _ = answering(httpx.Response(502, content=body))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(Refused, match="502"):
        client.snapshots()


def test_nobody_there_is_told_with_the_address_and_no_secret() -> None:
    with Client("http://127.0.0.1:9", key="gpk_1_secret", attempts=1) as client, pytest.raises(Unreachable) as raised:
        client.snapshots()
    assert "127.0.0.1:9" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["gpuplan.example.com", "ftp://x", "http://", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="accepted"):
        Client(url)


@pytest.mark.parametrize("key", ["", "a b", "gpk\r\nX: y", "schlüssel"])
def test_a_key_that_is_none_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(ValueError, match="no API key") as raised:
        Client(key=key)
    assert not key or key not in str(raised.value)


def test_a_run_is_waited_for_no_longer_than_the_patience() -> None:
    run = {"id": "r", "kind": "portfolio", "status": "running", "answer": None, "error": None}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=run))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(NotDone) as raised:
        client.wait("r", patience_seconds=0.1)
    assert raised.value.run["status"] == "running"


def test_a_run_that_failed_says_why() -> None:
    run = {"id": "r", "kind": "portfolio", "status": "failed", "answer": None, "error": {"detail": "no memory"}}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=run))
    with Client("http://gpuplan.test", transport=transport) as client, pytest.raises(RunFailed, match="no memory"):
        client.wait("r")


def test_dates_are_understood_where_a_wait_is_told_as_one() -> None:
    date, then = "Sun, 22 Nov 2026 10:00:00 GMT", "Sun, 22 Nov 2026 10:00:30 GMT"
    assert retry_after_seconds(httpx.Response(503, headers={"Date": date, "Retry-After": then})) == 30
    assert retry_after_seconds(httpx.Response(503, headers={"Retry-After": "soon"})) is None


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUPLAN_URL", "http://gpuplan.test")
    monkeypatch.setenv("GPUPLAN_API_KEY", "gpk_2_x")
    transport, asked = answering(httpx.Response(200, json={"snapshots": []}))
    with Client.from_environment(transport=transport) as client:
        client.snapshots()
    [request] = asked
    assert str(request.url) == "http://gpuplan.test/v1/snapshots"
    assert request.headers["Authorization"] == "Bearer gpk_2_x"
