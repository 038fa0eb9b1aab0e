"""No interface calls an answer the cheapest whose certificate leaves a gap."""

import io
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.optimality_phrases import best, best_of, why_nothing, why_nothing_of, within
from gpuplan.api.presentation.plan import render_answer
from gpuplan.api.presentation.procurement import render_decision
from gpuplan.api.presentation.replan import _title
from gpuplan.api.presentation.sections import Sections
from gpuplan.api.slack.plan_message import plan_message
from gpuplan.api.web.answer_card import glance
from gpuplan.api.web.plan_view import proof_sentence
from gpuplan.planner.model.plan import Certificate, Plan, PlannedAnswer
from gpuplan.planner.model.procurement import ProcurementPlan
from gpuplan.planner.procurement.procurement_answer import typed_answer
from gpuplan.planner.procurement.procurement_decision import decide
from tests.api.presentation.test_plan import CHOICE, PLAN
from tests.partial_answers import answer_of
from tests.planner.procurement.small import SETTINGS, catalogue, forecast

#: The plan costs 1,500 USD, and nothing less than 1,317 is ruled out: it may lie 13.9 % above the least.
OPEN: dict[str, Any] = {"bound_usd": "1317.00", "gap": 0.122}
WITHIN = "Within 13.9 % of the least possible cost"


def read(shown: Sections) -> str:
    out = io.StringIO()
    print_sections(shown, on=Console(file=out, width=160, force_terminal=False))
    return " ".join(out.getvalue().split())


def with_gap(answer: dict[str, Any]) -> PlannedAnswer:
    answer = deepcopy(answer)
    answer["plan"]["certificate"] |= OPEN
    return answer_of(PlannedAnswer, answer)


@pytest.mark.parametrize(
    ("certificate", "head", "why"),
    [
        ({"gap": 0.0}, "Cheapest", "Why nothing is cheaper"),
        ({"gap": 1e-9}, "Cheapest", "Why nothing is cheaper"),
        ({"gap": 0.122}, WITHIN, "Why nothing is cheaper by more than 12.2 %"),
        ({"gap": 2e-6}, "Within 0.1 % of the least possible cost", "Why nothing is cheaper by more than 0.1 %"),
        (
            {"gap": 1.0},
            "Least cost found, without a proven lower bound,",
            "Why nothing is cheaper by more than 100.0 %",
        ),
        ({"gap": 0.0, "objective": {"of": "time"}}, "Fastest", "Why nothing is faster"),
        (
            {"gap": 0.5, "objective": {"of": "carbon"}},
            "Within 100.0 % of the least possible carbon",
            "Why nothing emits less by more than 50.0 %",
        ),
    ],
)
def test_the_head_of_an_answer_claims_what_its_certificate_proves(
    certificate: dict[str, Any], head: str, why: str
) -> None:
    typed = answer_of(Certificate, certificate)
    assert best(typed) == head
    assert why_nothing(typed) == why


@pytest.mark.parametrize(
    ("gap", "head", "why"),
    [
        (0.0, "Cheapest on average", "Why nothing is cheaper on average"),
        (
            0.122,
            "Within 13.9 % of the least average cost",
            "Why nothing is cheaper on average by more than 12.2 %",
        ),
        (
            1.0,
            "Least average cost found, without a proven lower bound,",
            "Why nothing is cheaper on average by more than 100.0 %",
        ),
    ],
)
@pytest.mark.parametrize("name", ["cheapest_if_obtained", "changing_machines"])
def test_a_plan_that_begins_with_dearer_machines_is_not_called_the_cheapest(
    gap: float, head: str, why: str, name: str
) -> None:
    ladder: dict[str, Any] = {name: {}}
    plan = {"certificate": {"gap": 0.0, "ladder": {"gap": gap}}, "capacity_ladder": ladder}
    typed = answer_of(Plan, plan)
    assert (best_of(typed), why_nothing_of(typed)) == (head, why)
    plain = answer_of(Plan, plan | {"capacity_ladder": {}})
    assert (best_of(plain), why_nothing_of(plain)) == ("Cheapest", "Why nothing is cheaper")


def test_no_interface_claims_that_nothing_is_better_where_a_cheaper_plan_is_named() -> None:
    answer = deepcopy(PLAN)
    answer["plan"]["certificate"]["ladder"] = {"objective_usd": "2000.00", "bound_usd": "1900.00", "gap": 0.05}
    answer["plan"]["capacity_ladder"] = {"chance": 0.5, "cheapest_if_obtained": CHOICE | {"cost_usd": "1400.00"}}
    answer["plan"]["certificate"] |= {"objective_usd": "1400.00", "bound_usd": "1400.00", "gap": 0.0}
    typed = answer_of(PlannedAnswer, answer)
    slack = str(plan_message(typed))
    assert "none is cheaper on average with refusals by more than 5.00 %" in slack
    assert "none is better" not in slack
    page = proof_sentence(typed.plan)
    assert page is not None
    assert "trying these machines first costs $2,000.00 on average" in page
    assert "no ladder with as certain a last choice less than $1,900.00" in page
    text = read(render_answer(typed))
    assert "cheapest if obtained $1,400.00" in text
    assert "objective $1,400.00" not in text


def test_no_interface_calls_a_chance_modelled_that_a_cloud_has_answered() -> None:
    answer = deepcopy(PLAN)
    asked = {"source": "EC2 GetSpotPlacementScores", "published": "7", "asked_at": "2026-11-27T12:00:00Z"}
    answer["plan"]["capacity_ladder"] = {"chance": 0.7, "chance_source": asked}
    typed = answer_of(PlannedAnswer, answer)
    assert "70 %, live 2026-11-27 12:00 UTC" in str(plan_message(typed))
    assert ("Obtained at once", "70 %", "live 2026-11-27 12:00 UTC") in glance(typed.plan)
    del answer["plan"]["capacity_ladder"]["chance_source"]
    typed = answer_of(PlannedAnswer, answer)
    assert "70 %, modelled" in str(plan_message(typed))
    assert ("Obtained at once", "70 %", "modelled") in glance(typed.plan)


def test_a_gap_is_told_as_a_part_of_the_least_and_rounded_up() -> None:
    assert within(0.0123) == "within 1.3 % of the least possible"
    assert within(1.0) == "without a proven lower bound"


def test_a_plan_with_a_gap_is_not_called_the_cheapest_on_the_command_line() -> None:
    text = read(render_answer(with_gap(PLAN)))
    assert f"{WITHIN} for a job: 4 x p5.48xlarge" in text
    assert "Cheapest for" not in text


def test_a_plan_with_a_gap_is_not_called_the_cheapest_in_slack() -> None:
    message = plan_message(with_gap(PLAN))
    assert message["text"].startswith(f"{WITHIN} for a job: ")
    assert "Cheapest for" not in str(message)


def test_what_to_buy_with_a_gap_is_not_called_the_cheapest() -> None:
    answer = typed_answer(decide(forecast(), catalogue(on_demand=2.0), SETTINGS), SETTINGS, version="1")
    assert isinstance(answer, ProcurementPlan)
    text = read(render_decision(replace(answer, certificate=replace(answer.certificate, **OPEN))))
    assert text.startswith(f"{WITHIN} for ")
    assert "Cheapest for" not in text


def test_a_plan_from_now_with_a_gap_is_not_called_the_best() -> None:
    assert _title(answer_of(Certificate)) == "The best plan from now"
    assert _title(answer_of(Certificate, OPEN)) == f"{WITHIN}, from now"
