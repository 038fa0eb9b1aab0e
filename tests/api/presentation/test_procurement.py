"""A decision to buy as a person reads it: what is there, plans, limits, risks and what is not bought."""

from typing import Any

from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.procurement import render_decision
from gpuplan.planner.procurement.procurement_answer import typed_answer
from gpuplan.planner.procurement.procurement_decision import decide
from tests.planner.procurement.small import JOB, SETTINGS, an_own_l4, catalogue, forecast


def read(asked: dict[str, Any], usd_per_hour: dict[str, float], **options: Any) -> str:
    decision = decide(forecast(**asked), catalogue(**usd_per_hour), SETTINGS, **options)
    console = Console(width=160)
    with console.capture() as captured:
        print_sections(render_decision(typed_answer(decision, SETTINGS, version="1")), on=console)
    return " ".join(captured.get().split())


def test_owned_machines_and_savings_plans_have_a_table_each() -> None:
    asked = {"machines": [], "commitments": ["savings_plan_1y"], "jobs": [{"job": JOB, "per_year": 9000}]}
    text = read(asked, {"on_demand": 2.0, "savings_plan_1y": 1.2}, owned=an_own_l4())
    assert "Cheapest for forecast: use what you have, commit to $" in text
    assert "with what you have and renting" in text
    assert "What you have" in text
    assert "savings plan 1y, g6 in us-east-1" in text
    assert "g6.xlarge at $1.2000" in text
    assert "what is not used is lost" in text


def test_the_limit_that_binds_the_risk_and_what_is_not_bought_are_said() -> None:
    jobs = [{"job": JOB, "per_year": {"low": 0, "expected": 9000, "high": 20000}}]
    text = read({"jobs": jobs, "limits": {"power_watts": 300}}, {"on_demand": 2.0})
    assert "power_watts: 200 of 300 used; machine number 2 of L4 would bring the need to 400 W of power" in text
    assert "Risk" in text
    assert "probability of costing more than buying nothing 30 %" in text
    idle = read({}, {"on_demand": 0.01})
    assert "What is not bought" in idle
    assert "its electricity alone costs more than renting" in idle
