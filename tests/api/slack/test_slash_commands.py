"""Every command, as typed in Slack: acknowledged, answered to its author alone, or refused in one line."""

import json
from typing import Any

import pytest

from gpuplan.api.security.authorization import Requester, acting_as
from gpuplan.api.security.identity import Identity, with_lesser
from gpuplan.api.slack.slash_commands import COMMANDS, read_command
from gpuplan.api.slack.workspaces import allow
from gpuplan.catalog.model.provider_names import provider_names
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.wire import wire
from tests.api.imports.config_texts import LLAMA_FACTORY
from tests.api.slack.conftest import PAGE, PLAN, Acme
from tests.clouds.slack import TEAM, USER, Seen, texts


def text_of(promised: dict[str, Any]) -> str:
    assert promised["response_type"] == "ephemeral"
    return "\n".join(texts(promised["blocks"]))


def test_a_plan_is_promised_and_told_with_what_to_rent_and_why_nothing_is_cheaper(acme: Acme) -> None:
    assert "Planning llama-3-8b" in text_of(acme.types(PLAN))
    [message] = acme.slack.wait_for(1)
    assert (message.how, message.only_for) == ("response_url", USER)
    [table] = [block for block in message.body["blocks"] if block["type"] == "table"]
    assert [cell["text"] for cell in table["rows"][0]] == ["other ways", "cost", "time", "machines"]
    assert 2 <= len(table["rows"]) <= 4
    figures = ("Rent 1 x", "Cost expected", "19 of 20", "Done", "Meets the deadline", "Obtained at once")
    for part in (*figures, "Before you start", "Why nothing is cheaper"):
        assert part in message.text
    assert "oldest observed" in message.text
    plan_id = message.buttons["share"]["value"]
    assert acme.gpuplan.plans.saved_document(plan_id)["plan"]["job"]["training"]["method"] == "lora"


def links(message: Seen) -> list[str]:
    """Where the links of a message lead."""
    sections = [
        element for block in message.body["blocks"] if block["type"] == "rich_text" for element in block["elements"]
    ]
    return [element["url"] for section in sections for element in section["elements"] if element.get("type") == "link"]


def test_what_is_told_of_a_plan_links_to_its_page(acme: Acme) -> None:
    message = acme.asks(PLAN)
    plan_id = message.buttons["share"]["value"]
    assert links(message) == [f"{PAGE}/plans/{plan_id}"]
    assert links(acme.clicks(message, "share")) == [f"{PAGE}/plans/{plan_id}"]
    hopeless = acme.asks("plan llama-3-8b tokens=300B by=1d max=$100")
    assert links(hopeless) == [f"{PAGE}/plans/{hopeless.buttons['share']['value']}"]
    assert links(acme.asks("price H100")) == []


def test_what_cannot_be_done_is_told_with_the_least_ways_out(acme: Acme) -> None:
    message = acme.asks("plan llama-3-8b tokens=300B by=1d max=$100")
    assert "No plan for llama-3-8b" in message.text
    assert "Conflicting requirements" in message.text
    assert "needed" in message.text


def test_a_pasted_job_file_is_planned(acme: Acme) -> None:
    document = "workload: {kind: preset, model: llama-3-8b, tokens: 200M}\ntraining: {method: lora}\ndeadline: 36h"
    assert "Cheapest for llama-3-8b" in acme.asks(f"plan ```{document}```").text
    assert "deadlin: unknown key; did you mean deadline?" in text_of(acme.types("plan ```deadlin: 3d```"))


def test_a_pasted_configuration_of_another_tool_is_planned_with_the_words_before_it(acme: Acme) -> None:
    assert "for llama-3-8b: $" in acme.asks(f"plan samples=50k gpus=8 by=3d ```{LLAMA_FACTORY}```").text
    lacks = text_of(acme.types(f"plan ```{LLAMA_FACTORY}```"))
    assert "write tokens=2B or samples=50k before the code block" in lacks
    assert "did you mean samples=?" in text_of(acme.types(f"plan sample=50k ```{LLAMA_FACTORY}```"))
    assert "write a whole number above zero" in text_of(acme.types(f"plan gpus=8x ```{LLAMA_FACTORY}```"))


def test_a_link_to_an_uploaded_snippet_is_planned(acme: Acme) -> None:
    job = {"workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M"}, "training": {"method": "lora"}}
    acme.slack.files["F0000GOOD"] = {"content": json.dumps(job), "file": {"id": "F0000GOOD"}}
    acme.slack.files["F0000BADD"] = {"content": "workload: {kind: preset, model: lama}", "file": {}}
    acme.slack.files["F0000LONG"] = {"content": "work", "is_truncated": True, "file": {}}
    link = f"https://acme.slack.com/files/{USER}/%s/job.yaml"
    assert "Cheapest for llama-3-8b" in acme.asks(f"plan <{link % 'F0000GOOD'}|job.yaml>").text
    assert "model: unknown model 'lama'" in acme.asks(f"plan {link % 'F0000BADD'}").text
    assert "cannot be read: Slack does not return the text of that file" in acme.asks(f"plan {link % 'F0000LONG'}").text
    assert "file_not_found" in acme.asks(f"plan {link % 'F0000NONE'}").text


def test_prices_are_told_by_accelerator_and_region(acme: Acme) -> None:
    message = acme.asks("price H100")
    assert "Prices of H100" in message.text
    sellers = set(provider_names()) & set(message.text.splitlines())
    assert {"aws", "gcp"} < sellers
    assert "us-east-1" in acme.asks("price A100 80GB us-east-1").text
    assert "region: 'nowhere-*' matches nothing" in acme.asks("price H100 nowhere-*").text


def test_a_history_is_told(acme: Acme) -> None:
    assert "Price history of p5.48xlarge" in acme.asks("history p5.48xlarge us-east-1").text
    refused = acme.asks("history p5.49xlarge").text
    assert "no price of 'p5.49xlarge' was ever stored; nearest: " in refused
    assert "p5.48xlarge" in refused


def test_why_answers_for_the_last_plan_and_for_a_named_one(acme: Acme) -> None:
    plan_id = acme.asks(PLAN).buttons["share"]["value"]
    message = acme.asks("why last not H100")
    assert "llama-3-8b and H100" in message.text
    assert "total expected" in message.text
    assert "Why llama-3-8b has this plan" in acme.asks(f"why {plan_id}").text
    assert "is not stored (any more)" in acme.asks("why plan-00000000000000000000").text


def test_a_workspace_finds_its_own_plans_and_not_those_of_a_key(acme: Acme, job: dict[str, Any]) -> None:
    ann = Requester(identity=Identity(id="key:ann", name="ann", scopes=with_lesser(["plan"]), via="key"))
    with acting_as(ann):
        of_ann = wire(acme.gpuplan.plans.plan(job | {"name": "of a key"}))["plan"]["id"]
    assert "is not stored (any more)" in acme.asks(f"why {of_ann}").text
    plan_id = acme.asks(f"{PLAN} confidence=91%").buttons["share"]["value"]
    assert "has this plan" in acme.asks(f"why {plan_id}", user="U0COLLEAGUE").text
    with acting_as(ann), pytest.raises(NotStored):
        acme.gpuplan.plans.saved(plan_id)


def test_last_is_the_last_plan_of_the_one_who_asks(acme: Acme) -> None:
    acme.asks(PLAN)
    assert "you have no plan" in text_of(acme.types("why last", user="U0STRANGER"))


def test_help_names_every_command_with_an_example(acme: Acme) -> None:
    for text in ("help", "", "  HELP "):
        shown = text_of(acme.types(text))
        assert all(command.example in shown for command in COMMANDS.values())
    assert acme.slack.seen == []


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("plam llama-3-8b", "there is no command 'plam'; did you mean /gpuplan plan llama-3-8b tokens=300B"),
        ("frobnicate", "there is no command 'frobnicate'; accepted are plan, price, why"),
        ("plan tokens=3B", "model: is missing; name a model first"),
        ("plan lama-3-8b tokens=3B", "model: unknown model 'lama-3-8b'; nearest: llama-3-8b"),
        ("plan llama-3-8b", "tokens: is missing; give the tokens or samples"),
        ("plan resnet-50 epochs=90", "epochs: unknown word; give the tokens or samples of all epochs together"),
        ("plan llama-3-8b tokns=3B", "tokns: unknown word; did you mean tokens=300B?"),
        ("plan llama-3-8b tokens=3B tokens=4B", "tokens: is given twice"),
        ("plan llama-3-8b tokens=3B by=", "by: has no value; write by=7d"),
        ("plan llama-3-8b tokens=3B by=7dogs", "by: '7dogs': 'dogs' is not a unit of time"),
        ("plan llama-3-8b tokens=3B max=-5", "max: "),
        ("plan llama-3-8b tokens=3B on=H1000", "on: unknown accelerator 'H1000'; nearest: H100"),
        ("plan llama-3-8b tokens=3B providers=ibm", "providers: 'ibm' is not accepted"),
        ("plan llama-3-8b tokens=3B kinds=spoot", "kinds: 'spoot' is not accepted; nearest: spot"),
        ("plan llama-3-8b tokens=3B confidence=7", "confidence: "),
        ("plan llama-3-8b tokens=3B method=lorra", "method: 'lorra' is not accepted; did you mean lora?"),
        ("plan llama-3-8b tokens=3B in=$(id)", "in: '$(id)' is not a region glob"),
        ("plan llama-3-8b tokens=3B 7d", "model: '7d' follows the model; write word=value"),
        ('plan llama-3-8b name="open', 'a quote (") is not closed'),
        ("price", "price: needs more words; write /gpuplan price H100"),
        ("price H1000", "price: unknown accelerator 'H1000'; nearest: H100"),
        ("why", "why: needs more words; write /gpuplan why last not H100"),
        ("why something", "plan: 'something' is not a plan; write last, or the id"),
        ("why last nor H100", "why: 'nor' is not accepted; write not or with"),
        ("history", "history: needs more words; write /gpuplan history p5.48xlarge"),
        ("watch last 200%", "threshold: '200%' is not accepted; write a percentage above 0 and below 100"),
        ("watch capacity", "watch"),
        ("watch capacity p5.48xlarge 2", "watch: '2' is not accepted; accepted: nodes=, kind="),
        ("watch capacity p5.48xlarge chance=high", "chance: 'high' is not accepted"),
        ("watch capacity p5.48xlarge chance=7", "chance: 7.0 is not accepted; write a chance above 0 and up to 1"),
        ("watch capacity p5.48xlarge nodes=none", "nodes: "),
        ("watches all", "watches: takes no 'all'"),
        ("plan \x07", "the text has control characters"),
    ],
)
def test_a_bad_word_gets_one_line_that_names_it(typed: str, line: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        read_command(typed)
    assert str(refused.value.faults[0]).startswith(line)
    assert len(refused.value.faults) == 1


def test_a_refusal_is_the_acknowledgement_itself(acme: Acme) -> None:
    shown = text_of(acme.types("plan llama-3-8b tokns=3B by=7d bye=8d"))
    assert shown.splitlines() == [
        "tokns: unknown word; did you mean tokens=300B?",
        "bye: unknown word; did you mean by=7d?",
    ]
    assert acme.slack.seen == []


def test_quotes_and_escapes_that_slack_makes_are_undone() -> None:
    asked = read_command("plan llama-3-8b tokens=3B name=“a &lt;b&gt; &amp; c” in=us,us-east-1")
    assert asked.request["job"]["name"] == "a <b> & c"
    assert asked.request["job"]["constraints"] == {"geography": ["us"], "regions": ["us-east-1"]}


def test_a_workspace_that_nobody_allowed_is_refused_with_what_to_do(acme: Acme) -> None:
    shown = text_of(acme.types(PLAN, team="T0STRANGER"))
    assert (
        shown
        == "this workspace (T0STRANGER) may not use gpuplan; its operator can allow it: gpuplan slack allow T0STRANGER --scope plan"
    )


def test_an_enterprise_that_is_allowed_speaks_for_its_workspaces(acme: Acme) -> None:
    allow(acme.gpuplan, "E0ACME", scope="plan", name="the company")
    shown = acme.types(PLAN, team="T0OFACME", enterprise_id="E0ACME", enterprise_name="Acme")
    assert "Planning" in text_of(shown)
    [message] = acme.slack.wait_for(1)
    assert "Cheapest for llama-3-8b" in message.text
    acme.gpuplan.store.slack.remove("E0ACME")


def test_a_workspace_that_may_read_may_not_plan(acme: Acme) -> None:
    allow(acme.gpuplan, TEAM, scope="read", name="acme")
    assert "this workspace may read, and this takes plan" in text_of(acme.types(PLAN))
    assert "Prices of H100" in acme.asks("price H100").text


def test_who_planned_is_in_the_audit_log(acme: Acme) -> None:
    plan_id = acme.asks(PLAN).buttons["share"]["value"]
    entries = [entry for entry in acme.gpuplan.store.access.audit(limit=50) if entry.record.subject == plan_id]
    assert {(entry.record.identity, entry.record.name, entry.record.via) for entry in entries} == {
        (f"slack:{TEAM}", "acme", "slack")
    }
    assert entries[0].record.address == f"{TEAM}/{USER}"
