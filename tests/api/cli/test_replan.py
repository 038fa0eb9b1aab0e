"""`gpuplan replan`, and the same question to the object behind every door."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.services.composition import Services
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.wire import wire
from tests.api.conftest import Ended

pytestmark = pytest.mark.slow(reason="plans many jobs again")

Run = Callable[..., Ended]
Write = Callable[..., Path]

START = "2026-11-21T12:00Z"


@pytest.fixture
def job() -> dict[str, Any]:
    """A job of some twenty hours on rented machines that nobody takes away."""
    return {
        "name": "llama-3-8b-lora",
        "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "2B", "sequence_length": 4096},
        "training": {"method": "lora", "precision": "bf16"},
        "start": START,
        "deadline": "36h",
        "budget_usd": 20000,
        "constraints": {"max_nodes": 8, "max_phases": 1, "price_kinds": ["on_demand"]},
    }


@pytest.fixture
def planned(gpuplan: Services, job: dict[str, Any]) -> dict[str, Any]:
    plan: dict[str, Any] = wire(gpuplan.plans.plan(job))["plan"]
    return plan


def on(phase: dict[str, Any]) -> list[str]:
    names = {"--on": "instance_type", "--nodes": "nodes", "--region": "region", "--kind": "price_kind"}
    names |= {"--zone": "zone"} if phase["zone"] else {}
    return [text for option, name in names.items() for text in (option, str(phase[name]))]


def asked(run: Run, *arguments: str | Path) -> dict[str, Any]:
    ended = run("replan", *arguments, "--json")
    assert ended.err == ""
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


def test_a_run_on_time_is_told_to_go_on_and_for_how_long_that_holds(
    run: Run, job_file: Write, job: dict[str, Any], planned: dict[str, Any]
) -> None:
    phase = planned["phases"][0]
    elapsed_hours = 0.25 + 0.5 * (planned["hours"]["confident"] - 0.25)
    now = f"2026-11-{21 + int((12 + elapsed_hours) // 24)}T{int((12 + elapsed_hours) % 24):02d}:{int(elapsed_hours % 1 * 60):02d}Z"
    answer = asked(run, job_file(job), *on(phase), "--done", "50%", "--spent", "100", "--now", now)
    answered = answer["replan"]
    assert (answer["outcome"], answered["action"]) == ("replanned", "continue")
    assert answered["summary"][0].startswith("continue as it is on ")
    assert answered["continue"]["possible"]
    assert answered["continue"]["cost_usd"] == answered["best"]["cost_usd"]["expected"]
    assert float(answered["difference"]["usd"]) == 0
    assert float(answered["best"]["cost_usd"]["breakdown"]["setup"]) == 0
    assert float(answered["holds"]["usd_per_node_hour"]) > float(phase["usd_per_node_hour"])
    assert answered["holds"]["times_slower"] > 1
    assert answered["left"]["budget_usd"] == "19900.00"
    assert answered["running"]["spent_usd"] == "100.00"
    assert answered["left"]["share"] == 0.5


def test_a_plan_by_its_id_gives_the_same_answer_as_its_job_and_machines(
    run: Run, job_file: Write, job: dict[str, Any], planned: dict[str, Any]
) -> None:
    when = ("--done", "0.3", "--spent", "50", "--now", "2026-11-21T20:00Z")
    by_plan = asked(run, "--plan", planned["id"], *when)
    by_hand = asked(run, job_file(job), *on(planned["phases"][0]), *when)
    left_out = {"id", "assumptions"}
    assert {k: v for k, v in by_plan["replan"].items() if k not in left_out} == {
        k: v for k, v in by_hand["replan"].items() if k not in left_out
    }


def test_a_run_slower_than_planned_is_told_to_change_and_why(run: Run, planned: dict[str, Any]) -> None:
    rate = planned["phases"][0]["throughput"]
    slow = f"{rate['value'] / 2:.6g} {rate['unit']}"
    when = ("--plan", planned["id"], "--done", "0.3", "--now", "2026-11-22T10:00Z")
    answered = asked(run, *when, "--rate", slow)["replan"]
    assert answered["running"]["measured"]["factor"] == pytest.approx(2, rel=1e-4)
    assert answered["continue"]["breaks"] == ["deadline"]
    assert answered["action"] != "continue"
    assert any("longer than estimated" in sentence for sentence in answered["summary"])
    assert any(
        "continuing as it is does not meet the requirements: in time with" in sentence
        for sentence in answered["summary"]
    )
    assert answered["continue"]["throughput"]["value"] == pytest.approx(rate["value"] / 2, rel=1e-4)
    same = asked(run, *when, "--rate", f"{rate['value']:.9g}")["replan"]
    assert same["running"]["measured"]["factor"] == pytest.approx(1, rel=1e-6)
    assert float(same["continue"]["cost_usd"]) < float(answered["continue"]["cost_usd"])


def test_work_may_be_told_in_units_and_steps(run: Run, planned: dict[str, Any]) -> None:
    when = ("--plan", planned["id"], "--now", "2026-11-21T20:00Z", "--done")
    shares = [
        asked(run, *when, text)["replan"]["running"]["done"] for text in ("0.3", "30%", "600M tokens", "0.6B token")
    ]
    assert shares == [0.3] * 4


def test_machines_that_are_gone_start_from_what_was_saved(run: Run, planned: dict[str, Any]) -> None:
    when = ("--plan", planned["id"], "--done", "0.3", "--now", "2026-11-21T20:00Z", "--up", "false")
    lost, saved = (asked(run, *when, *options)["replan"] for options in (("--saved", "0.25"), ()))
    assert lost["continue"] is None
    assert (lost["running"]["up"], lost["running"]["kept"], lost["left"]["share"]) == (False, 0.25, 0.75)
    assert float(lost["best"]["cost_usd"]["expected"]) > float(saved["best"]["cost_usd"]["expected"])
    assert lost["best"]["phases"][0]["moved"]["checkpoint_gb"] > 0
    assert any("was done but not saved" in assumption for assumption in lost["assumptions"])
    assert any("counts as saved" in assumption for assumption in saved["assumptions"])


def test_nothing_done_and_nothing_running_is_the_plan(
    run: Run, job_file: Write, job: dict[str, Any], planned: dict[str, Any]
) -> None:
    answered = asked(run, job_file(job), "--now", START)["replan"]
    assert answered["action"] == "start"
    assert answered["best"]["phases"] == planned["phases"]
    assert answered["best"]["cost_usd"] == planned["cost_usd"]


def test_what_is_impossible_from_now_says_what_would_have_to_give_in_all(run: Run, planned: dict[str, Any]) -> None:
    ended = run("replan", "--plan", planned["id"], "--done", "0.3", "--spent", "19999", "--now", "2026-11-21T20:00Z")
    assert ended.code == 4
    assert "budget_usd" in ended.out
    assert "in all" in ended.out
    answer = asked(run, "--plan", planned["id"], "--done", "0.3", "--spent", "19999", "--now", "2026-11-21T20:00Z")
    answered = answer["replan"]
    assert answer["outcome"] == "infeasible"
    assert (answered["action"], answered["best"], answered["left"]["budget_usd"]) == ("none", None, "1.00")
    assert ["budget_usd"] in answered["infeasible"]["conflicts"]
    assert answered["continue"]["breaks"] == ["budget_usd"]


def test_the_command_says_it_in_words(run: Run, planned: dict[str, Any]) -> None:
    ended = run("replan", "--plan", planned["id"], "--done", "0.3", "--now", "2026-11-21T20:00Z")
    assert ended.code == 0
    text = " ".join(ended.out.split())
    for phrase in ("Status", "from now", "The best plan from now", "spent money is sunk", "lower bound"):
        assert phrase in text


WHEN = ("--done", "0.3", "--now", "2026-11-21T20:00Z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--on", "p5.48xlrge", "--nodes", "1", *WHEN), "on: 'p5.48xlrge' is not in the snapshot; nearest: p5.48xlarge"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--region", "us-east-9", *WHEN), "region: 'us-east-9' has no price of p5.48xlarge"),
        (("--on", "p5.48xlarge", *WHEN), "on: names no machines; give both --on INSTANCE_TYPE and --nodes N"),
        (WHEN, "on: is missing"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--region", "us-east-1", *WHEN, "--saved", "0.4"), "saved: 0.4 of the work is more"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--region", "us-east-1", *WHEN, "--spent=-1"), "spent: '-1' is negative"),
        ((*WHEN, "--done", "1.2"), "done: '1.2' is more work than the job has"),
        ((*WHEN, "--done", "3 apples"), "done: '3 apples' is not accepted"),
        (("--on", "p5.48xlarge", "--nodes", "1", *WHEN, "--done", "1"), "done: is the whole job: nothing is left"),
        (("--on", "p5.48xlarge", "--nodes", "1", *WHEN, "--done", "5 samples"), "done: 'samples' is not the unit of this job"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--done", "0.3", "--now", "2026-11-20T00:00Z"), "now: 2026-11-20T00:00Z is before the job's start"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--done", "0.3", "--now", "2026-11-30T00:00Z"), "deadline: has passed"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--region", "us-east-1", *WHEN, "--rate", "9 images/s"), "rate: 'images/s' is not a speed of this job"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--region", "us-east-1", *WHEN, "--rate", "9"), "more than 10 times off"),
        (("--on", "p5.48xlarge", "--nodes", "1", "--phase", "1", *WHEN), "phase: needs a plan"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_line(
    run: Run, job_file: Write, job: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    ended = run("replan", job_file(job), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plan", "plan-of-nobody", "--done", "0.3"), "plan: no plan 'plan-of-nobody' is stored here"),
        (("--done", "0.3"), "job: is missing; give either the job or the id of its plan"),
    ],
)
def test_a_plan_that_is_not_here_is_one_clear_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ended = run("replan", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_deadline_that_counts_from_the_start_needs_one(gpuplan: Services, job: dict[str, Any]) -> None:
    del job["start"]
    running = {"on": {"instance_type": "p5.48xlarge", "nodes": 1, "region": "us-east-1"}, "done": 0.3}
    with pytest.raises(UnusableInput) as caught:
        gpuplan.replanning.replan({"job": job, "running": running})
    assert caught.value.faults[0].path == ("since",)
    since = gpuplan.replanning.replan({"job": job, "running": running, "since": START, "now": "2026-11-21T20:00Z"})
    assert since.replan.left.deadline_hours == 28
    until = job | {"deadline": "2026-11-23T00:00Z"}
    timed = gpuplan.replanning.replan({"job": until, "running": running, "now": "2026-11-21T20:00Z"})
    assert timed.replan.left.deadline_hours == 28
