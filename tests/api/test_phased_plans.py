"""A plan in phases: its document, and what cannot be reported on it."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire

JOB = {
    "name": "llama-tight",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "30B"},
    "training": {"precision": "bf16"},
    "start": "2026-11-21T08:00Z",
    "deadline": "2d",
    "constraints": {"max_nodes": 2, "providers": ["aws"], "price_kinds": ["on_demand"]},
    "data": {"location": "aws:us-east-1", "dataset_gb": 200},
}


@pytest.fixture(scope="module")
def gpuplan(tmp_path_factory: pytest.TempPathFactory) -> Services:
    folder: Path = tmp_path_factory.mktemp("phases")
    settings = folder / "settings.yaml"
    settings.write_text("least_saving_of_a_move_percent: 0\nspot_wait_hours: 0\nnode_loss_exponent: 1\n")
    return open_services(Environment(database_url=f"sqlite:///{folder / 'gpuplan.sqlite3'}", settings=settings))


@pytest.fixture(scope="module")
def plan(gpuplan: Services) -> dict[str, Any]:
    answer: dict[str, Any] = wire(gpuplan.plans.plan(JOB))["plan"]
    return answer


def test_phases_follow_each_other_and_their_shares_costs_and_hours_add_up(plan: dict[str, Any]) -> None:
    phases = plan["phases"]
    assert len(phases) > 1
    assert {phase["role"] for phase in phases} == {"planned"}
    assert sum(phase["share"] for phase in phases) == pytest.approx(1.0)
    assert sum(phase["hours"] for phase in phases) == pytest.approx(plan["hours"]["expected"], rel=1e-8)
    micros = [round(float(phase["cost_usd"]["expected"]) * 1e6) for phase in phases]
    assert sum(micros) == round(float(plan["cost_usd"]["expected"]) * 1e6)
    for before, after in pairwise(phases):
        starts = [datetime.fromisoformat(phase["starts_at"]).astimezone(UTC) for phase in (before, after)]
        assert (starts[1] - starts[0]).total_seconds() / 3600 == pytest.approx(before["hours"], abs=1e-3)
        assert after["moved"]["from"]["instance_type"] == before["instance_type"]


def test_the_best_without_a_move_stands_first_among_the_alternatives(plan: dict[str, Any]) -> None:
    alternative = plan["alternatives"][0]
    assert alternative["label"] == "without a move"
    assert float(alternative["extra_usd"]) > 0


def test_the_same_job_in_one_phase_costs_what_that_alternative_says_if_obtained(
    gpuplan: Services, plan: dict[str, Any]
) -> None:
    alone = {**JOB, "constraints": {**JOB["constraints"], "max_phases": 1}}  # type: ignore[dict-item]
    single = wire(gpuplan.plans.plan(alone))["plan"]
    if len(single["phases"]) == 1:
        assert single["certificate"]["objective_usd"] == plan["alternatives"][0]["cost_usd"]
    assert float(single["certificate"]["objective_usd"]) >= float(plan["cost_usd"]["expected"])


@pytest.mark.parametrize("phases", [0, 4, "two"])
def test_a_number_of_phases_that_cannot_be_is_refused_at_its_field(gpuplan: Services, phases: object) -> None:
    asked = {**JOB, "constraints": {**JOB["constraints"], "max_phases": phases}}  # type: ignore[dict-item]
    with pytest.raises(UnusableInput, match=r"constraints\.max_phases"):
        gpuplan.plans.plan(asked)


def test_a_report_of_one_run_is_refused_on_a_plan_of_several_phases(gpuplan: Services, plan: dict[str, Any]) -> None:
    with pytest.raises(UnusableInput, match="runs on 2 configurations"):
        gpuplan.actuals.report(plan["id"], {"hours": 60})
