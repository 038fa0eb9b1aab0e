"""What the page says of a plan in words of its own claims no more than the plan does; and no form breaks it."""

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.api.web.answer_card import glance
from gpuplan.api.web.job_fields import FIELDS
from gpuplan.api.web.plan_view import proof_sentence
from gpuplan.planner.model.plan import Plan
from tests.partial_answers import answer_of

PROOF: dict[str, Any] = {
    "offers_considered": 9488,
    "configurations_considered": 12,
    "objective_usd": "100.00",
    "bound_usd": "99.50",
    "gap": 0.0,
}


@pytest.mark.parametrize(
    ("extra", "phrase", "unsaid"),
    [
        ({}, "proves that none of them costs less than $100.00", "compared"),
        ({"over": ["some"]}, "proves that no plan of those compared costs less than $100.00", "none of them"),
        ({"gap": 0.005}, "None of them can cost less than $99.50; this plan costs $100.00", "proves"),
        ({"gap": 0.005, "over": ["some"]}, "No plan of those compared can cost less than $99.50", "proves"),
    ],
)
def test_the_proof_is_told_as_far_as_it_goes(extra: dict[str, Any], phrase: str, unsaid: str) -> None:
    sentence = proof_sentence(answer_of(Plan, {"certificate": PROOF | extra}))
    assert sentence is not None
    assert phrase in sentence
    assert unsaid not in sentence


def test_a_plan_of_least_time_has_no_sentence_on_cost() -> None:
    assert proof_sentence(answer_of(Plan, {"certificate": PROOF | {"objective": {"of": "time"}}})) is None


def test_what_is_not_known_is_left_out_at_a_glance() -> None:
    plan = {
        "cost_usd": {"expected": "10.00", "p95": "12.00"},
        "hours": {"expected": 5.0, "p95": 7.0},
    }
    assert [name for name, _, _ in glance(answer_of(Plan, plan))] == ["Expected cost", "Expected time", "Done"]


@pytest.mark.parametrize(
    ("wait", "beside"),
    [
        (1.5, "95 % of runs: 30 d at most; only this counts rare outages of days"),
        (None, "95 % of runs: 30 d at most"),
    ],
)
def test_the_expected_time_says_what_it_leaves_out(wait: float | None, beside: str) -> None:
    plan = {
        "cost_usd": {"expected": "10.00", "p95": "12.00"},
        "hours": {"expected": 55.0, "p95": 720.0},
        "phases": [{"preemption_wait_hours": wait}],
    }
    assert ("Expected time", "2 d 7 h", beside) in glance(answer_of(Plan, plan))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from([field.name for field in FIELDS]),
        st.one_of(st.text(max_size=40), st.sampled_from(["1", "resnet-50", "aws", "1e999", "-1", "NaN", "\x00", "²"])),
        min_size=1,
        max_size=6,
    )
)
def test_no_form_is_too_odd_for_an_answer(client: httpx.Client, typed: dict[str, str]) -> None:
    # Lone surrogates cannot be sent.
    sent = {name: value.encode("utf-8", "replace").decode() for name, value in typed.items()}
    answer = client.post("/plans", data=sent)
    assert answer.status_code in {303, 422}
    if answer.status_code == 422:
        assert 'id="summary"' in answer.text
