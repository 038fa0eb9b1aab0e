"""What counts as news of a watched job, to the micro-dollar, and how it reads."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.api.notifications.watch_events import TITLES, DeadlinePassed, event_between, job_news
from gpuplan.api.notifications.webhook_sending import LONGEST_TEXT, escaped, slack_message
from gpuplan.api.schemas.watch_answers import ReportedConflicts, ReportedJob, ReportedPlan, WatchedOffer, WatchEvent
from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.store.watch_store import Watch
from gpuplan.planner.model.wire import wire

NOW = datetime(2026, 12, 1, tzinfo=UTC)
OFFER = WatchedOffer(
    provider="aws", region="us-east-1", zone="use1-az4", instance_type="p5.48xlarge", price_kind="spot"
)
NONE = ReportedConflicts(
    outcome="infeasible", plan_id="none-1", snapshot_id="s", at=NOW, conflicts=(("deadline", "budget_usd"),)
)


def plan(usd: str) -> ReportedPlan:
    return ReportedPlan(
        outcome="planned",
        plan_id="plan-1",
        snapshot_id="s",
        at=NOW,
        cost_usd=Decimal(usd),
        hours=5.0,
        choice="1 x p5.48xlarge (8 x H100) in aws us-east-1, spot",
        offers=(OFFER,),
    )


def watch(name: str = "nightly") -> Watch:
    return Watch(
        id="watch-1",
        name=name,
        job={"name": "llama"},
        channels=("ops",),
        threshold_percent=10.0,
        created_at=NOW,
        last_told=wire(plan("100.00")),
    )


@pytest.mark.parametrize(
    ("old", "new", "percent", "event"),
    [
        ("100.00", "90.00", 10.0, "cheaper"),
        ("100.00", "90.000001", 10.0, None),
        ("100.00", "110.00", 10.0, "dearer"),
        ("100.00", "109.999999", 10.0, None),
        ("0.30", "0.27", 10.0, "cheaper"),
        ("1000000.00", "999000.00", 0.1, "cheaper"),
        ("0.00", "0.00", 10.0, None),
        ("0.00", "0.01", 99.0, "dearer"),
        ("5.00", "0.00", 99.0, "cheaper"),
        ("100.00", "100.00", 0.001, None),
    ],
)
def test_a_cost_has_changed_from_exactly_the_threshold_on(
    old: str, new: str, percent: float, event: str | None
) -> None:
    assert event_between(plan(old), plan(new), [], percent) == event


@given(old=st.integers(1, 10**12), new=st.integers(0, 10**12), percent=st.floats(0.001, 99.999))
def test_a_cost_never_is_both_cheaper_and_dearer_and_what_is_told_is_worth_it(
    old: int, new: int, percent: float
) -> None:
    event = event_between(plan(usd_text(old)), plan(usd_text(new)), [], percent)
    change = abs(Fraction(new - old, old)) * 100
    assert event == (("cheaper" if new < old else "dearer") if change >= Fraction(str(percent)) else None)


@pytest.mark.parametrize(
    ("before", "after", "gone", "event"),
    [
        (plan("100.00"), NONE, [], "infeasible"),
        (plan("100.00"), NONE, [OFFER], "infeasible"),
        (NONE, plan("100.00"), [], "feasible"),
        (NONE, NONE, [], None),
        (plan("100.00"), plan("100.00"), [OFFER], "offer_gone"),
        (plan("100.00"), plan("10.00"), [OFFER], "offer_gone"),
    ],
)
def test_what_became_of_the_plan_comes_before_what_it_costs(
    before: ReportedJob, after: ReportedJob, gone: list[WatchedOffer], event: str | None
) -> None:
    assert event_between(before, after, gone, 10.0) == event


@pytest.mark.parametrize(
    ("event", "before", "after", "gone", "expected"),
    [
        ("cheaper", plan("100.00"), plan("80.00"), [], "nightly is cheaper now: $80.00 on 1 x p5.48xlarge"),
        ("cheaper", plan("100.00"), plan("80.00"), [], "$20.00 (20 %) less than $100.00 on 1 x"),
        ("dearer", plan("100.00"), plan("150.00"), [], "$50.00 (50 %) more than $100.00 on 1 x"),
        ("dearer", plan("0.00"), plan("1.00"), [], "$1.00 more than $0.00"),
        (
            "offer_gone",
            plan("100.00"),
            plan("120.00"),
            [OFFER],
            "p5.48xlarge in aws us-east-1 use1-az4, spot: the best",
        ),
        ("offer_gone", plan("100.00"), plan("100.00"), [OFFER], "no dearer than $100.00 before"),
        ("infeasible", plan("100.00"), NONE, [], "(in conflict: deadline with budget_usd); it was $100.00 on"),
        (
            "infeasible",
            plan("100.00"),
            replace(NONE, searched_nodes=128),
            [],
            "(in conflict within 128 nodes: deadline with",
        ),
        ("feasible", NONE, plan("100.00"), [], "can be done now: $100.00 on"),
    ],
)
def test_a_message_says_in_one_line_what_happened(
    event: WatchEvent, before: ReportedJob, after: ReportedJob, gone: list[WatchedOffer], expected: str
) -> None:
    data = job_news(watch(), event, before, after, gone).payload(NOW)["data"]
    assert expected in data["summary"]
    assert data["event"] == event
    assert "offers" not in data["before"]


def test_every_event_has_a_title_and_a_slack_message_of_every_event_names_the_watch() -> None:
    over = DeadlinePassed(snapshot_id="s", at=NOW)
    for event in TITLES:
        after = NONE if event == "infeasible" else over if event == "deadline_passed" else plan("50.00")
        sent = slack_message(job_news(watch(), event, plan("100.00"), after, [OFFER]).payload(NOW))
        assert sent["text"].startswith(f"nightly {TITLES[event]}")
        assert sent["blocks"][0]["text"]["text"] == sent["text"]


def test_a_name_cannot_mention_anybody_or_link_anywhere_in_slack() -> None:
    news = job_news(watch("<!channel> & <https://evil|here>"), "cheaper", plan("100.00"), plan("50.00"), [])
    text = slack_message(news.payload(NOW))["text"]
    assert text.startswith("&lt;!channel&gt; &amp; &lt;https://evil|here&gt; is cheaper now")


@given(st.text(alphabet=st.sampled_from("<>&a é\u202e\n"), max_size=4_000))
def test_text_for_slack_stays_within_its_limit_and_is_never_cut_through_an_escape(text: str) -> None:
    escaped_text = escaped(text)
    assert len(escaped_text) <= LONGEST_TEXT
    assert not set("<>") & set(escaped_text)
    body = escaped_text.removesuffix("…") if len(escaped_text) > 2_890 else escaped_text
    assert text.startswith(body.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_control_characters_of_a_name_reach_nobody() -> None:
    news = job_news(watch("a\u202eb\x1b[31m"), "cheaper", plan("100.00"), plan("50.00"), [])
    assert news.watch.name == "a\ufffdb\ufffd[31m"
