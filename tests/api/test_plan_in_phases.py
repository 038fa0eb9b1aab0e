"""A plan in phases at the door: its document, and what cannot be reported on it."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from api.app import Gpuplan
from api.settings import Environment
from catalog.errors import UnusableInput

JOB = {
    "name": "llama-tight",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "30B"},
    "training": {"precision": "bf16"},
    "start": "2026-11-21T08:00Z",
    "deadline": "3d",
    "constraints": {"max_nodes": 4, "providers": ["aws"], "price_kinds": ["on_demand", "spot"]},
    "data": {"location": "aws:us-east-1", "dataset_gb": 200},
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Gpuplan:
    path: Path = tmp_path_factory.mktemp("phases") / "gpuplan.sqlite3"
    return Gpuplan(Environment(database_url=f"sqlite:///{path}"))


@pytest.fixture(scope="module")
def plan(opened: Gpuplan) -> dict[str, Any]:
    answer: dict[str, Any] = opened.plan(JOB)["plan"]
    return answer


def test_phases_follow_each_other_and_their_shares_costs_and_hours_add_up(plan: dict[str, Any]) -> None:
    phases = plan["phases"]
    assert len(phases) > 1
    assert {each["role"] for each in phases} == {"planned"}
    assert sum(each["share"] for each in phases) == pytest.approx(1.0)
    assert sum(each["hours"] for each in phases) == pytest.approx(plan["hours"]["expected"], rel=1e-8)
    micros = [round(float(each["cost_usd"]["expected"]) * 1e6) for each in phases]
    assert sum(micros) == round(float(plan["cost_usd"]["expected"]) * 1e6)
    for before, after in pairwise(phases):
        starts = [datetime.fromisoformat(each["starts_at"]).astimezone(UTC) for each in (before, after)]
        assert (starts[1] - starts[0]).total_seconds() / 3600 == pytest.approx(before["hours"], abs=1e-3)
        assert after["moved"]["from"]["instance_type"] == before["instance_type"]


def test_the_best_without_a_move_stands_first_among_the_alternatives(plan: dict[str, Any]) -> None:
    alternative = plan["alternatives"][0]
    assert alternative["label"] == "without a move"
    assert float(alternative["extra_usd"]) > 0


def test_the_same_job_in_one_phase_costs_what_that_alternative_says(opened: Gpuplan, plan: dict[str, Any]) -> None:
    alone = {**JOB, "constraints": {**JOB["constraints"], "max_phases": 1}}  # type: ignore[dict-item]
    found = opened.plan(alone)["plan"]
    if len(found["phases"]) == 1:
        assert found["cost_usd"]["expected"] == plan["alternatives"][0]["cost_usd"]
    assert float(found["cost_usd"]["expected"]) >= float(plan["cost_usd"]["expected"])


@pytest.mark.parametrize("phases", [0, 4, "two"])
def test_a_number_of_phases_that_cannot_be_is_refused_at_its_field(opened: Gpuplan, phases: object) -> None:
    asked = {**JOB, "constraints": {**JOB["constraints"], "max_phases": phases}}  # type: ignore[dict-item]
    with pytest.raises(UnusableInput, match=r"constraints\.max_phases"):
        opened.plan(asked)


def test_a_report_of_one_run_is_refused_on_a_plan_of_several_phases(opened: Gpuplan, plan: dict[str, Any]) -> None:
    with pytest.raises(UnusableInput, match="runs on 2 configurations"):
        opened.report_actuals(plan["id"], {"hours": 60})
