"""A saved plan on interruptible machines becomes a policy to run it by."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.main import main

JOB: dict[str, Any] = {
    "name": "llama",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "2B"},
    "deadline": "24h",
    "constraints": {"price_kinds": ["spot"], "providers": ["aws", "gcp"]},
}


def planned(folder: Path, job: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    assert main(["plan", str(path), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out)["plan"])


@pytest.fixture(autouse=True)
def nothing_stored(own_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_observed = tmp_path / "as-observed.yaml"
    as_observed.write_text("prices: as-observed\nspot_wait_hours: 0\nnode_loss_exponent: 1\n")
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(as_observed))


def test_a_plan_on_spot_gives_a_policy_and_its_own_finish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(tmp_path, JOB, capsys)
    phase = plan["phases"][0]
    assert main(["run-policy", "--plan", plan["id"], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["work_hours"] == phase["hours_with_goodput"]
    assert told["deadline_hours"] == 24.0
    cheapest = told["places"][0]["usd_per_hour"]
    assert cheapest == pytest.approx(float(phase["usd_per_node_hour"]) * phase["nodes"])
    assert cheapest < told["on_demand_usd_per_hour"]
    ends = told["as_planned"]
    # The same expectation as the plan's own, whose formula takes every segment as whole.
    assert ends["mean_hours"] == pytest.approx(plan["hours"]["expected"], rel=0.02)
    assert ends["probability_in_time"] == pytest.approx(plan["deadline_probability"], abs=0.03)
    assert main(["run-policy", "--plan", plan["id"]]) == 0
    assert "sure until" in capsys.readouterr().out


def test_a_plan_that_stays_in_one_zone_is_as_uncertain_as_its_policy_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("spot_wait_hours: 1\nprices: as-observed\n")
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(settings))
    plan = planned(tmp_path, JOB | {"confidence": 0.7}, capsys)
    assert main(["run-policy", "--plan", plan["id"], "--json"]) == 0
    ends = json.loads(capsys.readouterr().out)["as_planned"]
    assert 0.7 <= plan["deadline_probability"] < 0.999
    assert ends["probability_in_time"] == pytest.approx(plan["deadline_probability"], abs=0.03)
    # The plan puts all noise into one lognormal; its policy keeps the shape of each part.
    assert ends["p95_hours"] == pytest.approx(plan["hours"]["p95"], rel=0.1)


def test_a_plan_that_nobody_interrupts_has_nothing_to_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steady = planned(
        tmp_path, JOB | {"constraints": {"price_kinds": ["on_demand"], "providers": ["aws", "gcp"]}}, capsys
    )
    assert main(["run-policy", "--plan", steady["id"]]) == 2
    assert "plan: runs on on_demand machines, which nobody takes away" in capsys.readouterr().err
    endless = planned(tmp_path, {name: value for name, value in JOB.items() if name != "deadline"}, capsys)
    assert main(["run-policy", "--plan", endless["id"]]) == 2
    assert "plan: has no deadline" in capsys.readouterr().err
    assert main(["run-policy", "--plan", "plan-none"]) == 2


def test_a_plan_with_a_standby_gives_a_policy_between_its_two_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("spot_wait_hours: 3\nleast_saving_of_a_move_percent: 0\nprices: as-observed\n")
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(settings))
    only = {"providers": ["aws"], "accelerators": ["A100-40GB-SXM"], "max_nodes": 1}
    longer = {"workload": JOB["workload"] | {"tokens": "2.45B"}, "deadline": "42h"}
    plan = planned(tmp_path, JOB | longer | {"constraints": only}, capsys)
    spot, standby = plan["phases"]
    assert standby["role"] == "standby"
    assert standby["switch_by_hours"] < 42.0
    assert main(["run-policy", "--plan", plan["id"], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["work_hours"] == standby["hours_with_goodput"]
    assert told["on_demand_usd_per_hour"] == pytest.approx(float(standby["usd_per_node_hour"]) * standby["nodes"])
    assert told["places"][0]["usd_per_hour"] == pytest.approx(float(spot["usd_per_node_hour"]) * spot["nodes"])
    assert told["as_planned"]["switch_probability"] == standby["probability"]
    assert main(["plan", str(tmp_path / "job.json"), "--details"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Standby: 1 x p4d.24xlarge" in text
    assert "is done, switch to 1 x p4d.24xlarge" in text
