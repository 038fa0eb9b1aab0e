"""What may come in: what Slack has signed, lately, and once; everything else is refused before anything is done."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import open_services
from gpuplan.api.slack.slack_settings import SlackSettings
from tests.api.slack.conftest import PLAN, Acme, Served
from tests.clouds.slack import TEAM, signed

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def blocked_planner(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A planner that answers nothing before this is set."""
    let_go, plan = threading.Event(), acme.gpuplan.plans.plan

    def waiting(*args: Any, **kwargs: Any) -> Any:
        assert let_go.wait(90)
        return plan(*args, **kwargs)

    monkeypatch.setattr(acme.gpuplan.plans, "plan", waiting)
    yield let_go
    let_go.set()


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["detail"])


def test_a_command_is_acknowledged_while_its_plan_is_not_there_yet(
    acme: Acme, blocked_planner: threading.Event
) -> None:
    assert "Planning llama-3-8b" in acme.types(PLAN)["text"]
    assert acme.slack.seen == []
    blocked_planner.set()
    assert "Cheapest for" in acme.slack.wait_for(1)[0].text


def test_commands_are_acknowledged_while_every_worker_plans(acme: Acme, blocked_planner: threading.Event) -> None:
    for _ in range(6):
        acme.types(PLAN)
    assert "Planning" in acme.types(PLAN)["text"]
    blocked_planner.set()
    acme.slack.wait_for(7)


@pytest.mark.parametrize(
    "change",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": "now"},
        {"X-Slack-Request-Timestamp": "9" * 40},
        {"X-Slack-Request-Timestamp": ""},
    ],
)
def test_a_request_that_slack_did_not_sign_is_refused(acme: Acme, change: dict[str, str]) -> None:
    body = acme.slack.command(PLAN)
    headers = {name.encode(): value.encode() for name, value in (signed(body) | change).items()}
    answer = acme.service.post("/slack/commands", content=body, headers=headers)
    assert "not signed by Slack" in refused(answer, 401)
    assert acme.slack.seen == []


def test_a_signature_of_another_secret_or_another_body_is_refused(acme: Acme) -> None:
    body = acme.slack.command(PLAN)
    for headers in (signed(body, secret="another"), signed(body + b"&x=1")):
        refused(acme.service.post("/slack/commands", content=body, headers=headers), 401)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_request_of_more_than_five_minutes_ago_or_ahead_is_refused(acme: Acme, seconds: int) -> None:
    answer = acme.slack.send(acme.service, acme.slack.command(PLAN), at=time.time() + seconds)
    refused(answer, 401)


def test_bytes_that_are_no_text_are_refused(acme: Acme) -> None:
    refused(acme.service.post("/slack/commands", content=b"\xff\xfe", headers=signed(b"\xff\xfe")), 401)


def test_a_body_without_end_is_refused(acme: Acme) -> None:
    body = b"text=" + b"a" * (600 * 1024)
    refused(acme.service.post("/slack/commands", content=body, headers=signed(body)), 413)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b"[]"),
        ("application/json", b"[" * 200_000),
        (FORM["Content-Type"], b"payload=%7B"),
        (FORM["Content-Type"], b"payload=" + b"[" * 200_000),
    ],
    ids=["broken", "no object", "deep", "broken form", "deep form"],
)
def test_what_is_signed_and_is_no_request_is_refused(acme: Acme, content_type: str, body: bytes) -> None:
    answer = acme.service.post("/slack/events", content=body, headers=signed(body) | {"Content-Type": content_type})
    refused(answer, 400)


def test_a_replayed_request_is_refused_and_done_once(acme: Acme) -> None:
    body = acme.slack.command(PLAN)
    headers = signed(body)
    assert acme.service.post("/slack/commands", content=body, headers=headers).status_code == 200
    acme.slack.wait_for(1)
    for path in ("/slack/commands", "/slack/interactions", "/slack/events"):
        assert "already handled" in refused(acme.service.post(path, content=body, headers=headers), 409)
    assert "already handled" in refused(acme.slack.send(acme.service, body, at=time.time() + 60), 409)
    assert len(acme.slack.seen) == 1


def test_a_replay_is_refused_by_another_process_too(acme: Acme, served: Served) -> None:
    body = acme.slack.command("help")
    headers = signed(body)
    assert acme.service.post("/slack/commands", content=body, headers=headers).status_code == 200
    with served(create_service(acme.gpuplan, slack=acme.settings)) as other:
        refused(other.post("/slack/commands", content=body, headers=headers), 409)


def test_what_slack_repeats_is_acknowledged_and_not_done_again(acme: Acme) -> None:
    event = {"type": "event_callback", "team_id": TEAM, "event_id": "Ev0001", "event": {"type": "tokens_revoked"}}
    body = json.dumps(event).encode()
    as_json = {"Content-Type": "application/json"}
    first = acme.slack.send(acme.service, body, path="/slack/events", headers=as_json)
    assert first.status_code == 200
    again = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    second = acme.slack.send(acme.service, body, path="/slack/events", at=time.time() + 1, headers=as_json | again)
    assert (second.status_code, second.headers["x-slack-no-retry"]) == (200, "1")


def test_the_address_of_events_proves_itself(acme: Acme) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "abc", "token": "t"}).encode()
    answer = acme.slack.send(acme.service, body, path="/slack/events", headers={"Content-Type": "application/json"})
    assert answer.json() == {"challenge": "abc"}


def test_without_settings_there_is_no_slack(client: httpx.Client) -> None:
    body = urlencode({"command": "/gpuplan"}).encode()
    assert client.post("/slack/commands", content=body, headers=signed(body)).status_code in {404, 405}


def test_a_database_that_is_gone_is_said_in_the_acknowledgement(
    own_store: str, tmp_path: Path, acme: Acme, settings: SlackSettings, served: Served
) -> None:
    path = tmp_path / "gpuplan.sqlite3"
    gpuplan = open_services(Environment(database_url=own_store))
    _ = gpuplan.store
    with served(create_service(gpuplan, slack=settings)) as service:
        path.unlink()
        answer = acme.slack.send(service, acme.slack.command(PLAN))
        assert answer.status_code == 200
        assert "Nothing was done; try again" in answer.json()["text"]
        click = acme.slack.send(service, acme.slack.command(PLAN), path="/slack/interactions")
        assert click.headers["retry-after"]
        assert "gpuplan.sqlite3" in refused(click, 503)
    gpuplan.store.close()


def test_a_database_that_is_locked_is_not_waited_for(acme: Acme, settings: SlackSettings, served: Served) -> None:
    hurried = replace(settings, patience=replace(settings.patience, store_seconds=0.1))
    with served(create_service(acme.gpuplan, slack=hurried)) as service, acme.gpuplan.store.engine.connect() as locking:
        locking.exec_driver_sql("ROLLBACK")
        locking.exec_driver_sql("BEGIN IMMEDIATE")
        answer = acme.slack.send(service, acme.slack.command("price H100"))
        click = acme.slack.send(service, acme.slack.command("price H100"), path="/slack/interactions")
        locking.exec_driver_sql("ROLLBACK")
    assert "database is slow" in answer.json()["text"]
    refused(click, 503)
