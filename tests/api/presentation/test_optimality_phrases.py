"""No interface calls an answer the cheapest whose certificate leaves a gap."""

import io
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.optimality_phrases import best, best_of, why_nothing, within
from gpuplan.api.presentation.plan import render_answer
from gpuplan.api.presentation.procurement import render_decision
from gpuplan.api.presentation.replan import _title
from gpuplan.api.presentation.sections import Sections
from gpuplan.api.slack.plan_message import plan_message
from gpuplan.planner.model.plan import Certificate, Plan, PlannedAnswer
from gpuplan.planner.model.procurement import ProcurementPlan
from gpuplan.planner.procurement.procurement_answer import typed_answer
from gpuplan.planner.procurement.procurement_decision import decide
from tests.api.presentation.test_plan import PLAN
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
    ("gap", "head"), [(0.0, "Least expected cost"), (0.122, "Within 13.9 % of the least expected cost")]
)
def test_a_plan_that_begins_with_dearer_machines_is_not_called_the_cheapest(gap: float, head: str) -> None:
    ladder = {"cheapest_if_obtained": {"instance_type": "p5.48xlarge"}}
    plan = {"certificate": {"gap": 0.0, "ladder": {"gap": gap}}, "capacity_ladder": ladder}
    assert best_of(answer_of(Plan, plan)) == head
    assert best_of(answer_of(Plan, plan | {"capacity_ladder": {}})) == "Cheapest"


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
