"""What users write is shown as they wrote it: never markup, a mention or a link, and never past Slack's limits."""

import itertools
import json
import re
import string
from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.api.schemas.catalogue import OfferRow
from gpuplan.api.schemas.prices import PriceRow
from gpuplan.api.schemas.watch_answers import JobWatch, ReportedPlan
from gpuplan.api.slack.block_kit import LONGEST_TEXT, Message, harmless, message, simpler
from gpuplan.api.slack.other_messages import history_message, price_message, refusal, watches_message, why_message
from gpuplan.api.slack.plan_message import plan_message
from gpuplan.api.slack.slash_commands import read_command
from gpuplan.catalog.runtime.errors import Fault, UnusableInput
from gpuplan.planner.model.explanation import WhyAnswer
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer
from tests.api.slack.conftest import Acme
from tests.clouds.slack import CHANNEL, USER, Slack, faults_of_blocks, markup
from tests.partial_answers import answer_of

OF_MESSAGES = {"header", "section", "context", "actions", "rich_text", "table", "image"}
HOSTILE = "<!channel> <@U0123ABCD> <https://evil.example|click> @here *bold* _it_ ~no~ `code` &amp; #general"
NASTY = st.text(st.sampled_from("<>&*_~`@#!|:/\n\t\u202e\x00" + string.ascii_letters + "é漢🙂"), max_size=400)


def held(message: Message) -> None:
    """Nothing of it is read as markup, and Slack would take it."""
    assert list(markup(message["blocks"])) == []
    assert not re.search(r"<[!@#]|<[a-z]+:", json.dumps(message))
    assert faults_of_blocks(message["blocks"], OF_MESSAGES) == []
    assert not set("<>*_~`@#") & set(message["text"])
    assert "://" not in message["text"]
    assert 0 < len(message["text"]) <= LONGEST_TEXT
    assert faults_of_blocks(simpler(message)[-1]["blocks"], OF_MESSAGES - {"table", "image"}) == []


def test_a_name_full_of_markup_is_shown_as_it_is(acme: Acme) -> None:
    plan_message = acme.asks(
        f'plan llama-3-8b tokens=200M method=lora name="{HOSTILE.replace("<", "&lt;").replace(">", "&gt;")}"'
    )
    held(plan_message.body)
    [header] = [block for block in plan_message.body["blocks"] if block["type"] == "header"]
    assert header["text"]["text"].startswith("Cheapest for ＜!channel> ＜@U0123ABCD> ＜https://evil")
    assert header["text"]["type"] == "plain_text"
    watched = acme.clicks(plan_message, "watch")
    listed = acme.asks("watches")
    for shown in (watched, listed, acme.clicks(plan_message, "share"), acme.asks("why last not H100")):
        held(shown.body)
        assert "＜!channel>" in shown.text
    acme.asks(f"unwatch {watched.text.partition('(')[2].partition(')')[0]}")


def test_a_hostile_word_is_refused_as_it_is(acme: Acme) -> None:
    shown = acme.types("plan &lt;!channel&gt;*x* tokens=3B")
    held(shown)
    assert "＜!channel>" in shown["blocks"][0]["text"]["text"]


def watched(text: str) -> JobWatch:
    """A watch with this text wherever it has one."""
    at = datetime(2026, 12, 1, tzinfo=UTC)
    plan = ReportedPlan(
        outcome="planned", plan_id=text, snapshot_id=text, at=at, cost_usd=Decimal(1), hours=1.0, choice=text
    )
    return JobWatch(
        id=text,
        name=text,
        channels=(text,),
        created_at=at,
        state="watching",
        ended_at=None,
        checked_at=None,
        problem=text,
        cheaper_by_percent=10.0,
        last_told=plan,
    )


@given(NASTY)
@settings(deadline=None, max_examples=30)
def test_the_line_beside_the_blocks_has_no_markup_left(text: str) -> None:
    held(message(text))
    assert "<" not in harmless(text)


@given(NASTY, st.integers(1, 60), st.integers(0, 150))
@settings(deadline=None, max_examples=10)
def test_the_longest_names_stay_within_slacks_limits(text: str, repeats: int, count: int) -> None:
    long = text * repeats
    held(plan_message(planned(long, count), notes=[long], shared_by=long))
    held(plan_message(hopeless(long, count)))
    held(refusal(UnusableInput(*(Fault((long,), long) for _ in range(count + 1)))))
    held(price_message(long, [offer_row(long)] * (count + 1), 10**9, long))
    held(history_message(long, [price_row(long)] * 25, 10**9))
    held(watches_message([watched(long)] * (count + 1)))
    held(why_message(explained(long, count)))


@given(NASTY)
@settings(deadline=None, max_examples=30)
def test_whatever_is_typed_is_a_question_or_a_refusal(text: str) -> None:
    for words in itertools.product(("", "plan ", "price ", "why ", "watch "), (text,)):
        try:
            read_command("".join(words))
        except UnusableInput as error:
            held(refusal(error))


def test_slack_itself_refuses_what_is_too_long() -> None:
    slack = Slack()
    slack.server._http.server_close()
    long = {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}
    assert slack._problem({"blocks": [long]})
    assert slack._problem({"blocks": [{"type": "divider"}] * 51})
    assert (CHANNEL, USER) == ("C0123ABCD", "U0123ABCD")


def offer_row(text: str) -> OfferRow:
    return OfferRow(
        provider=text,
        region=text,
        zone=text,
        instance_type=text,
        accelerator=text,
        accelerator_count=8,
        price_kind=text,
        usd_per_hour="1.5",
        observed_at=text,
        source=text,
        observed_approximately=False,
        stale_since=None,
        interruptions_per_hour=None,
        modelled=(),
        partial=(),
        available=True,
        vcpus=None,
        ram_gib=None,
        network_gbps=None,
        fixed_nodes=None,
        sold_on_demand=True,
        retired=False,
        sale_notice=None,
    )


def price_row(text: str) -> PriceRow:
    return PriceRow(
        provider=text,
        region=text,
        zone=text,
        instance_type=text,
        price_kind=text,
        usd_per_hour="1.5",
        from_=text,
        until=text,
        vanished=False,
        stale_since=None,
        observed_at=text,
        source=text,
        modelled=(),
        partial=(),
        available=True,
        seen=(),
    )


def place(text: str) -> dict[str, object]:
    return {
        "provider": text,
        "region": text,
        "zone": text,
        "instance_type": text,
        "accelerator": "H100-80GB-SXM",
        "accelerators_per_node": 8,
        "nodes": 4,
        "price_kind": "spot",
        "usd_per_node_hour": "98.32",
        "hours": 12.5,
        "cost_usd": {"expected": "4916.00"},
    }


def planned(text: str, count: int) -> PlannedAnswer:
    plan = {
        "id": "plan-0123456789abcdef0123",
        "job": {"name": text},
        "snapshot_id": text,
        "cost_usd": {"expected": "4916.00", "p95": "5000.00"},
        "hours": {"expected": 12.5, "confident": 13.0, "p95": 14.0},
        "phases": [place(text)] * max(1, count),
        "certificate": {"offers_considered": 1, "configurations_considered": 1, "gap": 0.01, "solver": text},
        "sensitivity": {
            "next_cheaper": {"deadline_hours": 1e6, "saves_usd": "123456789.12"},
            "next_faster": {"deadline_hours": 1e-3, "costs_usd": "123456789.12"},
        },
        "warnings": [text] * count,
    }
    return answer_of(PlannedAnswer, {"plan": plan, "meta": {"price_age_days": 3.0}})


def hopeless(text: str, count: int) -> InfeasibleAnswer:
    body = {
        "id": "none-0123456789abcdef0123",
        "job": {"name": text},
        "snapshot_id": text,
        "conflicts": [[text] * max(1, count)] * count,
        "relaxations": [{"requirement": text, "from": text, "to": text, "cost_usd": "1"}] * count,
        "nearest_plan": place(text) | {"cost_usd": "1.0"},
        "warnings": [text] * count,
    }
    return answer_of(InfeasibleAnswer, {"infeasible": body})


def explained(text: str, count: int) -> WhyAnswer:
    parts = dict.fromkeys(("compute", "storage", "egress", "power", "setup"), "1.0")
    plan = {"phases": [place(text) | {"cost_usd": "1"}], "cost_usd": "1", "breakdown": parts, "hours_confident": 1.0}
    about = {
        "named": {"text": text},
        "best": {"plan": plan, "extra": {"usd": "1", "breakdown": parts, "hours_confident": 1.0}},
    }
    why = {
        "id": text,
        "job": {"name": text},
        "snapshot_id": text,
        "about": about,
        "summary": [text] * count,
        "plan": plan,
        "warnings": [text] * count,
    }
    return answer_of(WhyAnswer, {"why": why})
