"""What a key makes is its own: others do not find it, whatever way they ask, until its owner shares it or an admin looks."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.jobs.heartbeat import Heartbeat
from gpuplan.api.jobs.run_execution import KINDS
from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import Identity, with_lesser
from gpuplan.catalog.store.run_store import Run
from gpuplan.planner.model.wire import wire
from tests.api.http.guarded import Guarded, guarded
from tests.patience import until

LATER = {"Prefer": "respond-async"}
AT_ONCE = {"Prefer": "wait=30"}


@pytest.fixture(scope="module")
def service(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(embedded_store, tmp_path_factory.mktemp("owned")) as guarded_service:
        for name, scope in (("ann", "plan"), ("bob", "plan"), ("cid", "read")):
            guarded_service.keys[name] = guarded_service.gpuplan.api_keys.make({"name": name, "scope": scope}).key
        yield guarded_service


@pytest.fixture
def plan_id(service: Guarded, job: dict[str, Any], request: pytest.FixtureRequest) -> str:
    """A plan of ann's, that no other test has made."""
    answer = service.ask("POST", "/v1/plans", "ann", json=job | {"name": f"of {request.node.name}"[:100]})
    plan: str = answer.json()["plan"]["id"]
    return plan


def portfolio(job: dict[str, Any]) -> dict[str, Any]:
    small = {"max_nodes": 2, "providers": ["aws"], "price_kinds": ["on_demand"], "accelerators": ["A10G"]}
    tuning = {name: value for name, value in job.items() if name != "start"} | {"constraints": small}
    return {"start": "2026-11-21T12:00Z", "slot": "2h", "jobs": [tuning | {"deadline": "48h"}]}


def identity(service: Guarded, name: str, scope: str = "plan") -> Requester:
    key_id = service.keys[name].split("_")[1]
    return Requester(identity=Identity(id=f"key:{key_id}", name=name, scopes=with_lesser([scope]), via="key"))


def test_a_plan_is_not_there_for_others_whatever_way_they_ask(service: Guarded, plan_id: str) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/v1/plans/{plan_id}", {}),
        ("GET", f"/v1/plans/{plan_id}/export/json", {}),
        ("GET", f"/v1/plans/{plan_id}/actuals", {}),
        ("POST", f"/v1/plans/{plan_id}/actuals", {"json": {"hours": "3h"}}),
        ("POST", "/v1/run-policies", {"json": {"plan": plan_id}}),
        ("POST", "/v1/replan", {"json": {"plan": plan_id, "running": {"done": 0.3}}}),
        ("POST", "/v1/shares", {"json": {"plan": plan_id}}),
        ("GET", f"/plans/{plan_id}", {}),
        ("GET", f"/?plan={plan_id}", {}),
        ("GET", f"/plans/{plan_id}/if?now=true", {}),
        ("GET", f"/plans/{plan_id}/why", {}),
        ("GET", f"/plans/{plan_id}/estimate", {}),
        ("GET", f"/plans/{plan_id}/export?to=json:1", {}),
        ("POST", f"/plans/{plan_id}/watch", {"data": {"channels": "ops"}}),
        ("GET", f"/shares?plan={plan_id}", {}),
    ]
    for method, path, options in asked:
        answer = service.ask(method, path, "bob", **options)
        assert answer.status_code == 404, (method, path, answer.status_code, answer.text[:300])
        assert "is stored here" in answer.text
    for key in ("ann", "admin", "environment"):
        assert service.ask("GET", f"/v1/plans/{plan_id}", key).status_code == 200
        assert service.ask("GET", f"/plans/{plan_id}", key).status_code == 200


def test_others_are_told_the_same_as_of_a_plan_that_never_was(service: Guarded, plan_id: str) -> None:
    hidden = service.ask("GET", f"/v1/plans/{plan_id}", "bob").json()
    missing = service.ask("GET", "/v1/plans/plan-00000000000000000000", "bob").json()
    for problem in (hidden, missing):
        del problem["request_id"]
    assert str(hidden).replace(plan_id, "plan-00000000000000000000") == str(missing)


def test_whoever_asks_the_same_has_the_same_plan(service: Guarded, plan_id: str, job: dict[str, Any]) -> None:
    same = service.ask("GET", f"/v1/plans/{plan_id}", "ann").json()["plan"]["job"]
    assert service.ask("POST", "/v1/plans", "bob", json=same).json()["plan"]["id"] == plan_id
    assert service.ask("GET", f"/v1/plans/{plan_id}", "bob").status_code == 200
    assert service.ask("GET", f"/v1/plans/{plan_id}", "cid").status_code == 404


def ended(service: Guarded, path: str) -> None:
    until(lambda: service.ask("GET", path, "ann").json()["status"] == "cancelled")


def test_a_run_is_followed_and_cancelled_by_its_owner_and_admins_alone(
    service: Guarded, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(_: object, __: Run, heartbeat: Heartbeat) -> dict[str, Any]:
        until(heartbeat.cancelled)
        return {"portfolio": {}, "meta": {}}

    monkeypatch.setitem(KINDS, "portfolio", endless)
    for ending in ("ann", "admin"):
        path = service.ask("POST", "/v1/portfolios", "ann", json=portfolio(job), headers=LATER).headers["location"]
        run_id = path.rpartition("/")[2]
        assert service.ask("GET", path, "bob").status_code == 404
        assert service.ask("GET", f"/portfolio/{run_id}", "bob").status_code == 404
        assert service.ask("DELETE", path, "bob").status_code == 404
        assert service.ask("POST", f"/portfolio/{run_id}/cancel", "bob").status_code == 404
        run_answer = service.ask("GET", path, "ann").json()
        assert run_answer["status"] in {"queued", "running"}
        assert not run_answer.get("cancel_asked")
        assert service.ask("DELETE", path, ending).status_code == 200
        ended(service, path)


def test_a_portfolio_and_a_decision_are_their_makers(service: Guarded, job: dict[str, Any]) -> None:
    made = service.ask("POST", "/v1/portfolios?iterations=5", "ann", json=portfolio(job), headers=AT_ONCE)
    path = made.headers["content-location"]
    assert service.ask("GET", path, "ann").json() == made.json()
    assert service.ask("GET", path, "bob").status_code == 404
    plain = {name: value for name, value in job.items() if name != "start"}
    forecast = {"name": "lab", "start": "2026-11-21T12:00Z", "machines": [], "jobs": [{"job": plain, "per_month": 1}]}
    decided = service.ask("POST", "/v1/buy", "ann", json=forecast)
    where = decided.headers["content-location"]
    assert service.ask("GET", where, "ann").status_code == 200
    for path in (where, where.removeprefix("/v1")):
        assert service.ask("GET", path, "bob").status_code == 404
    # The same forecast on the same prices is the same decision.
    assert service.ask("POST", "/v1/buy", "bob", json=forecast).headers["content-location"] == where
    assert service.ask("GET", where, "bob").status_code == 200


def test_reports_are_seen_and_forgotten_with_the_plan_that_they_are_on(service: Guarded, plan_id: str) -> None:
    hours = service.ask("GET", f"/v1/plans/{plan_id}", "ann").json()["plan"]["hours"]["expected"]
    reported = service.ask("POST", f"/v1/plans/{plan_id}/actuals", "ann", json={"hours": hours}).json()
    assert service.ask("GET", "/v1/actuals", "bob").json()["actuals"] == []
    assert service.ask("DELETE", f"/v1/actuals/{reported['id']}", "bob").status_code == 404
    with acting_as(identity(service, "bob")):
        assert service.gpuplan.actuals.forget().forgotten == 0
    assert [actual["id"] for actual in service.ask("GET", "/v1/actuals", "ann").json()["actuals"]] == [reported["id"]]
    assert service.ask("DELETE", f"/v1/actuals/{reported['id']}", "ann").json() == {"forgotten": 1}


def test_a_link_is_opened_by_any_key_and_by_nobody_once_it_is_revoked(service: Guarded, plan_id: str) -> None:
    made = service.ask("POST", "/v1/shares", "ann", json={"plan": plan_id})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    link, share_id = made.json()["link"], made.json()["id"]
    assert re.fullmatch(r"/shared/gpl_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", link)
    assert service.ask("GET", link).status_code in {303, 401}  # no key, no way in
    redirect = service.ask("GET", link, "cid")
    assert (redirect.status_code, redirect.headers["location"]) == (303, f"/plans/{plan_id}")
    assert service.ask("GET", f"/plans/{plan_id}", "cid").status_code == 200
    assert service.ask("GET", f"/v1/plans/{plan_id}/export/json", "cid").status_code == 200
    assert service.ask("GET", f"/v1/plans/{plan_id}", "bob").status_code == 404
    whole = f"https://gpuplan.example.com{link}"
    assert service.ask("POST", "/v1/shares/open", "bob", json={"link": whole}).json() == {
        "kind": "plan",
        "object_id": plan_id,
    }
    assert service.ask("GET", f"/v1/plans/{plan_id}", "bob").status_code == 200
    # Who may read may neither pass it on nor see its links.
    refused = service.ask("POST", "/v1/shares", "bob", json={"plan": plan_id})
    assert (refused.status_code, "belongs to another identity" in refused.text) == (403, True)
    assert service.ask("GET", "/v1/shares", "bob").json() == {"shares": []}
    assert service.ask("DELETE", f"/v1/shares/{share_id}", "bob").status_code == 404
    [listed] = [share for share in service.ask("GET", "/v1/shares", "ann").json()["shares"] if share["id"] == share_id]
    assert "link" not in listed
    assert service.ask("DELETE", f"/v1/shares/{share_id}", "ann").json()["revoked_at"] is not None
    for key in ("bob", "cid"):
        assert service.ask("GET", f"/v1/plans/{plan_id}", key).status_code == 404
        assert service.ask("GET", link, key).status_code == 404
    assert service.ask("GET", link[:-1] + ("A" if link[-1] != "A" else "B"), "cid").status_code == 404
    assert {entry["action"] for entry in service.ask("GET", "/v1/audit", "admin").json()["entries"]} >= {
        "share.make",
        "share.open",
        "share.revoke",
    }


def test_the_page_makes_a_link_shows_it_once_and_revokes_it(service: Guarded, plan_id: str) -> None:
    assert f'href="/shares?plan={plan_id}"' in service.ask("GET", f"/plans/{plan_id}", "ann").text
    page = service.ask("POST", "/shares", "ann", data={"plan": plan_id})
    [link] = re.findall(r'value="http://[^"]*(/shared/gpl_[^"]+)"', page.text)
    assert service.ask("GET", link, "bob").headers["location"] == f"/plans/{plan_id}"
    assert "/shares?" not in service.ask("GET", f"/plans/{plan_id}", "bob").text
    assert service.ask("GET", f"/shares?plan={plan_id}", "bob").status_code == 403
    again = service.ask("GET", f"/shares?plan={plan_id}", "ann")
    assert link not in again.text
    [share_id] = re.findall(r'action="/shares/([0-9a-f]{12})/revoke"', again.text)
    assert service.ask("POST", f"/shares/{share_id}/revoke", "bob").status_code == 404
    done = service.ask("POST", f"/shares/{share_id}/revoke", "ann")
    assert (done.status_code, done.headers["location"]) == (303, f"/shares?plan={plan_id}")
    assert "No valid links" in service.ask("GET", f"/shares?plan={plan_id}", "ann").text
    assert service.ask("GET", link, "bob").status_code == 404


def test_a_shared_run_may_be_followed_and_not_cancelled(
    service: Guarded, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "portfolio", lambda _, __, heartbeat: until(heartbeat.cancelled) and {"portfolio": {}})
    path = service.ask("POST", "/v1/portfolios", "ann", json=portfolio(job), headers=LATER).headers["location"]
    link = service.ask("POST", "/v1/shares", "ann", json={"run": path.rpartition("/")[2]}).json()["link"]
    assert service.ask("GET", link, "bob").headers["location"] == path.replace("/v1/runs/", "/portfolio/")
    assert service.ask("GET", path, "bob").status_code == 200
    refused = service.ask("DELETE", path, "bob")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/run")
    assert service.ask("POST", path.replace("/v1/runs/", "/portfolio/") + "/cancel", "bob").status_code == 403
    assert service.ask("DELETE", path, "ann").status_code == 200


def test_what_was_made_without_keys_is_read_by_every_key_and_changed_by_admins(
    service: Guarded, job: dict[str, Any]
) -> None:
    mine = job | {"name": "of this machine's user"}
    plan_id = wire(service.gpuplan.plans.plan(mine))["plan"]["id"]
    now = datetime.now(UTC)
    run = Run(id="portfolio-before", kind="portfolio", status="running", request={}, created_at=now, beat_at=now)
    service.gpuplan.store.runs.add(run)
    for key in ("ann", "cid"):
        assert service.ask("GET", f"/v1/plans/{plan_id}", key).status_code == 200
        assert service.ask("GET", "/v1/runs/portfolio-before", key).status_code == 200
    # It stays everybody's, also once a key asks the same.
    assert service.ask("POST", "/v1/plans", "ann", json=mine).json()["plan"]["id"] == plan_id
    assert service.ask("GET", f"/v1/plans/{plan_id}", "cid").status_code == 200
    assert service.ask("DELETE", "/v1/runs/portfolio-before", "ann").status_code == 403
    assert service.ask("DELETE", "/v1/runs/portfolio-before", "admin").status_code == 200


@pytest.mark.parametrize(
    "body",
    [{}, {"plan": "plan-1", "run": "run-1"}, {"plan": 7}, {"plan": "a\nb"}, {"key": "x"}],
)
def test_what_names_nothing_to_share_is_refused(service: Guarded, body: dict[str, Any]) -> None:
    assert service.ask("POST", "/v1/shares", "ann", json=body).status_code == 422


def test_the_command_line_and_agents_of_this_machine_see_everything(service: Guarded, plan_id: str) -> None:
    assert service.gpuplan.plans.saved_document(plan_id)["plan"]["id"] == plan_id


def test_a_session_is_its_keys_identity_and_slack_is_one_of_its_own(service: Guarded, plan_id: str) -> None:
    answer = service.client.post("/login", data={"key": service.keys["ann"], "next": "/"})
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert service.ask("GET", f"/plans/{plan_id}", headers={"Cookie": cookie}).status_code == 200
    workspace = Identity(id="slack:T0ACME", name="acme", scopes=with_lesser(["plan"]), via="slack")
    with acting_as(Requester(identity=workspace)), pytest.raises(Exception, match="is stored here"):
        service.gpuplan.plans.saved(plan_id)


def test_a_watch_is_listed_read_and_ended_by_its_owner(
    service: Guarded, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuplan.api.schemas.channel import ChannelDocument

    monkeypatch.setenv("OPS_URL", "https://ops.example/hook")
    channel = ChannelDocument.model_validate({"name": "ops", "kind": "slack", "url_from": "OPS_URL"})
    monkeypatch.setitem(service.gpuplan.context.__dict__, "channels", (channel,))
    body = {"job": {name: value for name, value in job.items() if name != "start"}, "channels": ["ops"]}
    ids = {name: service.ask("POST", "/v1/watches", name, json=body).json()["id"] for name in ("ann", "bob")}
    assert ids["ann"] != ids["bob"]
    assert service.ask("POST", "/v1/watches", "ann", json=body).json()["id"] == ids["ann"]
    for name, watch_id in ids.items():
        assert [watch["id"] for watch in service.ask("GET", "/v1/watches", name).json()["watches"]] == [watch_id]
    assert len(service.ask("GET", "/v1/watches", "admin").json()["watches"]) == 2
    assert service.ask("GET", f"/v1/watches/{ids['ann']}", "bob").status_code == 404
    assert service.ask("DELETE", f"/v1/watches/{ids['ann']}", "bob").status_code == 404
    # What a check makes for a watch belongs to the owner of the watch, whoever refreshes.
    assert service.gpuplan.store.watching.owners(ids["ann"]) == (identity(service, "ann").identity.id,)
    with acting_as(identity(service, "bob")), pytest.raises(Exception, match="no watch"):
        service.gpuplan.watches.forget(ids["ann"])
    assert service.ask("DELETE", f"/v1/watches/{ids['ann']}", "ann").json() == {"forgotten": 1}
    assert [watch["id"] for watch in service.ask("GET", "/v1/watches", "bob").json()["watches"]] == [ids["bob"]]
