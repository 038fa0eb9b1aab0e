"""The form behind a bare plan: opened after the acknowledgement, refused at its fields, answered where it was asked for."""

import json
from typing import Any

import pytest

from tests.api.slack.conftest import Acme
from tests.clouds.server import answering
from tests.clouds.slack import CHANNEL, USER, faults_of_form
from tests.patience import until

GOOD = {
    "model": "llama-3-8b",
    "amount": "200M",
    "by": "36h",
    "max": "5000",
    "providers": ["aws", "gcp"],
    "kinds": ["spot"],
    "on": "H100, A100",
    "in": "us",
    "nodes": "4",
    "method": "lora",
    "rank": "16",
    "sequence": "4096",
    "precision": "bf16",
    "confidence": "0.95",
    "name": "<!channel> *run*",
}


@pytest.fixture
def view(acme: Acme) -> dict[str, Any]:
    assert acme.types("plan") == {}
    [shown_form] = until(lambda: acme.slack.views)
    return shown_form


def submit(acme: Acme, view: dict[str, Any], filled: dict[str, Any]) -> dict[str, Any]:
    answer = acme.slack.send(acme.service, acme.slack.submission(view, filled), path="/slack/interactions")
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json() if answer.content else {}
    return body


def test_the_form_offers_every_known_model_under_its_task(view: dict[str, Any]) -> None:
    assert faults_of_form(view) == []
    [model] = [block["element"] for block in view["blocks"] if block["block_id"] == "model"]
    values = [option["value"] for group in model["option_groups"] for option in group["options"]]
    assert {"llama-3-8b", "resnet-50", "bert-large"} <= set(values)
    assert len(values) > 100


def test_a_good_form_is_closed_and_answered_with_what_is_done_first(acme: Acme, view: dict[str, Any]) -> None:
    assert submit(acme, view, GOOD) == {}
    doing, message = acme.slack.wait_for(2)
    assert "Planning ＜!channel> *run*. The answer follows." in doing.text
    assert (message.how, message.channel, message.only_for) == ("response_url", CHANNEL, USER)
    plan = acme.gpuplan.plans.saved_document(message.buttons["share"]["value"])["plan"]
    assert plan["job"]["constraints"]["providers"] == ["aws", "gcp"]
    assert (plan["job"]["constraints"]["price_kinds"], plan["job"]["confidence"]) == (["spot"], 0.95)
    assert (plan["job"]["budget_usd"], plan["job"]["deadline"]) == ("5000.00", 36.0)
    training = plan["job"]["training"]
    assert (training["method"], training["rank"], training["precision"]) == ("lora", 16, "bf16")
    assert (plan["job"]["workload"]["sequence_length"], plan["job"]["constraints"]["max_nodes"]) == (4096, 4)


def test_the_form_has_the_words_of_a_plan_that_most_jobs_need(view: dict[str, Any]) -> None:
    assert {block["block_id"] for block in view["blocks"]} >= GOOD.keys()


def test_samples_are_taken_for_models_that_count_in_samples(acme: Acme, view: dict[str, Any]) -> None:
    assert submit(acme, view, {"model": "resnet-50", "amount": "115M"}) == {}
    [_, message] = acme.slack.wait_for(2)
    plan = acme.gpuplan.plans.saved_document(message.buttons["share"]["value"])["plan"]
    assert plan["job"]["workload"]["samples"] == 115e6


@pytest.mark.parametrize(
    ("change", "block", "message"),
    [
        ({"model": None}, "model", "is missing; choose a model"),
        ({"amount": None}, "amount", "is missing; write how many tokens"),
        ({"amount": "many"}, "amount", "many"),
        ({"by": "yesterday"}, "by", "yesterday"),
        ({"max": "-5"}, "max", "-5"),
        ({"providers": ["ibm"]}, "providers", "'ibm' is not accepted"),
        ({"kinds": ["stolen"]}, "kinds", "'stolen' is not accepted"),
        ({"on": "H1000"}, "on", "unknown accelerator 'H1000'"),
        ({"in": "$(id)"}, "in", "not a region glob"),
        ({"nodes": "many"}, "nodes", "many"),
        ({"rank": "-1"}, "rank", "-1"),
        ({"sequence": "long"}, "sequence", "long"),
        ({"method": "guess"}, "method", "'guess' is not accepted"),
        ({"precision": "fp1"}, "precision", "'fp1' is not accepted"),
        ({"confidence": "7"}, "confidence", "7"),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    acme: Acme, view: dict[str, Any], change: dict[str, Any], block: str, message: str
) -> None:
    answer = submit(acme, view, GOOD | change)
    assert answer["response_action"] == "errors"
    assert list(answer["errors"]) == [block]
    assert message in answer["errors"][block]
    assert acme.slack.seen == []


def test_every_fault_is_said_at_once(acme: Acme, view: dict[str, Any]) -> None:
    answer = submit(acme, view, GOOD | {"by": "soon", "max": "little", "confidence": "high"})
    assert set(answer["errors"]) == {"by", "max", "confidence"}


def test_a_form_that_was_open_for_too_long_is_answered_in_the_channel(acme: Acme, view: dict[str, Any]) -> None:
    metadata = json.loads(view["private_metadata"]) | {"asked_at": "2026-01-01T00:00:00+00:00"}
    submit(acme, view | {"private_metadata": json.dumps(metadata)}, GOOD)
    messages = acme.slack.wait_for(2)
    assert [(message.how, message.only_for) for message in messages] == [("chat.postEphemeral", USER)] * 2


@pytest.mark.parametrize("metadata", ["", "[]", "{", '{"response_url": "https://example.org/"}'])
def test_a_form_of_another_release_is_answered_in_a_direct_message(
    acme: Acme, view: dict[str, Any], metadata: str
) -> None:
    submit(acme, view | {"private_metadata": metadata}, GOOD)
    messages = acme.slack.wait_for(2)
    assert {(message.how, message.channel) for message in messages} == {("chat.postMessage", USER)}


def test_a_form_that_cannot_be_opened_is_said(acme: Acme) -> None:
    acme.slack.server.break_with(
        answering(200, b'{"ok": false, "error": "expired_trigger_id"}'),
        when=lambda request: "views.open" in request.path,
    )
    message = acme.asks("plan")
    assert "The form could not be opened (expired_trigger_id). As text: /gpuplan plan" in message.text
