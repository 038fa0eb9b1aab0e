"""`gpuplan why`, and the same question to the object behind every door."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended

pytestmark = pytest.mark.slow(reason="explains many plans")

Run = Callable[..., Ended]
Write = Callable[..., Path]


def test_why_not_an_accelerator_tells_what_it_costs_more_and_where_it_would_win(
    run: Run, job_file: Write, job: dict[str, Any]
) -> None:
    ended = run("why", job_file(job), "--not", "A100", "--json")
    assert (ended.code, ended.err) == (0, "")
    answer = json.loads(ended.out)
    assert answer["outcome"] == "explained"
    why = answer["why"]
    about = why["about"]
    assert about["named"]["field"] == "accelerator"
    assert all(name.startswith("A100") for name in about["named"]["names"])
    assert about["verdict"] == "worse"
    extra = about["best"]["extra"]
    assert float(extra["usd"]) == pytest.approx(sum(float(part) for part in extra["breakdown"].values()), abs=1e-6)
    assert float(extra["usd"]) > 0
    assert 0 < float(about["wins_at"]["usd_per_node_hour"]) < float(about["wins_at"]["now_usd_per_node_hour"])
    assert "milliseconds" in answer["meta"]


def test_the_command_says_it_in_words(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("why", job_file(job), "--not", "A100")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    for phrase in ("The best plan on A100", "Break-even price", "What binds", "knee", "extra cost"):
        assert phrase in text


def test_without_a_name_the_plan_alone_is_explained(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    ended = run("why", job_file(job), "--json")
    why = json.loads(ended.out)["why"]
    assert why["about"] is None
    assert why["without_chosen"]["outcome"] in {"planned", "infeasible"}
    assert {requirement["requirement"] for requirement in why["requirements"]} >= {"deadline", "constraints.max_nodes"}
    knee = why["frontier"]["points"][why["frontier"]["knee"]]
    assert knee["factor"] == min(point["factor"] for point in why["frontier"]["points"] if point["within"])
    assert why["frontier"]["unknown_carbon"]


def test_a_job_without_a_plan_is_explained_too(run: Run, job_file: Write, hopeless: dict[str, Any]) -> None:
    ended = run("why", job_file(hopeless), "--not", "H100")
    assert ended.code == 4
    assert "no plan" in ended.out
    shown = json.loads(run("why", job_file(hopeless), "--not", "H100", "--json").out)
    assert shown["outcome"] == "infeasible"
    assert shown["why"]["plan"] is None
    assert shown["why"]["infeasible"]["conflicts"]
    short = [relaxation["short_by"] for relaxation in shown["why"]["infeasible"]["relaxations"]]
    assert any("deadline" in requirement or "budget_usd" in requirement for requirement in short)


def test_how_much_something_misses_a_requirement_by_is_told(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    slow = job | {"constraints": {"max_nodes": 1}, "deadline": "3h"}
    why = json.loads(run("why", job_file(slow), "--not", "L4", "--json").out)["why"]
    assert why["about"]["verdict"] == "infeasible"
    relaxations = why["about"]["best"]["ruled_out"]["relaxations"]
    deadline = next(relaxation for relaxation in relaxations if relaxation["requirement"] == "deadline")
    assert deadline["short_by"]["deadline"]["unit"] == "hours"
    assert deadline["short_by"]["deadline"]["value"] == pytest.approx(deadline["plan"]["hours_confident"] - 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--not", "H10"), "not: 'H10' is not in the snapshot; nearest:"),
        (("--not", ""), "not: '' is not accepted; write an accelerator"),
        (("--with", "p5.48xlrge"), "p5.48xlarge"),
        (("--with", "aws", "--not", "gcp"), "with: is given beside not; ask about one of the two at a time"),
        (("--not", "x" * 200), "not: "),
    ],
)
def test_a_name_that_cannot_be_used_is_one_clear_line(
    run: Run, job_file: Write, job: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    ended = run("why", job_file(job), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_faults_of_the_job_are_told_under_job(gpuplan: Services, job: dict[str, Any]) -> None:
    with pytest.raises(UnusableInput) as caught:
        gpuplan.explanations.why({"job": job | {"deadline": "-1h", "objective": "beauty"}, "not": 7, "wiht": "H100"})
    paths = {fault.path for fault in caught.value.faults}
    assert {("job", "deadline"), ("job", "objective"), ("not",), ("wiht",)} <= paths


def test_other_names_of_providers_are_known(gpuplan: Services, job: dict[str, Any]) -> None:
    why = wire(gpuplan.explanations.why({"job": job, "not": "Amazon"}))["why"]
    assert why["about"]["named"]["names"] == ["aws"]


@pytest.mark.parametrize("objective", ["carbon", "time"])
def test_another_objective_is_proven_and_shown_in_its_own_unit(
    run: Run, job_file: Write, job: dict[str, Any], objective: str
) -> None:
    aimed = job_file(job | {"objective": objective})
    plan = json.loads(run("plan", aimed, "--json").out)["plan"]
    proof = plan["certificate"]
    assert proof["objective"]["of"] == objective
    assert proof["objective"]["value"] == proof["objective"]["bound"]
    assert proof["gap"] == 0
    shown = run("plan", aimed).out
    assert {"carbon": "Least carbon for", "time": "Fastest for"}[objective] in shown
    assert run("why", aimed).code == 0
    cheapest = json.loads(run("plan", job_file(job), "--json").out)["plan"]
    assert float(plan["cost_usd"]["expected"]) >= float(cheapest["cost_usd"]["expected"])


@pytest.mark.slow(reason="one long case")
def test_a_carbon_budget_is_kept_and_echoed(run: Run, job_file: Write, job: dict[str, Any]) -> None:
    capped = job | {"constraints": {"max_nodes": 8, "carbon_budget_kg": "1 kg"}}
    plan = json.loads(run("plan", job_file(capped), "--json").out)["plan"]
    assert plan["carbon_kg"] <= 1
    assert plan["job"]["constraints"]["carbon_budget_kg"] == 1
    assert any("carbon" in reason for reason in plan["certificate"]["rejected"])
    none = json.loads(run("plan", job_file(job | {"constraints": {"carbon_budget_kg": "1 g"}}), "--json").out)
    assert none["outcome"] == "infeasible"
    assert ["constraints.carbon_budget_kg"] in none["infeasible"]["conflicts"]
