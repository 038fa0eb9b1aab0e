"""Answers reach Slack: when it is down, limits, refuses or has closed an address, and when a process dies in between."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.http.http_service import create_service
from gpuplan.api.http.problem_details import Refused
from gpuplan.api.http.thread_workers import Workers
from gpuplan.api.services.composition import Services
from gpuplan.api.slack.answer_queue import Answers
from gpuplan.api.slack.block_kit import message
from gpuplan.api.slack.message_sending import is_slack
from gpuplan.api.slack.slack_settings import SlackSettings
from gpuplan.catalog.store.access_store import QuotaExceeded
from gpuplan.catalog.store.slack_store import SlackAnswer
from tests.api.slack.conftest import PLAN, QUICK, Acme
from tests.clouds.server import CloudServer, Reply, Request, answering, html, reset_after
from tests.clouds.slack import CHANNEL, SECRET, TEAM, TOKEN, USER
from tests.patience import until

Change = Callable[[Any], Any]


def answer_of(acme: Acme) -> SlackAnswer:
    """The newest question."""
    with acme.gpuplan.store.engine.connect() as connection:
        row = connection.exec_driver_sql("SELECT id FROM slack_answers ORDER BY created_at DESC LIMIT 1").one()
    stored = acme.gpuplan.store.slack.answer(row.id)
    assert stored is not None
    return stored


def eventually(acme: Acme, is_met: Callable[[SlackAnswer], bool]) -> SlackAnswer:
    return until(lambda: answer if is_met(answer := answer_of(acme)) else None)


def is_response(request: Request) -> bool:
    return request.path.startswith("/commands/")


def asked(acme: Acme, kind: str = "price", **changes: Any) -> SlackAnswer:
    """A question as a process has kept it that then died: nobody holds it."""
    now = datetime.now(UTC)
    made = SlackAnswer(
        id=f"ask-{time.time_ns()}",
        team_id=TEAM,
        user_id=USER,
        channel_id=CHANNEL,
        kind=kind,
        request={"accelerator": "H100"},
        response_url=acme.slack.response_url(),
        created_at=now,
        held_until=now,
    )
    made = replace(made, **changes)
    assert acme.gpuplan.store.slack.ask(made, most_waiting=1000)
    return made


def left(acme: Acme, one: SlackAnswer) -> SlackAnswer:
    stored = acme.gpuplan.store.slack.answer(one.id)
    assert stored is not None
    return stored


@pytest.mark.parametrize(
    "fault",
    [answering(503, b"down"), answering(429, b"slow down", Retry_After="0"), html, reset_after(0.0)],
    ids=["503", "429", "html", "reset"],
)
def test_a_failure_that_passes_is_tried_again(acme: Acme, fault: Change) -> None:
    # HTML with status 200 is no failure of an answer's address: Slack says `ok` there, or an error.
    times = 0 if fault is html else 2
    acme.slack.server.break_with(fault, when=is_response, times=times)
    assert "Prices of H100" in acme.asks("price H100").text
    settled = eventually(acme, lambda answer: answer.delivered_at is not None)
    assert settled.attempts == times + 1


def test_what_is_told_is_forgotten_but_for_what_was_asked(acme: Acme) -> None:
    plan_id = acme.asks(PLAN).buttons["share"]["value"]
    settled = eventually(acme, lambda answer: answer.delivered_at is not None)
    assert (settled.response_url, settled.message) == ("", None)
    assert settled.plan_id == plan_id
    assert settled.request["job"]["deadline"] == "36h"


def test_slack_that_is_down_for_longer_has_its_answer_when_it_is_back(acme: Acme) -> None:
    acme.slack.server.break_with(answering(503, b"down"))
    acme.types(PLAN)
    waiting = eventually(acme, lambda answer: answer.last_error != "")
    assert (waiting.delivered_at, waiting.given_up_at, waiting.attempts) == (None, None, QUICK.attempts)
    assert waiting.plan_id.startswith("plan-")
    assert acme.gpuplan.plans.saved(waiting.plan_id).outcome == "planned"
    acme.slack.server.faults.clear()
    # Not five seconds later, as it would be, but now.
    acme.gpuplan.store.slack.settle(waiting.id, attempts=0, again_at=datetime.now(UTC), error=waiting.last_error)
    [message] = acme.slack.wait_for(1)
    assert message.buttons["share"]["value"] == waiting.plan_id
    assert eventually(acme, lambda answer: answer.delivered_at is not None).attempts == QUICK.attempts + 1


def test_slack_is_not_asked_again_before_it_wants_to_be(acme: Acme) -> None:
    acme.slack.server.break_with(answering(429, b"", Retry_After="1800"))
    began = datetime.now(UTC)
    acme.types("price H100")
    waiting = eventually(acme, lambda answer: answer.last_error != "")
    assert waiting.attempts == 1
    assert waiting.held_until >= began + timedelta(seconds=1800)
    acme.gpuplan.store.slack.settle(waiting.id, attempts=0, given_up_at=datetime.now(UTC))


def test_an_address_that_takes_no_more_is_followed_by_a_message_in_the_channel(acme: Acme) -> None:
    message = acme.asks("price H100", response_url=acme.slack.response_url(times=0))
    assert (message.how, message.channel, message.only_for) == ("chat.postEphemeral", CHANNEL, USER)


def test_an_old_question_is_answered_in_the_channel_and_not_at_its_address(acme: Acme) -> None:
    asked(acme, created_at=datetime.now(UTC) - timedelta(minutes=31))
    [message] = acme.slack.wait_for(1)
    assert message.how == "chat.postEphemeral"


def test_where_gpuplan_is_no_member_it_is_a_direct_message(acme: Acme) -> None:
    acme.slack.members_of.clear()
    message = acme.asks("price H100", response_url=acme.slack.response_url(times=0))
    assert (message.how, message.channel) == ("chat.postMessage", USER)


def test_an_address_that_is_not_slacks_is_never_called(acme: Acme, caplog: pytest.LogCaptureFixture) -> None:
    for url in ("http://169.254.169.254/latest/meta-data", "https://slack.com.example.org/x", "file:///etc/passwd"):
        assert acme.asks("price H100", response_url=url).how == "chat.postEphemeral"
        acme.slack.seen.clear()


@pytest.mark.parametrize(
    ("url", "is_of_slack"),
    [
        ("https://hooks.slack.com/commands/T0/1/x", True),
        ("https://hooks.slack-gov.com/commands/T0/1/x", True),
        ("https://hooks.slack.com:443/x", True),
        ("http://hooks.slack.com/x", False),
        ("https://hooks.slack.com:8443/x", False),
        ("https://evil.slack.com/x", False),
        ("https://hooks.slack.com.example.org/x", False),
        ("https://hooks.slack.com@example.org/x", False),
        ("https://user@hooks.slack.com/x", False),
        ("https://[::1/x", False),
        ("", False),
    ],
)
def test_only_slacks_own_hosts_are_answered_at(url: str, is_of_slack: bool) -> None:
    assert is_slack(url, SlackSettings(signing_secret=SECRET, bot_token=TOKEN)) is is_of_slack


def test_a_redirect_is_not_followed(acme: Acme) -> None:
    called: list[str] = []

    def elsewhere(request: Request) -> Reply:
        called.append(request.path)
        return Reply()

    with CloudServer(elsewhere).running() as other:
        for status in (302, 307, 308):
            redirect = answering(status, b"", Location=f"{other.url}/stolen")
            acme.slack.server.break_with(redirect, when=lambda request: "/commands/" in request.path)
            message = acme.asks("price H100")
            assert message.how == "chat.postEphemeral"  # as where the address takes no more
            acme.slack.forget()
    assert called == []


def test_a_slack_that_takes_no_tables_gets_them_as_text(acme: Acme) -> None:
    acme.slack.takes_tables = False
    message = acme.asks(PLAN)
    assert "other ways | cost | time | machines" in message.text


def test_what_slack_will_never_take_is_given_up_logged_and_its_plan_stays(
    acme: Acme, caplog: pytest.LogCaptureFixture
) -> None:
    acme.slack.server.break_with(
        answering(200, b'{"ok": false, "error": "account_inactive"}'), when=lambda request: not is_response(request)
    )
    acme.slack.server.break_with(answering(404, b"expired_url"), when=is_response)
    acme.types(PLAN)
    over = eventually(acme, lambda answer: answer.given_up_at is not None)
    assert over.last_error == "account_inactive"
    assert (over.response_url, over.message) == ("", None)
    assert acme.gpuplan.plans.saved(over.plan_id).outcome == "planned"
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "account_inactive" in line
    assert f"its plan is stored as {over.plan_id}" in line


def test_what_waits_for_too_long_is_given_up(acme: Acme) -> None:
    old = asked(acme, created_at=datetime.now(UTC) - timedelta(hours=3), last_error="HTTP 503 down")
    given_up = until(lambda: answer if (answer := left(acme, old)).given_up_at is not None else None)
    assert given_up.last_error == "HTTP 503 down"
    assert acme.slack.seen == []


def test_a_question_whose_process_died_is_answered_by_the_next(acme: Acme) -> None:
    one = asked(acme)
    [message] = acme.slack.wait_for(1)
    assert "Prices of H100" in message.text
    until(lambda: left(acme, one).delivered_at)


def test_an_answer_that_was_worked_out_is_told_as_it_was(acme: Acme) -> None:
    one = asked(acme, message=message("worked out before"), held_until=datetime.now(UTC) + timedelta(hours=1))
    assert acme.slack.seen == []
    assert acme.gpuplan.store.slack.hold(one.id, one.held_until, datetime.now(UTC))
    [sent] = acme.slack.wait_for(1)
    assert sent.text == "worked out before"


def test_of_two_processes_one_tells(
    acme: Acme, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
) -> None:
    with served(create_service(acme.gpuplan, slack=acme.settings)):
        for _ in range(5):
            asked(acme)
        acme.slack.wait_for(5)
        time.sleep(3 * QUICK.look_seconds)
    assert len(acme.slack.seen) == 5


def test_a_full_queue_of_plans_is_waited_for(acme: Acme, slow: SlackSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers()

    async def full(*_: Any) -> Any:
        raise Refused(503, "too many requests are waiting", headers={"Retry-After": "1"})

    monkeypatch.setattr(workers, "run", full)
    one = asked(acme, held_until=datetime.now(UTC) + timedelta(minutes=1))
    _alone(acme.gpuplan, workers, slow, one)
    waiting_answer = left(acme, one)
    assert waiting_answer.last_error == "too many requests are waiting"
    assert waiting_answer.held_until > datetime.now(UTC)
    acme.gpuplan.store.slack.settle(one.id, attempts=0, given_up_at=datetime.now(UTC))


def test_a_plan_that_takes_too_long_is_told_so_and_not_tried_again(
    acme: Acme, slow: SlackSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = asked(acme, kind="plan", request={"job": {}}, held_until=datetime.now(UTC) + timedelta(minutes=1))

    async def stopped(*_: Any) -> Any:
        raise Refused(503, "this took longer than the 30 s that the service gives a question")

    workers = Workers()
    monkeypatch.setattr(workers, "run", stopped)
    _alone(acme.gpuplan, workers, slow, one)
    assert "took longer than the 30 s" in acme.slack.wait_for(1)[0].text
    assert left(acme, one).delivered_at is not None


def test_a_workspace_that_had_its_plans_of_the_day_is_told_so(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    def used_up(*_: Any, **__: Any) -> Any:
        raise QuotaExceeded(50)

    monkeypatch.setattr(acme.gpuplan.plans, "plan", used_up)
    assert "this workspace has used its 50 plans a day" in acme.asks(PLAN).text


def test_a_defect_is_said_with_where_to_look_and_logged(
    acme: Acme, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(acme.gpuplan.plans, "plan", broken)
    message = acme.asks(PLAN)
    assert "gpuplan failed with an internal error; see the service's log for ask-" in message.text
    assert "secret" not in message.text
    assert "secret inside" in caplog.text


def test_more_requests_than_may_wait_are_refused(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.api.slack.question_intake.MOST_WAITING", 2)
    held = datetime.now(UTC) + timedelta(hours=1)
    waiting_answers = [asked(acme, held_until=held) for _ in range(2)]
    assert "2 answers for this workspace are already pending" in acme.types("price H100")["text"]
    for one in waiting_answers:
        acme.gpuplan.store.slack.settle(one.id, attempts=0, given_up_at=datetime.now(UTC))


def test_no_secret_is_logged_or_told(acme: Acme, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    acme.slack.server.break_with(answering(500, b"no"), times=2)
    acme.types("price H100", response_url=acme.slack.response_url(times=0))
    message = acme.slack.wait_for(1)[0]
    shown = caplog.text + message.text
    for secret in (TOKEN, acme.settings.signing_secret, "/commands/T0123ABCD"):
        assert secret not in shown
    assert TOKEN not in repr(acme.settings)
    assert acme.settings.signing_secret not in repr(acme.settings)


def _alone(gpuplan: Services, workers: Workers, settings: SlackSettings, one: SlackAnswer) -> None:
    """One question, taken up by a process of its own."""

    async def run() -> None:
        answers = Answers(gpuplan, workers, settings)
        async with answers.running():
            answers.begin(one)

    asyncio.run(run())
