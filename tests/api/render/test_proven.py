"""No interface calls an answer the cheapest whose certificate leaves a gap."""

import io
from copy import deepcopy
from typing import Any

import pytest
from rich.console import Console, RenderableType

from api.render.buy import render_decision
from api.render.plan import render_answer
from api.render.proven import best, why_nothing, within
from api.render.replan import _title
from api.slack.show_plan import plan_message
from planner.buying.decide import decide
from planner.buying.document import document
from tests.api.render.test_plan import PLAN
from tests.planner.buying.small import SETTINGS, catalogue, forecast

#: The plan costs 1,500 USD, and nothing less than 1,317 is ruled out: it may lie 13.9 % above the least.
OPEN: dict[str, Any] = {"bound_usd": "1317.00", "gap": 0.122}
WITHIN = "Within 13.9 % of the least possible cost"


def read(shown: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=160, force_terminal=False).print(shown)
    return " ".join(out.getvalue().split())


def with_gap(answer: dict[str, Any]) -> dict[str, Any]:
    answer = deepcopy(answer)
    answer["plan"]["certificate"] |= OPEN
    return answer


@pytest.mark.parametrize(
    ("certificate", "head", "why"),
    [
        ({"gap": 0.0}, "Cheapest", "Why nothing is cheaper"),
        ({"gap": 1e-9}, "Cheapest", "Why nothing is cheaper"),
        ({"gap": 0.122}, WITHIN, "Why nothing is cheaper by more than 12.2 %"),
        ({"gap": 2e-6}, "Within 0.1 % of the least possible cost", "Why nothing is cheaper by more than 0.1 %"),
        ({"gap": 1.0}, "Least cost found, no lower bound proven,", "Why nothing is cheaper by more than 100.0 %"),
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
    assert best(certificate) == head
    assert why_nothing(certificate) == why


def test_a_gap_is_told_as_a_part_of_the_least_and_rounded_up() -> None:
    assert within(0.0123) == "within 1.3 % of the least possible"
    assert within(1.0) == "not proven to be near the least possible"


def test_a_plan_with_a_gap_is_not_called_the_cheapest_on_the_command_line() -> None:
    said = read(render_answer(with_gap(PLAN)))
    assert f"{WITHIN} for a job: 4 x p5.48xlarge" in said
    assert "Cheapest for" not in said


def test_a_plan_with_a_gap_is_not_called_the_cheapest_in_slack() -> None:
    told = plan_message(with_gap(PLAN))
    assert told["text"].startswith(f"{WITHIN} for a job: ")
    assert "Cheapest for" not in str(told)


def test_what_to_buy_with_a_gap_is_not_called_the_cheapest() -> None:
    answer = document(decide(forecast(), catalogue(on_demand=2.0), SETTINGS), SETTINGS, version="1")
    answer["decision"]["certificate"] |= OPEN
    said = read(render_decision(answer))
    assert said.startswith(f"{WITHIN} for ")
    assert "Cheapest for" not in said


def test_a_plan_from_now_with_a_gap_is_not_called_the_best() -> None:
    assert _title({"gap": 0.0}) == "The best plan from now"
    assert _title(OPEN) == f"{WITHIN}, from now"
