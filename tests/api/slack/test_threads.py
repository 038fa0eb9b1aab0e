"""Threads of a plan: a reply that mentions the app changes the plan, for everybody in the thread; and the home tab."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from gpuplan.api.slack.follow_ups import read_changes
from gpuplan.api.slack.workspaces import allow, remove
from gpuplan.catalog.runtime.errors import UnusableInput
from tests.api.slack.conftest import PAGE, PLAN, Acme
from tests.clouds.slack import CHANNEL, TEAM, USER, Seen, texts
from tests.patience import until

#: A Saturday.
NOW = datetime(2026, 11, 28, 3, tzinfo=UTC)
DIRECT = f"D{USER[1:]}"


def tell(acme: Acme, kind: str, **fields: Any) -> httpx.Response:
    """Sends an event, as Slack does."""
    body = acme.slack.event(kind, **fields)
    return acme.slack.send(acme.service, body, path="/slack/events", headers={"Content-Type": "application/json"})


def mention(acme: Acme, text: str, thread: str = "", **fields: Any) -> Seen:
    """What is told after a mention, in a thread if given."""
    before = len(acme.slack.seen)
    beside = {"thread_ts": thread} if thread else {}
    response = tell(acme, "app_mention", text=f"<@UBOT> {text}", channel=CHANNEL, **beside, **fields)
    assert response.status_code == 200
    return acme.slack.wait_for(before + 1)[before]


def job_behind(acme: Acme, message: Seen) -> dict[str, Any]:
    return dict(acme.gpuplan.plans.saved(message.buttons["share"]["value"]).body.job)


def test_follow_ups_in_the_thread_of_a_shared_plan_change_it_one_after_the_other(acme: Acme) -> None:
    shared = acme.clicks(acme.asks(PLAN), "share")
    thread = shared.body["ts"]
    until(lambda: acme.gpuplan.store.slack.plan_of_thread(TEAM, CHANNEL, thread))
    asked = mention(acme, "only nvidia, by 20h", thread)
    assert (asked.channel, asked.only_for, asked.body["thread_ts"]) == (CHANNEL, None, thread)
    assert "With vendors nvidia, deadline 20h:" in asked.text
    job = job_behind(acme, asked)
    assert (job["constraints"]["vendors"], job["deadline"]) == (["NVIDIA"], 20.0)
    # On top of the reply before, and of the words of the first plan.
    faster = mention(acme, "faster", thread)
    assert "The next faster, within" in faster.text
    job = job_behind(acme, faster)
    assert (job["constraints"]["vendors"], job["training"]["method"]) == (["NVIDIA"], "lora")
    assert job["deadline"] < 20.0
    why = mention(acme, "why not H100?", thread)
    assert "and H100" in why.text
    assert why.body["thread_ts"] == thread


def test_a_mention_plans_and_what_follows_in_its_thread_is_about_that_plan(acme: Acme) -> None:
    first = mention(acme, PLAN)
    thread = first.body["thread_ts"]
    assert "Cheapest for llama-3-8b" in first.text
    assert job_behind(acme, mention(acme, "under $5,000", thread))["budget_usd"] == "5000.00"


def test_a_direct_message_is_answered_in_its_thread_without_a_mention(acme: Acme) -> None:
    tell(acme, "message", text=PLAN, channel=DIRECT, channel_type="im")
    [first] = acme.slack.wait_for(1)
    assert first.channel == DIRECT
    thread = first.body["thread_ts"]
    tell(acme, "message", text="no deadline", channel=DIRECT, channel_type="im", thread_ts=thread)
    [_, second] = acme.slack.wait_for(2)
    assert "With no deadline:" in second.text
    assert "deadline" not in job_behind(acme, second)


def test_what_is_not_understood_is_told_with_examples_in_the_thread(acme: Acme) -> None:
    thread = mention(acme, "price H100").body["thread_ts"]
    assert "there is no command" in mention(acme, "frobnicate", thread).text
    planned = mention(acme, PLAN).body["thread_ts"]
    refused = mention(acme, "frobnicate <!channel>", planned)
    assert "is not understood; write such as: cheaper, faster, by friday" in refused.text
    assert "<!channel>" not in json.dumps(refused.body)
    assert "on: unknown accelerator 'H1000'" in mention(acme, "on=H1000", planned).text
    assert "Commands of gpuplan" in mention(acme, "").body["text"]


def test_the_messages_of_bots_and_changes_of_messages_are_left_alone(acme: Acme) -> None:
    tell(acme, "message", text=PLAN, channel=DIRECT, channel_type="im", bot_id="B1")
    tell(acme, "message", subtype="message_changed", channel=DIRECT, channel_type="im")
    assert "Cheapest" in mention(acme, PLAN).text
    assert len(acme.slack.seen) == 1


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("by friday", {"by": "2026-12-04T23:59Z"}),
        ("done by Sat", {"by": "2026-12-05T23:59Z"}),
        ("tomorrow", None),
        ("by tomorrow and only us", {"by": "2026-11-29T23:59Z", "in": "us"}),
        ("within 2 days", {"by": "2 days"}),
        ("by 2026-12-01", {"by": "2026-12-01T23:59Z"}),
        ("only H100 or A100", {"on": "H100,A100"}),
        ("only aws, only spot", {"providers": "aws", "kinds": "spot"}),
        ("in eu; at most $3k", {"in": "eu", "max": "$3k"}),
        ("please no budget!", {"max": None}),
        ("qlora", {"method": "qlora"}),
        ("", None),
    ],
)
def test_a_follow_up_means(text: str, changes: dict[str, str | None] | None) -> None:
    if changes is None:
        with pytest.raises(UnusableInput, match="is not understood; write such as"):
            read_changes(text, now=NOW)
    else:
        assert read_changes(text, now=NOW) == changes


def home_view(acme: Acme) -> dict[str, Any]:
    """The home tab, when a user opens it."""
    tell(acme, "app_home_opened", tab="home", channel=DIRECT)
    [view] = until(lambda: acme.slack.homes)
    acme.slack.homes = []
    return view


def test_the_home_tab_has_recent_plans_and_watches_and_shows_them(acme: Acme) -> None:
    message = acme.asks(f'{PLAN} name="*home* &lt;!here&gt;"')
    watched = acme.clicks(message, "watch").text.partition("(")[2].partition(")")[0]
    view = home_view(acme)
    shown = "\n".join(texts(view["blocks"]))
    for part in ("Recent plans", "*home* ＜!here>: $", "Watches", watched):
        assert part in shown
    rows = {block["accessory"]["value"]: block["accessory"] for block in view["blocks"] if "accessory" in block}
    plan_id = message.buttons["share"]["value"]
    payload = {"type": "block_actions", "team": {"id": TEAM}, "user": {"id": USER, "team_id": TEAM}}
    for number, action in enumerate((rows[plan_id], {"action_id": "new", "value": "new"})):
        clicked = payload | {"trigger_id": f"home.{number}", "actions": [action]}
        body = httpx.QueryParams({"payload": json.dumps(clicked)})
        acme.slack.send(acme.service, str(body).encode(), path="/slack/interactions")
    direct = acme.slack.wait_for(3)[2]
    assert (direct.channel, direct.buttons["share"]["value"]) == (USER, plan_id)
    assert until(lambda: acme.slack.views)[0]["callback_id"] == "plan"
    assert PAGE in json.dumps(view["blocks"])
    acme.asks(f"unwatch {watched}")


def test_the_home_tab_of_a_workspace_that_may_not_ask_says_how(acme: Acme) -> None:
    remove(acme.gpuplan, TEAM)
    assert f"gpuplan slack allow {TEAM} --scope plan" in "\n".join(texts(home_view(acme)["blocks"]))
    allow(acme.gpuplan, TEAM, scope="plan", name="acme")
