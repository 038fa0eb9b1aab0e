"""Runs reported at either door: shown against the plan, learned from, forgotten, and refused where they cannot be."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from gpuplan.api.cli.main import main
from gpuplan.api.http.http_service import create_service
from gpuplan.api.schemas.settings_file import Environment
from gpuplan.api.services.composition import Services, open_services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.store.snapshot_list import NotStored
from gpuplan.planner.model.wire import wire

JOB = {
    "name": "llama-3-8b-lora",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "training": {"method": "lora", "precision": "bf16"},
    "start": "2026-11-21T12:00Z",
    "constraints": {"providers": ["aws"], "price_kinds": ["on_demand"], "accelerators": ["L4"], "max_nodes": 1},
}
ON = {"job": JOB, "on": {"accelerator": "L4", "gpus": 4}}


@pytest.fixture(scope="module")
def url(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{shutil.copy(embedded_store, tmp_path_factory.mktemp('actuals'))}"


@pytest.fixture(scope="module")
def shared_gpuplan(url: str) -> Services:
    return open_services(Environment(database_url=url))


@pytest.fixture
def gpuplan(shared_gpuplan: Services) -> Iterator[Services]:
    """A store of these tests' own, without any report before and after each."""
    shared_gpuplan.actuals.forget()
    yield shared_gpuplan
    shared_gpuplan.actuals.forget()


@pytest.fixture
def planned(gpuplan: Services) -> dict[str, Any]:
    plan: dict[str, Any] = wire(gpuplan.plans.plan(JOB))["plan"]
    return plan


def slower(plan: dict[str, Any], factor: float) -> dict[str, Any]:
    return {"throughput": plan["phases"][0]["throughput"]["value"] / factor}


def test_a_report_is_shown_against_the_prediction(gpuplan: Services, planned: dict[str, Any]) -> None:
    answer = gpuplan.actuals.report(planned["id"], {"hours": planned["hours"]["median"] * 1.5, "preemptions": 0})
    assert answer.figures["hours"].ratio == pytest.approx(1.5, rel=1e-6)
    assert answer.figures["hours"].inside_band is False
    assert answer.figures["preemptions"].inside_band is True
    assert (answer.task, answer.accelerator, answer.reported_by) == ("language", "L4", "")


def test_later_plans_and_estimates_learn_say_so_and_are_as_before_once_it_is_forgotten(
    gpuplan: Services, planned: dict[str, Any]
) -> None:
    estimate = wire(gpuplan.estimates.estimate(ON))
    reported = gpuplan.actuals.report(planned["id"], slower(planned, 1.4) | {"peak_memory_gib": 21})
    learned = wire(gpuplan.plans.plan(JOB))["plan"]
    factor = learned["phases"][0]["learned"]["hours_factor"]
    assert 1 < factor < 1.4
    assert learned["id"] != planned["id"]
    hours = (learned["phases"][0]["training_hours"], planned["phases"][0]["training_hours"] * factor)
    assert hours[0] == pytest.approx(hours[1])
    assert learned["phases"][0]["log_sigma"] < planned["phases"][0]["log_sigma"]
    sentence_start = (
        f"hours scaled by {factor:.2f} from 1 of your runs of language work on L4; forget them with gpuplan actuals"
    )
    assert any(sentence.startswith(sentence_start) for sentence in learned["assumptions"])
    now = wire(gpuplan.estimates.estimate(ON))
    assert now["hours"] == pytest.approx(estimate["hours"] * factor)
    assert any(sentence.startswith(sentence_start) for sentence in now["assumptions"])
    gpuplan.actuals.forget(reported.id)
    assert wire(gpuplan.plans.plan(JOB))["plan"] == planned
    assert wire(gpuplan.estimates.estimate(ON)) == estimate


def test_runs_of_a_plan_that_had_learned_do_not_count_the_learning_twice(
    gpuplan: Services, planned: dict[str, Any]
) -> None:
    for _ in range(4):
        plan = wire(gpuplan.plans.plan(JOB))["plan"]
        gpuplan.actuals.report(plan["id"], slower(planned, 1.4))
    factor_again = wire(gpuplan.plans.plan(JOB))["plan"]["phases"][0]["learned"]["hours_factor"]
    assert 1.2 < factor_again < 1.4


def test_other_work_and_other_plans_are_left_alone(gpuplan: Services, planned: dict[str, Any]) -> None:
    other = JOB | {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}, "training": {}}
    before = wire(gpuplan.plans.plan(other))["plan"]
    gpuplan.actuals.report(planned["id"], slower(planned, 2.0))
    assert wire(gpuplan.plans.plan(other))["plan"] == before


def test_an_answer_without_a_plan_rests_on_what_was_learned_too(gpuplan: Services, planned: dict[str, Any]) -> None:
    hopeless = JOB | {"deadline": "1h", "budget_usd": 1}
    before = wire(gpuplan.plans.plan(hopeless))["infeasible"]
    gpuplan.actuals.report(planned["id"], slower(planned, 2.0))
    after = wire(gpuplan.plans.plan(hopeless))["infeasible"]
    assert "learned" not in before
    assert after["learned"]["corrections"][0]["accelerator"] == "L4"
    assert after["id"] != before["id"]


def test_with_learning_off_runs_are_kept_and_nothing_is_learned(
    gpuplan: Services, planned: dict[str, Any], url: str, tmp_path: Path
) -> None:
    gpuplan.actuals.report(planned["id"], slower(planned, 2.0))
    settings = tmp_path / "settings.yaml"
    settings.write_text("learning: off\n")
    off = open_services(Environment(database_url=url, settings=settings))
    plan = wire(off.plans.plan(JOB))["plan"]
    assert plan["phases"] == planned["phases"]
    assert plan["settings"]["learning"] == "off"
    assert (off.actuals.listed().learning, off.actuals.listed().learned) == ("off", ())
    assert len(off.actuals.listed().actuals) == 1


def test_an_estimate_on_a_machine_without_a_store_makes_none(tmp_path: Path) -> None:
    fresh = open_services(Environment(database_url=f"sqlite:///{tmp_path / 'none.sqlite3'}"))
    assert wire(fresh.estimates.estimate(ON))["hours"] > 0
    assert not list(tmp_path.iterdir())


def test_the_same_report_twice_is_one_and_another_is_another(gpuplan: Services, planned: dict[str, Any]) -> None:
    first = gpuplan.actuals.report(planned["id"], {"hours": 9})
    assert gpuplan.actuals.report(planned["id"], {"hours": "9h"}) == first
    gpuplan.actuals.report(planned["id"], {"hours": 9.5})
    assert len(gpuplan.actuals.listed(planned["id"]).actuals) == 2


@pytest.mark.parametrize(
    ("report", "field", "why"),
    [
        ({}, "hours", "nothing was measured"),
        ({"hours": -3}, "hours", "negative"),
        ({"hours": 80_000}, "hours", "confirm: true"),
        ({"hours": 1e-4}, "hours", "confirm: true"),
        ({"peak_memory_gib": 0.01}, "peak_memory_gib", "confirm: true"),
        ({"peak_memory_gib": 80}, "peak_memory_gib", "more than one L4 has"),
        ({"preemptions": 101}, "preemptions", "confirm: true"),
        ({"preemptions": 1.5}, "preemptions", "whole number"),
        ({"throughput": "9 samples/s"}, "throughput", "give the throughput in tokens/s"),
        ({"throughput": {"value": 9}}, "throughput", "units per second"),
        ({"hours": 5, "throughput": 10}, "throughput", "but the share done is"),
        ({"hours": 5, "share_done": 1.01}, "share_done", "more work than the job has"),
        ({"hours": 5, "share_done": "140%"}, "share_done", "more work than the job has"),
        ({"hours": 5, "running": True}, "share_done", "is missing"),
        ({"throughput": 5, "running": True}, "share_done", "is missing"),
        ({"hours": 5, "running": True, "share_done": 1}, "share_done", "still runs"),
        ({"hours": 5, "plan": "plan-0"}, "plan", "is not the plan"),
        ({"hours": 5, "accelerator": "H100-80GB-SXM"}, "accelerator", "the plan is for L4"),
        ({"hour": 5}, "hour", "did you mean hours"),
    ],
)
def test_what_cannot_be_a_run_of_this_plan_is_refused_by_field_and_not_stored(
    gpuplan: Services, planned: dict[str, Any], report: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(UnusableInput, match=why) as refused:
        gpuplan.actuals.report(planned["id"], report)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert gpuplan.actuals.listed().actuals == ()


def test_an_absurd_figure_is_taken_when_it_is_confirmed_and_moves_estimates_within_bounds(
    gpuplan: Services, planned: dict[str, Any]
) -> None:
    gpuplan.actuals.report(planned["id"], {"hours": 80_000, "confirm": True})
    assert wire(gpuplan.plans.plan(JOB))["plan"]["phases"][0]["learned"]["hours_factor"] < 10


def test_a_job_without_a_plan_cannot_have_run(gpuplan: Services) -> None:
    nothing = wire(gpuplan.plans.plan(JOB | {"deadline": "1h", "budget_usd": 1}))["infeasible"]
    with pytest.raises(UnusableInput, match="nothing of it can have run"):
        gpuplan.actuals.report(nothing["id"], {"hours": 1})
    with pytest.raises(NotStored):
        gpuplan.actuals.listed("plan-unknown")


@pytest.fixture
def asked(
    gpuplan: Services, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]
) -> Iterator[httpx.Client]:
    with served(create_service(gpuplan)) as client:
        yield client


def test_over_http_a_key_makes_a_report_safe_to_send_again(asked: httpx.Client, planned: dict[str, Any]) -> None:
    path, key = f"/v1/plans/{planned['id']}/actuals", {"Idempotency-Key": "once"}
    first = asked.post(path, json={"hours": 9}, headers=key)
    assert first.status_code == 200, first.text
    assert asked.post(path, json={"hours": 9}, headers=key).json() == first.json()
    assert asked.post(path, json={"hours": 10}, headers=key).status_code == 422
    [actual] = asked.get(path).json()["actuals"]
    assert actual["id"] == first.json()["id"]
    assert asked.get("/v1/actuals").json()["actuals"] == [actual]


def test_over_http_faults_have_pointers_and_unknown_ids_are_not_found(
    asked: httpx.Client, planned: dict[str, Any]
) -> None:
    refused = asked.post(f"/v1/plans/{planned['id']}/actuals", json={"hours": 5, "throughput": "9 samples/s"})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/throughput"]
    for path in ("/v1/plans/plan-0/actuals", "/v1/plans/a%00b/actuals"):
        assert asked.post(path, json={"hours": 5}).status_code == 404
        assert asked.get(path).status_code == 404
    assert asked.delete("/v1/actuals/run-0").status_code == 404


def test_the_example_of_a_running_job_works_on_any_plan(asked: httpx.Client, planned: dict[str, Any]) -> None:
    operation = asked.get("/openapi.json").json()["paths"]["/v1/plans/{plan_id}/actuals"]["post"]
    examples = operation["requestBody"]["content"]["application/json"]["examples"].values()
    [example] = [example["value"] for example in examples if "running" in example["value"]]
    answer = asked.post(f"/v1/plans/{planned['id']}/actuals", json=example)
    assert answer.status_code == 200, answer.text


def test_over_http_a_report_can_be_forgotten(asked: httpx.Client, planned: dict[str, Any]) -> None:
    actual = asked.post(f"/v1/plans/{planned['id']}/actuals", json={"hours": 9}).json()
    assert asked.delete(f"/v1/actuals/{actual['id']}").json() == {"forgotten": 1}
    assert asked.get("/v1/actuals").json()["actuals"] == []


@pytest.fixture
def run_own(
    gpuplan: Services, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", url)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["actuals", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return command


def test_the_command_reports_lists_and_forgets(
    run_own: Callable[..., tuple[int, str, str]], planned: dict[str, Any]
) -> None:
    assert "No run has been reported" in run_own("--list")[1]
    given = ("--hours", "9h", "--peak-memory-gib", "20 GiB", "--preemptions", "0")
    code, out, err = run_own(planned["id"], *given)
    assert (code, err) == (0, "")
    assert "80 % band" in out
    code, out, _ = run_own(planned["id"], "--running", "--share-done", "40%", "--hours", "4", "--json")
    assert json.loads(out)["share_done"] == 0.4
    listed = run_own("--list")[1]
    assert "Corrections that estimates use, from all your runs" in listed
    assert "language on L4: peak memory x" in listed
    assert len(json.loads(run_own(planned["id"], "--json")[1])["actuals"]) == 2
    assert run_own("--forget", json.loads(out)["id"])[1] == "1 report forgotten\n"
    assert json.loads(run_own("--forget", "all", "--json")[1]) == {"forgotten": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "PLAN_ID: is missing"),
        (("--list", "--forget", "all"), "give one of"),
        (("--list", "--hours", "3"), "hours: belongs to the report on a plan"),
        (("plan-0", "--hours", "3"), "no plan 'plan-0' is stored here"),
        (("--forget", "run-0"), "no report 'run-0' is stored here"),
    ],
)
def test_the_command_refuses_in_one_line(
    run_own: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run_own(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
