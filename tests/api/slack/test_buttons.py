"""The buttons below a plan: each does what it says, for the one who clicks, and says so when its plan is gone."""

import json
import time

import pytest
import yaml

from gpuplan.api.exports.export_formats import FORMATS
from gpuplan.api.presentation.text_formatting import duration
from gpuplan.api.schemas.key_value_words import job_of_words, split_words
from gpuplan.api.slack import question_kinds
from gpuplan.api.slack.workspaces import allow
from gpuplan.planner.model.plan import PlannedAnswer
from gpuplan.planner.model.wire import wire
from tests.api.slack.conftest import PLAN, Acme
from tests.clouds.slack import CHANNEL, TEAM, USER, Seen


@pytest.fixture
def plan_message(acme: Acme) -> Seen:
    return acme.asks(PLAN)


def test_buttons_carry_ids_and_never_a_job(plan_message: Seen) -> None:
    buttons = plan_message.buttons
    assert {"faster", "share", "watch", "export"} <= set(buttons)
    plan_id = buttons["share"]["value"]
    assert buttons["faster"]["value"] == buttons["watch"]["value"] == plan_id
    assert [option["value"] for option in buttons["export"]["options"]] == [f"{name}:{plan_id}" for name in FORMATS]
    assert "llama" not in json.dumps(buttons)


def test_faster_gives_the_next_faster_plan_and_cheaper_leads_back(acme: Acme, plan_message: Seen) -> None:
    first = acme.gpuplan.plans.saved_document(plan_message.buttons["share"]["value"])["plan"]
    faster = acme.clicks(plan_message, "faster")
    assert faster.only_for == USER
    assert "The next faster, within" in faster.text
    second = acme.gpuplan.plans.saved_document(faster.buttons["share"]["value"])["plan"]
    assert second["hours"]["confident"] < first["hours"]["confident"]
    assert float(second["cost_usd"]["expected"]) > float(first["cost_usd"]["expected"])
    cheaper = acme.clicks(faster, "cheaper")
    third = acme.gpuplan.plans.saved_document(cheaper.buttons["share"]["value"])["plan"]
    assert "With a deadline of" in cheaper.text
    assert float(third["cost_usd"]["expected"]) < float(second["cost_usd"]["expected"])


@pytest.fixture
def unmoved(acme: Acme) -> tuple[Seen, PlannedAnswer, float]:
    """A message whose plan stays as it is at the next deadline that lets in cheaper machines, its plan, and the deadline.

    The cheaper machines are obtained so rarely that those of the plan stay the first choice.
    """
    words = "plan llama-3-8b full tokens=500M by=24h"
    message = acme.asks(words)
    answer = acme.gpuplan.plans.saved(message.buttons["share"]["value"])
    assert isinstance(answer, PlannedAnswer)
    step = answer.plan.sensitivity.next_cheaper
    assert step is not None
    job = job_of_words(split_words(words.removeprefix("plan "))) | {"deadline": step.deadline_hours * 1.001}
    longer = acme.gpuplan.plans.plan(job, live=None, save=False)
    assert isinstance(longer, PlannedAnswer)
    assert longer.plan.cost_usd.expected >= answer.plan.cost_usd.expected
    return message, answer, step.deadline_hours


def test_cheaper_tries_the_deadline_after_one_that_leaves_the_plan_as_it_is(
    acme: Acme, unmoved: tuple[Seen, PlannedAnswer, float]
) -> None:
    message, before, unmoved_hours = unmoved
    cheaper = acme.clicks(message, "cheaper")
    after = acme.gpuplan.plans.saved(cheaper.buttons["share"]["value"])
    assert isinstance(after, PlannedAnswer)
    assert after.plan.cost_usd.expected < before.plan.cost_usd.expected
    assert after.plan.job["deadline"] > unmoved_hours * 1.01


def test_cheaper_ends_after_so_many_deadlines_and_names_the_last(
    acme: Acme, unmoved: tuple[Seen, PlannedAnswer, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_kinds, "MOST_DEADLINES_TRIED", 1)
    message, _, unmoved_hours = unmoved
    answer = acme.clicks(message, "cheaper")
    assert f"No deadline up to {duration(unmoved_hours)} is cheaper." in answer.text
    assert not answer.buttons


def test_cheaper_says_so_where_nothing_is(acme: Acme, plan_message: Seen) -> None:
    plan_message.buttons["share"]["action_id"] = "cheaper"
    assert "No longer deadline is cheaper" in acme.clicks(plan_message, "cheaper").text


def test_a_click_from_another_workspace_in_a_shared_channel_counts_as_that_workspace(
    acme: Acme, plan_message: Seen
) -> None:
    refused = acme.clicks(plan_message, "faster", home="T0OTHER")
    assert "this workspace (T0OTHER) may not use gpuplan" in refused.text
    assert not refused.buttons


def test_share_shows_the_plan_to_everybody_and_who_shared_it(acme: Acme, plan_message: Seen) -> None:
    shared = acme.clicks(plan_message, "share")
    assert (shared.channel, shared.only_for) == (CHANNEL, None)
    assert shared.how == "chat.postMessage"
    assert "shared by ann" in shared.text
    acme.slack.members_of = set()
    elsewhere = acme.clicks(plan_message, "share")
    assert (elsewhere.how, elsewhere.body["response_type"]) == ("response_url", "in_channel")
    assert "Cheapest for llama-3-8b" in shared.text


def test_export_sends_the_file_to_direct_messages(acme: Acme) -> None:
    plan_message = acme.asks(f"{PLAN} providers=aws on=H100")
    note = acme.clicks(plan_message, "export", choice="skypilot")
    assert note.only_for == USER
    [(channel, file_id)] = acme.slack.shared
    assert channel == f"D{USER[1:]}"
    assert yaml.safe_load(acme.slack.uploaded[file_id])["num_nodes"] == 1
    assert acme.slack.files[file_id]["filename"] in note.text


def test_what_a_tool_cannot_do_is_told_with_the_reason(acme: Acme) -> None:
    plan_message = acme.asks(f"{PLAN} providers=aws")
    refused = acme.clicks(plan_message, "export", choice="gcloud")
    assert "it runs on Amazon Web Services, but gcloud supports only Google Cloud" in refused.text
    assert acme.slack.shared == []


def test_watch_watches_in_this_channel(acme: Acme, plan_message: Seen) -> None:
    watched = acme.clicks(plan_message, "watch")
    assert "is watched (watch-" in watched.text
    listed = acme.asks("watches")
    assert "llama-3-8b" in listed.text
    watch_id = watched.text.partition("(")[2].partition(")")[0]
    [channel] = acme.gpuplan.watches.one(watch_id).channels
    assert channel == f"slack:{TEAM}:{CHANNEL}:{USER}"
    # As it was asked for: a week from each new look, not from when it was planned first.
    assert "start" not in wire(acme.gpuplan.watches.one(watch_id))["job"]
    assert "no longer watched" in acme.asks(f"unwatch {watch_id}").text
    assert "is not a watch of this workspace" in acme.asks(f"unwatch {watch_id}").text


def test_a_button_of_a_plan_that_is_gone_says_so(acme: Acme, plan_message: Seen) -> None:
    gone = "plan-00000000000000000000"
    for action in ("faster", "share", "watch"):
        assert f"{gone} is not stored" in acme.clicks(plan_message, action, value=gone).text
    plan_message.buttons["export"]["options"][0]["value"] = f"skypilot:{gone}"
    assert "is not stored" in acme.clicks(plan_message, "export", choice="skypilot").text


@pytest.mark.parametrize(
    ("action", "value"),
    [("share", "../../etc/passwd"), ("share", ""), ("faster", "json:plan-00000000000000000000"), ("share", "x" * 1900)],
)
def test_a_button_that_no_message_of_ours_has_is_refused(
    acme: Acme, plan_message: Seen, action: str, value: str
) -> None:
    plan_message.buttons[action]["value"] = value
    assert "this button is unknown" in acme.clicks(plan_message, action).text


def test_an_action_that_nobody_knows_is_refused(acme: Acme, plan_message: Seen) -> None:
    plan_message.buttons["share"]["action_id"] = "launch"
    assert "this button is unknown" in acme.clicks(plan_message, "launch").text


def test_a_click_from_a_workspace_that_may_only_read_is_refused(acme: Acme, plan_message: Seen) -> None:
    allow(acme.gpuplan, TEAM, scope="read", name="acme")
    assert "this takes plan" in acme.clicks(plan_message, "faster").text
    assert acme.clicks(plan_message, "share").only_for is None


def test_a_click_twice_is_done_once(acme: Acme, plan_message: Seen) -> None:
    body = acme.slack.click(plan_message, "share")
    sent = [acme.slack.send(acme.service, body, path="/slack/interactions", at=at) for at in (None, time.time() + 1)]
    assert [response.status_code for response in sent] == [200, 409]
    assert len(acme.slack.wait_for(2)) == 2
