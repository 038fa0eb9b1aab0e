"""A decision to buy as a person reads it: what is there, plans, limits, risks and what is not bought."""

from typing import Any

from rich.console import Console

from api.render.buy import render_decision
from planner.buying.decide import decide
from planner.buying.document import document
from tests.planner.buying.small import JOB, SETTINGS, an_own_l4, catalogue, forecast


def read(asked: dict[str, Any], usd_per_hour: dict[str, float], **more: Any) -> str:
    found = decide(forecast(**asked), catalogue(**usd_per_hour), SETTINGS, **more)
    console = Console(width=160)
    with console.capture() as captured:
        console.print(render_decision(document(found, SETTINGS, version="1")))
    return " ".join(captured.get().split())


def test_own_machines_and_savings_plans_have_a_table_each() -> None:
    asked = {"machines": [], "commitments": ["savings_plan_1y"], "jobs": [{"job": JOB, "per_year": 9000}]}
    said = read(asked, {"on_demand": 2.0, "savings_plan_1y": 1.2}, owned=an_own_l4())
    assert "Cheapest for forecast: use what you have, commit to $" in said
    assert "with what you have and renting" in said
    assert "What you have" in said
    assert "savings plan 1y, g6 in us-east-1" in said
    assert "g6.xlarge at $1.2000" in said
    assert "what is not used is lost" in said


def test_the_limit_that_binds_the_risk_and_what_is_not_bought_are_said() -> None:
    jobs = [{"job": JOB, "per_year": {"low": 0, "expected": 9000, "high": 20000}}]
    said = read({"jobs": jobs, "limits": {"power_watts": 300}}, {"on_demand": 2.0})
    assert "power_watts: 200 of 300 used; machine number 2 of L4 would bring the need to 400 W of power" in said
    assert "How sure that is" in said
    assert "costs more than buying nothing with a probability of 30 %" in said
    idle = read({}, {"on_demand": 0.01})
    assert "What is not bought" in idle
    assert "its electricity alone costs more than renting" in idle
