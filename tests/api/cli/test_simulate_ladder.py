"""`gpuplan simulate --ladder`: a plan's capacity ladder over availability traces, from files to exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.main import main

JOB: dict[str, Any] = {
    "name": "fine-tune",
    "workload": {"kind": "preset", "model": "llama-3-8b", "tokens": "200M", "sequence_length": 4096},
    "deadline": "36h",
    "constraints": {"providers": ["aws"], "max_nodes": 1},
}
#: Six days, five minutes a probe.
PROBES = 12 * 24 * 6


@pytest.fixture(autouse=True)
def nothing_stored(own_store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_observed = tmp_path / "as-observed.yaml"
    as_observed.write_text("prices: as-observed\n")
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    monkeypatch.setenv("GPUPLAN_SETTINGS", str(as_observed))


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A plan on spot with next choices on spot, saved."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB))
    assert main(["plan", str(path), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out)["plan"])


def trace(folder: Path, name: str, data: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"metadata": {"gap_seconds": 300}, "data": data}))


def spot_choices(plan: dict[str, Any]) -> int:
    rows = [plan["phases"][0], *plan["capacity_ladder"]["next_choices"]]
    return sum(row["price_kind"] == "spot" for row in rows)


def test_a_ladder_gets_its_second_choice_when_the_first_is_short(
    plan: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count, folder = spot_choices(plan), tmp_path / "traces"
    assert count >= 2
    for number in range(1, count + 1):
        trace(folder, str(number), [int(number != 1)] * PROBES)
    arguments = ["simulate", "--ladder", "--plan", plan["id"], "--traces", str(folder), "--starts", "20"]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["runs"] == 20
    assert not any(row["stands_in"] for part in answer["sets"] for row in part["traces"])
    rules = {rule["rule"]: rule for rule in answer["rules"]}
    assert all(rule["late_runs"] == 0 for rule in rules.values())
    second = {use["choice"]: use for use in rules["ladder"]["obtained"]}[2]
    assert (second["first_share"], second["first_after_hours"]) == (1.0, pytest.approx(1 / 3, abs=1e-4))
    # Nothing is interrupted, so the second choice costs its hours with one start, in whole steps.
    choice = answer["choices"][1]
    hours = choice["work_hours"] + 0.25
    assert float(rules["ladder"]["mean_usd"]) == pytest.approx(float(choice["usd_per_hour"]) * hours, rel=0.03)
    assert float(rules["first choice only"]["mean_usd"]) == pytest.approx(
        float(rules["cheapest on demand"]["mean_usd"]), rel=0.03
    )
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "20 starts replayed" in shown
    assert "first choice only" in shown


def test_other_traces_stand_in_and_sets_with_too_few_zones_are_left_out(
    plan: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, count = tmp_path / "traces", spot_choices(plan)
    for letter in "abcdef"[:count]:
        trace(folder, f"availability__1-node__aws-02-15-2023__us-east-1{letter}_v100_1", [1] * PROBES)
    trace(folder, "availability__1-node__aws-10-26-2022__us-west-2a_v100_1", [1] * PROBES)
    arguments = ["simulate", "--ladder", "--plan", plan["id"], "--traces", str(folder), "--refused", "1", "--json"]
    assert main(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [part["name"] for part in answer["sets"]] == ["availability__1-node__aws-02-15-2023__*_v100_1"]
    assert all(row["stands_in"] for row in answer["sets"][0]["traces"])
    assert answer["left_out"][0]["why"] == f"has too few zones: 1 for {count} interruptible choices"
    assert "traces of other zones or machines stand in for those of the ladder" in answer["assumptions"]
    rules = {rule["rule"]: rule for rule in answer["rules"]}
    assert rules["cheapest on demand"]["late_runs"] == answer["runs"]
    assert rules["ladder"]["late_runs"] == 0


def test_what_cannot_be_replayed_is_refused_with_the_field(
    plan: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "traces"
    trace(folder, "1", [1] * 12)
    ladder = ["simulate", "--ladder", "--plan", plan["id"], "--traces"]
    assert main([*ladder, str(folder)]) == 2
    assert "traces: no set of zones covers the ladder" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([*ladder, str(tmp_path / "empty")]) == 2
    assert "holds no .json file" in capsys.readouterr().err
    assert main([*ladder, str(folder), "--fit", str(folder)]) == 2
    assert "fit: a ladder learns from no traces" in capsys.readouterr().err
    assert main(["simulate", "--ladder", "--traces", str(folder)]) == 2
    assert "job: give either a job file or --plan ID" in capsys.readouterr().err
    assert main(["simulate", "run.yaml", "--traces", str(folder), "--refused", "0.5"]) == 2
    assert "refused: applies to a capacity ladder" in capsys.readouterr().err
    endless = tmp_path / "endless.json"
    endless.write_text(json.dumps({name: value for name, value in JOB.items() if name != "deadline"}))
    assert main(["simulate", "--ladder", str(endless), "--traces", str(folder)]) == 2
    assert "plan: has no deadline" in capsys.readouterr().err
