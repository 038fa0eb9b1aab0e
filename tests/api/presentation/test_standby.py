"""What stands behind a run on spot, on a terminal: who, by when, how likely."""

import io
from typing import Any

from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.plan import _headline, _phase
from gpuplan.api.presentation.schedule import render_contingency_standby, render_standby
from gpuplan.api.presentation.sections import sections_of
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import ContingencyStandby, Phase
from tests.api.presentation.test_plan import PHASE
from tests.partial_answers import answer_of

WHERE: dict[str, Any] = {
    "provider": "aws",
    "region": "us-east-1",
    "zone": "",
    "instance_type": "p4d.24xlarge",
    "accelerator": "A100-40GB-SXM",
    "accelerators_per_node": 8,
    "nodes": 2,
    "price_kind": "on_demand",
    "usd_per_node_hour": "21.96",
    "hours_with_goodput": 30.0,
}
SWITCH = {"switch_by": "2026-11-22T14:00:00Z", "switch_by_hours": 30.0, "switch_share": 0.42, "probability": 0.137}
STANDBY = (
    WHERE
    | SWITCH
    | {
        "role": "standby",
        "hours": 3.5,
        "cost_usd": {"expected": "153.72"},
        "precision": "bf16",
        "layout": {"data": 16, "tensor": 1, "zero_stage": 3, "micro_batch": 2, "checkpointing": "none"},
    }
)


def shown(parts: list[Any]) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_sections(sections_of(*parts), on=console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_standby_says_until_when_how_much_must_be_done_and_where_to_go() -> None:
    text = shown(render_standby(answer_of(Phase, STANDBY)))
    assert "If by 2026-11-22 14:00 UTC (30 h from the start) less than 42 % is done" in text
    assert "switch to 2 x p4d.24xlarge (16 x A100-40GB-SXM) in aws us-east-1, on demand" in text
    assert "13.7 % of runs" in text
    assert "$153.72" in text


def test_a_standby_that_could_still_do_all_of_the_work_takes_over_where_nothing_is_done() -> None:
    text = shown(render_standby(answer_of(Phase, STANDBY | {"switch_share": 0.004})))
    assert "(30 h from the start) nothing is done, switch to" in text


def test_a_contingency_standby_says_the_same_of_a_plan_that_hardly_needs_it() -> None:
    back = WHERE | SWITCH | {"ready_hours": 0.75, "deadline_probability": 0.9971, "extra_usd": "12.50"}
    text = shown(render_contingency_standby(answer_of(ContingencyStandby, back)))
    assert "less than 42 % is done" in text
    assert "adds $12.50 on average" in text
    assert "99.7 %" in text
    assert "45 min plus the unsaved share of 30 h" in text


def test_no_contingency_standby_is_said_to_be_certain_or_never_needed() -> None:
    back = WHERE | SWITCH | {"ready_hours": 0.75, "deadline_probability": 1.0, "extra_usd": "0.00", "probability": 0.0}
    text = shown(render_contingency_standby(answer_of(ContingencyStandby, back)))
    assert "less than 0.1 % of runs" in text
    assert "more than 99.9 %" in text
    assert "100.0 %" not in text


def test_hours_on_spot_that_a_standby_may_cut_short_are_not_said_to_hold_all_training() -> None:
    cost = {"expected": "240.50", "breakdown": {"compute": "231.00", "setup": "9.50"}}
    hours = {"hours": 4.0, "training_hours": 15.0, "setup_hours": 0.125}
    spot = answer_of(Phase, PHASE | hours | {"usd_per_node_hour": "19.25", "nodes": 4, "cost_usd": cost})
    text = " ".join(shown(_phase(spot, behind=True)).split())
    assert (
        "4 h on average, 52.5 min of them away after preemptions and unpaid, until the work is done or the standby takes "
        "over; the full work is 15 h of steady training" in text
    )
    assert "of which" in shown(_phase(spot, behind=False))


def test_a_plan_without_a_standby_says_nothing_of_one() -> None:
    assert render_contingency_standby(None) == []


def test_a_headline_names_who_stands_by() -> None:
    spot = WHERE | {"price_kind": "spot", "role": "planned"}
    plan = {
        "phases": [spot, STANDBY],
        "cost_usd": {"expected": "100.00", "p95": "200.00"},
        "hours": {"expected": 40.0, "p95": 50.0},
        "finishes_at": "2026-11-23T00:00:00Z",
    }
    text = " ".join(shown(_headline(answer_of(Plan, plan))).split())
    assert (
        "aws us-east-1, spot, with 2 x p4d.24xlarge (16 x A100-40GB-SXM) in aws us-east-1, on demand as standby" in text
    )
