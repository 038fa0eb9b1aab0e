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

from api.app import Gpuplan
from api.cli.main import main
from api.http.service import create_service
from api.settings import Environment
from catalog.errors import UnusableInput
from catalog.snapshot_list import NotStored

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
def opened(url: str) -> Gpuplan:
    return Gpuplan(Environment(database_url=url))


@pytest.fixture
def own(opened: Gpuplan) -> Iterator[Gpuplan]:
    """A store of these tests' own, without any report before and after each."""
    opened.forget_actuals()
    yield opened
    opened.forget_actuals()


@pytest.fixture
def planned(own: Gpuplan) -> dict[str, Any]:
    plan: dict[str, Any] = own.plan(JOB)["plan"]
    return plan


def slower(plan: dict[str, Any], factor: float) -> dict[str, Any]:
    return {"throughput": plan["phases"][0]["throughput"]["value"] / factor}


def test_a_report_is_shown_against_the_prediction(own: Gpuplan, planned: dict[str, Any]) -> None:
    answer = own.report_actuals(planned["id"], {"hours": planned["hours"]["median"] * 1.5, "preemptions": 0})
    assert answer["figures"]["hours"]["ratio"] == pytest.approx(1.5, rel=1e-6)
    assert answer["figures"]["hours"]["inside_band"] is False
    assert answer["figures"]["preemptions"]["inside_band"] is True
    assert (answer["task"], answer["accelerator"], answer["reported_by"]) == ("language", "L4", "")


def test_later_plans_and_estimates_learn_say_so_and_are_as_before_once_it_is_forgotten(
    own: Gpuplan, planned: dict[str, Any]
) -> None:
    estimate = own.estimate(ON)
    reported = own.report_actuals(planned["id"], slower(planned, 1.4) | {"peak_memory_gib": 21})
    learned = own.plan(JOB)["plan"]
    factor = learned["phases"][0]["learned"]["hours_factor"]
    assert 1 < factor < 1.4
    assert learned["id"] != planned["id"]
    hours = (learned["phases"][0]["training_hours"], planned["phases"][0]["training_hours"] * factor)
    assert hours[0] == pytest.approx(hours[1])
    assert learned["phases"][0]["log_sigma"] < planned["phases"][0]["log_sigma"]
    said = f"hours scaled by {factor:.2f} from 1 of your runs of language work on L4; forget them with gpuplan actuals"
    assert any(sentence.startswith(said) for sentence in learned["assumptions"])
    now = own.estimate(ON)
    assert now["hours"] == pytest.approx(estimate["hours"] * factor)
    assert any(sentence.startswith(said) for sentence in now["assumptions"])
    own.forget_actuals(reported["id"])
    assert own.plan(JOB)["plan"] == planned
    assert own.estimate(ON) == estimate


def test_runs_of_a_plan_that_had_learned_do_not_count_the_learning_twice(own: Gpuplan, planned: dict[str, Any]) -> None:
    for _ in range(4):
        plan = own.plan(JOB)["plan"]
        own.report_actuals(plan["id"], slower(planned, 1.4))
    found = own.plan(JOB)["plan"]["phases"][0]["learned"]["hours_factor"]
    assert 1.2 < found < 1.4


def test_other_work_and_other_plans_are_left_alone(own: Gpuplan, planned: dict[str, Any]) -> None:
    other = JOB | {"workload": {"kind": "preset", "model": "resnet-50", "samples": "10M"}, "training": {}}
    before = own.plan(other)["plan"]
    own.report_actuals(planned["id"], slower(planned, 2.0))
    assert own.plan(other)["plan"] == before


def test_an_answer_without_a_plan_rests_on_what_was_learned_too(own: Gpuplan, planned: dict[str, Any]) -> None:
    hopeless = JOB | {"deadline": "1h", "budget_usd": 1}
    before = own.plan(hopeless)["infeasible"]
    own.report_actuals(planned["id"], slower(planned, 2.0))
    after = own.plan(hopeless)["infeasible"]
    assert "learned" not in before
    assert after["learned"]["corrections"][0]["accelerator"] == "L4"
    assert after["id"] != before["id"]


def test_with_learning_off_runs_are_kept_and_nothing_is_learned(
    own: Gpuplan, planned: dict[str, Any], url: str, tmp_path: Path
) -> None:
    own.report_actuals(planned["id"], slower(planned, 2.0))
    settings = tmp_path / "settings.yaml"
    settings.write_text("learning: off\n")
    off = Gpuplan(Environment(database_url=url, settings=settings))
    plan = off.plan(JOB)["plan"]
    assert plan["phases"] == planned["phases"]
    assert plan["settings"]["learning"] == "off"
    assert (off.actuals()["learning"], off.actuals()["learned"]) == ("off", [])
    assert len(off.actuals()["actuals"]) == 1


def test_an_estimate_on_a_machine_without_a_store_makes_none(tmp_path: Path) -> None:
    fresh = Gpuplan(Environment(database_url=f"sqlite:///{tmp_path / 'none.sqlite3'}"))
    assert fresh.estimate(ON)["hours"] > 0
    assert not list(tmp_path.iterdir())


def test_the_same_report_twice_is_one_and_another_is_another(own: Gpuplan, planned: dict[str, Any]) -> None:
    first = own.report_actuals(planned["id"], {"hours": 9})
    assert own.report_actuals(planned["id"], {"hours": "9h"}) == first
    own.report_actuals(planned["id"], {"hours": 9.5})
    assert len(own.actuals(planned["id"])["actuals"]) == 2


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
        ({"hours": 5, "throughput": 10}, "throughput", "are said to be done"),
        ({"hours": 5, "share_done": 1.01}, "share_done", "more work than the job has"),
        ({"hours": 5, "share_done": "140%"}, "share_done", "more work than the job has"),
        ({"hours": 5, "running": True}, "share_done", "is missing"),
        ({"throughput": 5, "running": True}, "share_done", "is missing"),
        ({"hours": 5, "running": True, "share_done": 1}, "share_done", "not running"),
        ({"hours": 5, "plan": "plan-0"}, "plan", "another plan"),
        ({"hours": 5, "accelerator": "H100-80GB-SXM"}, "accelerator", "the plan is for L4"),
        ({"hour": 5}, "hour", "did you mean hours"),
    ],
)
def test_what_cannot_be_a_run_of_this_plan_is_refused_by_field_and_not_stored(
    own: Gpuplan, planned: dict[str, Any], report: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(UnusableInput, match=why) as refused:
        own.report_actuals(planned["id"], report)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert own.actuals()["actuals"] == []


def test_an_absurd_figure_is_taken_when_it_is_confirmed_and_moves_estimates_within_bounds(
    own: Gpuplan, planned: dict[str, Any]
) -> None:
    own.report_actuals(planned["id"], {"hours": 80_000, "confirm": True})
    assert own.plan(JOB)["plan"]["phases"][0]["learned"]["hours_factor"] < 10


def test_a_job_without_a_plan_cannot_have_run(own: Gpuplan) -> None:
    nothing = own.plan(JOB | {"deadline": "1h", "budget_usd": 1})["infeasible"]
    with pytest.raises(UnusableInput, match="nothing of it can have run"):
        own.report_actuals(nothing["id"], {"hours": 1})
    with pytest.raises(NotStored):
        own.actuals("plan-unknown")


@pytest.fixture
def asked(own: Gpuplan, served: Callable[[ASGIApp], AbstractContextManager[httpx.Client]]) -> Iterator[httpx.Client]:
    with served(create_service(own)) as client:
        yield client


def test_over_http_a_key_makes_a_report_safe_to_send_again(asked: httpx.Client, planned: dict[str, Any]) -> None:
    path, key = f"/v1/plans/{planned['id']}/actuals", {"Idempotency-Key": "once"}
    first = asked.post(path, json={"hours": 9}, headers=key)
    assert first.status_code == 200, first.text
    assert asked.post(path, json={"hours": 9}, headers=key).json() == first.json()
    assert asked.post(path, json={"hours": 10}, headers=key).status_code == 422
    [kept] = asked.get(path).json()["actuals"]
    assert kept["id"] == first.json()["id"]
    assert asked.get("/v1/actuals").json()["actuals"] == [kept]


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
    example = operation["requestBody"]["content"]["application/json"]["examples"]["running"]["value"]
    answer = asked.post(f"/v1/plans/{planned['id']}/actuals", json=example)
    assert answer.status_code == 200, answer.text


def test_over_http_a_report_can_be_forgotten(asked: httpx.Client, planned: dict[str, Any]) -> None:
    kept = asked.post(f"/v1/plans/{planned['id']}/actuals", json={"hours": 9}).json()
    assert asked.delete(f"/v1/actuals/{kept['id']}").json() == {"forgotten": 1}
    assert asked.get("/v1/actuals").json()["actuals"] == []


@pytest.fixture
def run_own(
    own: Gpuplan, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert "What estimates take from all your runs" in listed
    assert "language on L4: peak memory x" in listed
    assert len(json.loads(run_own(planned["id"], "--json")[1])["actuals"]) == 2
    assert run_own("--forget", json.loads(out)["id"])[1] == "1 report forgotten\n"
    assert json.loads(run_own("--forget", "all", "--json")[1]) == {"forgotten": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "PLAN_ID: is missing"),
        (("--list", "--forget", "all"), "give one of"),
        (("--list", "--hours", "3"), "hours: belongs to the report on a plan"),
        (("plan-0", "--hours", "3"), "no plan 'plan-0' is stored here"),
        (("--forget", "run-0"), "no report 'run-0' is stored here"),
    ],
)
def test_the_command_refuses_in_one_line(
    run_own: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run_own(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
