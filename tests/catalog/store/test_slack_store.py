"""What was asked in Slack, what may happen once, and who may ask: the same in every database, whoever else writes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpuplan.catalog.store.slack_store import REMEMBERED, SlackAnswer, SlackWorkspace
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.catalog.store.store import Store

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
SOON, LATER = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)
ASKED = SlackAnswer(
    id="ask-1",
    team_id="T1",
    user_id="U1",
    channel_id="C1",
    kind="plan",
    request={"job": {"name": "é"}},
    response_url="https://hooks.slack.com/commands/1",
    created_at=NOW,
    held_until=SOON,
)


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    return open_store(url)


def test_of_many_at_once_one_is_the_first(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(store.slack.first_time, ["a", f"b{i % 2}"], NOW, SOON) for i in range(16)]
        assert sum(item.result() for item in asked) == 1


def test_what_was_seen_is_forgotten_in_time_and_spent_once(store: Store) -> None:
    assert store.slack.first_time(["state"], NOW, SOON)
    assert not store.slack.first_time(["state", "other"], NOW, SOON)
    assert store.slack.spend("state", NOW)
    assert not store.slack.spend("state", NOW)
    assert store.slack.first_time(["late"], NOW, SOON)
    assert not store.slack.spend("late", LATER)
    assert store.slack.first_time(["late"], LATER, LATER + timedelta(minutes=1))


def test_a_question_is_held_by_one_until_it_is_settled(store: Store) -> None:
    assert store.slack.ask(ASKED, most_waiting=1)
    assert not store.slack.ask(replace(ASKED, id="ask-2"), most_waiting=1)
    assert store.slack.due(NOW, most=9) == ()
    assert store.slack.due(SOON, most=9) == (ASKED,)
    assert store.slack.hold("ask-1", SOON, LATER)
    assert not store.slack.hold("ask-1", SOON, LATER)
    store.slack.answered("ask-1", {"text": "t"}, plan_id="plan-1", request={"job": {"name": "é"}})
    store.slack.settle("ask-1", attempts=3, again_at=SOON, error="down")
    [result] = store.slack.due(SOON, most=9)
    assert (result.message, result.attempts, result.last_error) == ({"text": "t"}, 3, "down")
    store.slack.settle("ask-1", attempts=1, delivered_at=LATER)
    assert store.slack.due(LATER, most=9) == ()
    over = store.slack.answer("ask-1")
    assert over is not None
    assert (over.message, over.response_url, over.attempts, over.last_error) == (None, "", 4, "")


def test_the_last_plan_is_that_of_the_one_who_asks(store: Store) -> None:
    for number in (1, 2):
        asked = replace(ASKED, id=f"ask-{number}", created_at=NOW + timedelta(seconds=number))
        store.slack.ask(asked, most_waiting=9)
        store.slack.answered(asked.id, {}, plan_id=f"plan-{number}", request={"job": {"number": number}})
    assert store.slack.last_plan("T1", "U1") == "plan-2"
    assert store.slack.last_plan("T1", "U2") is None
    assert store.slack.asked_for("plan-1", "T1") == {"job": {"number": 1}}
    assert store.slack.asked_for("plan-1", "T2") is None


def test_what_was_asked_long_ago_is_forgotten(store: Store) -> None:
    store.slack.ask(ASKED, most_waiting=9)
    store.slack.ask(replace(ASKED, id="ask-2", created_at=NOW + REMEMBERED + timedelta(seconds=1)), most_waiting=9)
    assert store.slack.answer("ask-1") is None


def test_a_workspace_is_allowed_in_place_of_before_and_goes_before_its_enterprise(store: Store) -> None:
    team = SlackWorkspace(id="T1", identity="team", scope="read", created_at=NOW)
    whole = SlackWorkspace(id="E1", identity="all", scope="plan", created_at=SOON)
    for item in (replace(team, scope="refresh"), team, whole):
        store.slack.allow(item)
    assert store.slack.workspaces() == (team, whole)
    assert store.slack.workspace("T1", "E1") == team
    assert store.slack.workspace("T2", "E1") == whole
    assert store.slack.workspace("T2") is None
    store.slack.remove("T1")
    with pytest.raises(NotStored):
        store.slack.remove("T1")


def test_an_installation_replaces_the_one_before_and_goes_with_its_workspace(store: Store) -> None:
    store.slack.install("T1", {"bot_token": "old"}, NOW)
    store.slack.install("T1", {"bot_token": "new"}, SOON)
    assert store.slack.installation("T1", "") == {"bot_token": "new"}
    store.slack.remove("T1")
    assert store.slack.installation("T1") is None
    store.slack.uninstall("T1")
