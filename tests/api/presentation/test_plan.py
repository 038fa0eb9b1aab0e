"""A plan on a terminal: every figure that matters is there, names stay names, and no width breaks it."""

import copy
import io
from typing import Any

import pytest
from rich.console import Console

from gpuplan.api.cli.sections import print_sections
from gpuplan.api.presentation.estimate import render_estimate
from gpuplan.api.presentation.frontier import MOST_ROWS, thinned
from gpuplan.api.presentation.phrases import rented
from gpuplan.api.presentation.plan import render_answer
from gpuplan.api.presentation.text_formatting import number
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.model.plan import InfeasibleAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Configuration, Machines
from gpuplan.planner.performance import On, estimate_on
from gpuplan.planner.workload import work_of
from tests.partial_answers import answer_of

EVIL = "[red]x[/red][/nope] \x1b[2J:skull:"
CHOICE: dict[str, Any] = {
    "provider": "aws",
    "region": "us-east-1",
    "zone": "use1-az4",
    "instance_type": "p5.48xlarge",
    "accelerator": "H100-80GB-SXM",
    "accelerators_per_node": 8,
    "nodes": 4,
    "price_kind": "spot",
    "usd_per_node_hour": "19.25",
}
POINT = CHOICE | {"cost_usd": "1500.00", "cost_p95_usd": "1700.00", "hours": 20.0, "hours_confident": 22.0}
PHASE = CHOICE | {
    "price_observed_at": "2025-12-01T00:00:00Z",
    "price_source": "the provider's price list",
    "hours": 20.0,
    "training_hours": 15.0,
    "precision": "bf16",
    "layout": {"data": 32, "tensor": 1, "zero_stage": 3, "micro_batch": 2, "checkpointing": "none"},
    "throughput": {"value": 123456.0, "unit": "tokens"},
    "mfu": 0.41,
    "memory_gib_per_accelerator": 61.5,
    "capacity_gib_per_accelerator": 79.0,
    "expected_preemptions": 0.7,
    "checkpoint_interval_hours": 1.5,
    "modelled": ["interruption_rate"],
}
PLAN: dict[str, Any] = {
    "outcome": "planned",
    "plan": {
        "id": "plan-1",
        "job": {"name": "a job", "confidence": 0.9},
        "snapshot_id": "abc",
        "cost_usd": {"expected": "1500.00", "p95": "1700.00", "breakdown": {"compute": "1490.00", "storage": "10.00"}},
        "hours": {"expected": 20.0, "confident": 22.0, "p95": 24.0},
        "finishes_at": "2026-11-22T08:00:00Z",
        "deadline_probability": 0.97,
        "carbon_kg": 12.5,
        "phases": [PHASE],
        "certificate": {
            "objective_usd": "1500.00",
            "bound_usd": "1500.00",
            "gap": 0.0,
            "offers_considered": 9372,
            "configurations_considered": 51_234,
            "rejected": {"does not fit in memory": 700, "retired family": 12},
            "enumeration": {"node_counts": "every whole number of nodes from 1 to 32"},
            "solver": "HiGHS",
        },
        "sensitivity": {
            "deadline_usd_per_hour": 3.5,
            "next_cheaper": {"deadline_hours": 40.0, "saves_usd": "200.00"},
            "next_faster": None,
            "holds_until_usd_per_node_hour": "25.00",
        },
        "alternatives": [
            POINT | {"label": "best on aws", "extra_usd": "0.00"},
            POINT | {"label": "best on gcp", "provider": "gcp", "extra_usd": "77.00", "meets_deadline": False},
            POINT | {"label": "best spot", "extra_usd": "0.00"},
        ],
        "commitments": [
            {
                "price_kind": "reserved_1y",
                "usd_per_node_hour": "31.00",
                "total_obligation_usd": "1086240.00",
                "break_even_hours": 5000.0,
            }
        ],
        "frontier": [POINT, POINT | {"hours": 40.0, "cost_usd": "1300.00"}],
        "assumptions": ["goodput of 80 %"],
        "warnings": ["the price is old"],
    },
    "meta": {"price_age_days": 355.5},
}
INFEASIBLE: dict[str, Any] = {
    "outcome": "infeasible",
    "infeasible": {
        "id": "none-1",
        "job": {"name": "a job"},
        "conflicts": [["deadline", "budget_usd"]],
        "searched_nodes": 1024,
        "relaxations": [{"requirement": "deadline", "from": "1 h", "to": "20 h", "cost_usd": "1500.00"}],
        "nearest_plan": POINT | {"breaks": ["deadline"]},
        "rejected": {"retired family": 12},
        "warnings": [],
    },
    "meta": {},
}


SLICE = {"instance_type": "tpu-v6e-128", "accelerator": "TPU-v6e", "accelerators_per_node": 4, "nodes": 32}


def shown(answer: dict[str, Any], width: int = 120) -> str:
    out = io.StringIO()
    # A console that would obey markup, so that the renderer alone must see to it that none is obeyed.
    console = Console(file=out, width=width, force_terminal=False, markup=True, emoji=True)
    typed = answer_of(PlannedAnswer, answer) if answer["outcome"] == "planned" else answer_of(InfeasibleAnswer, answer)
    print_sections(render_answer(typed), on=console)
    return out.getvalue()


@pytest.mark.parametrize(
    "phrase",
    [
        "Cheapest for a job: 4 x p5.48xlarge (32 x H100-80GB-SXM) in aws us-east-1 use1-az4, spot",
        "$1,500.00",
        "$1,700.00",
        "2026-11-22 08:00 UTC",
        "9,372 offers",
        "gap 0",
        "does not fit in memory",
        "97.0 %",
        "41.0 %",
        "61.5 of 79 GiB",
        "0.7 expected, a checkpoint every 1.5 h",
        "best on gcp (misses the deadline)",
        "$77.00",
        "$1,086,240.00",
        "a deadline of 40 h saves at least $200.00",
        "$25.00 per node-hour",
        "2025-12-01",
        "355 days when this plan was made",
        "goodput of 80 %",
        "the price is old",
        "interruption rate",
        "best on aws, best spot",
        "this plan",
        "####",
        "plan plan-1, prices of snapshot abc",
    ],
)
def test_a_plan_says_what_a_stranger_asks(phrase: str) -> None:
    assert phrase in shown(PLAN, 160)


@pytest.mark.parametrize(
    "phrase",
    [
        "No plan meets",
        "deadline and budget_usd: no configuration within 1,024 nodes meets both",
        "20 h",
        "$1,500.00",
        "retired family",
    ],
)
def test_an_infeasible_answer_says_why_and_the_way_out(phrase: str) -> None:
    assert phrase in shown(INFEASIBLE)


def test_what_is_unknown_is_said_or_left_out() -> None:
    bare = copy.deepcopy(PLAN)
    bare["plan"] |= {"carbon_kg": None, "deadline_probability": None, "alternatives": [], "commitments": []}
    del bare["plan"]["frontier"]
    text = shown(bare)
    assert "the job has no deadline" in text
    assert "CO2e" not in text
    assert "Alternatives" not in text


def test_certainty_is_never_claimed() -> None:
    sure = copy.deepcopy(PLAN)
    sure["plan"]["deadline_probability"] = 1.0
    assert "more than 99.9 %" in shown(sure)


@pytest.mark.parametrize("answer", [PLAN, INFEASIBLE], ids=["planned", "infeasible"])
def test_no_text_of_the_answer_is_obeyed_as_markup(answer: dict[str, Any]) -> None:
    text = " ".join(shown(_with_every_text(answer, EVIL), 4_000).split())
    assert "[red]x[/red][/nope] \ufffd[2J:skull:" in text
    assert "\x1b" not in text


def _with_every_text(value: Any, evil: str) -> Any:
    """The same answer with something nasty after every text that is no figure, time or choice of branch."""
    if isinstance(value, dict):
        left_alone = {
            "outcome",
            "layout",
            "cost_usd",
            "cost_p95_usd",
            "extra_usd",
            "breakdown",
            "sensitivity",
            "objective_usd",
        }
        left_alone |= {"bound_usd", "usd_per_node_hour", "total_obligation_usd", "finishes_at", "price_observed_at"}
        return {key: item if key in left_alone else _with_every_text(item, evil) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_every_text(item, evil) for item in value]
    return f"{value} {evil}" if isinstance(value, str) else value


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("answer", [PLAN, INFEASIBLE], ids=["planned", "infeasible"])
def test_no_line_is_longer_than_the_terminal_is_wide(answer: dict[str, Any], width: int) -> None:
    assert max(len(line) for line in shown(answer, width).splitlines()) <= width


def test_a_long_frontier_keeps_its_ends() -> None:
    points = [answer_of(Configuration, POINT | {"hours": float(hour)}) for hour in range(1, 400)]
    fewer = thinned(points)
    assert len(fewer) == MOST_ROWS
    assert (fewer[0].hours, fewer[-1].hours) == (1.0, 399.0)


def test_an_estimate_that_does_not_fit_says_so_first() -> None:
    work = work_of(Preset(model="llama-3-8b", tokens=1e9, global_batch_tokens=1e6), Training())
    answer = estimate_on(work, Training(), On(accelerator="H100-80GB-SXM", gpus=1), goodput=0.8)
    out = io.StringIO()
    print_sections(render_estimate(answer), on=Console(file=out, width=120))
    assert out.getvalue().startswith("The job does not fit in memory on 1 x H100-80GB-SXM.")
    assert (
        f"{number(answer.memory.peak_gib)} GiB of {number(answer.memory.capacity_gib)} GiB: does NOT fit"
        in out.getvalue()
    )


def test_a_slice_is_named_as_one_slice_with_the_price_of_all_its_hosts() -> None:
    answer = copy.deepcopy(PLAN)
    whole = SLICE | {"slice_hosts": 32, "usd_per_node_hour": "10.80"}
    answer["plan"]["phases"][0] |= whole
    answer["plan"]["alternatives"] = [POINT | whole | {"label": "best on gcp", "extra_usd": "0.00"}]
    text = shown(answer, 160)
    assert "Cheapest for a job: tpu-v6e-128 (one slice, 32 hosts; 128 x TPU-v6e) in " in text
    assert "$10.80 per host-hour, $345.60 per hour for all" in text
    assert "32 x tpu" not in text


def test_several_slices_are_counted() -> None:
    part = CHOICE | SLICE | {"slice_hosts": 8}
    assert rented(answer_of(Machines, part)) == "tpu-v6e-128 (4 slices, 32 hosts)"


def test_a_way_out_of_several_requirements_has_a_line_for_each() -> None:
    answer = copy.deepcopy(INFEASIBLE)
    answer["infeasible"]["relaxations"] = [
        {"requirement": "deadline + budget_usd", "from": "1 h; $5.00", "to": "20 h; $9.00", "cost_usd": "8.99"}
    ]
    lines = [line.split() for line in shown(answer).splitlines()]
    assert ["deadline", "1", "h", "20", "h", "$8.99"] in lines
    assert ["and", "budget_usd", "$5.00", "$9.00"] in lines


@pytest.mark.parametrize(
    ("conflict", "sentence"),
    [
        (["workload"], "no machine allowed for the job can run it within 1,024 nodes"),
        (
            ["budget_usd"],
            "budget_usd: no configuration within 1,024 nodes meets it, even with all other requirements relaxed",
        ),
        (["a", "b", "c"], "a, b and c: no configuration within 1,024 nodes meets all"),
        (["deadline", "constraints.max_nodes"], "deadline and constraints.max_nodes: no configuration meets both"),
    ],
)
def test_a_conflict_is_said_as_a_sentence(conflict: list[str], sentence: str) -> None:
    answer = copy.deepcopy(INFEASIBLE)
    answer["infeasible"]["conflicts"] = [conflict]
    assert sentence in shown(answer)


def test_a_plan_says_what_it_costs_at_most_and_when_exports_stop_it() -> None:
    limited = copy.deepcopy(PLAN)
    limited["plan"]["run_limit"] = {"cost_usd": "2700.00"}
    limited["plan"]["phases"][0]["run_limit"] = {"hours": 36, "cost_usd": "2700.00"}
    text = " ".join(shown(limited).split())
    assert "at most $2,700.00 if the run never finishes: exported files stop" in text
    assert "after 36 h" in text
    assert "at most $2,700.00" not in shown(PLAN)
