"""`gpuplan buy` from the file to the answer."""

import json
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main

pytestmark = pytest.mark.slow(reason="plans procurement")

FORECAST = """
name: lab
electricity_usd_per_kwh: 0.2
limits: {upfront_usd: 20000}
machines: [RTX 4090]
jobs:
  - job: {workload: {kind: preset, model: resnet-50, samples: 115M}, deadline: 5d, constraints: {price_kinds: [on_demand]}}
    per_month: {low: 5, expected: 15, high: 30}
"""


@pytest.fixture
def forecast(own_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUPLAN_DATABASE_URL", own_store)
    path = tmp_path / "jobs.yaml"
    path.write_text(FORECAST, encoding="utf-8")
    return path


def test_a_forecast_is_answered_as_one_object_that_adds_up(forecast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["buy", str(forecast), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    decision = answer["decision"]
    cost = decision["cost_usd"]
    assert sum(float(part) for part in cost["breakdown"].values()) == pytest.approx(float(cost["total"]), abs=0.01)
    assert float(cost["total"]) == pytest.approx(float(decision["certificate"]["objective_usd"]), rel=1e-6)
    assert float(decision["certificate"]["bound_usd"]) <= float(decision["certificate"]["objective_usd"])
    assert float(decision["upfront_usd"]) <= 20_000
    runs = sum(run["runs_per_year"] for purchase in decision["buy"] for run in purchase["runs_per_year"])
    runs += sum(entry["runs_per_year"] for entry in [*decision["rent"]])
    runs += sum(run["runs_per_year"] for commitment in decision["commit"] for run in commitment["runs_per_year"])
    assert runs == pytest.approx(12 * (0.3 * 5 + 0.4 * 15 + 0.3 * 30), rel=1e-4)


def test_a_person_reads_what_to_buy_and_when_it_pays(forecast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["buy", str(forecast)]) == 0
    output = capsys.readouterr().out
    assert "Cheapest for lab: " in output
    for heading in ("Cost", "Sensitivity", "Why nothing is cheaper", "Assumptions"):
        assert heading in output


def test_a_forecast_that_nothing_serves_ends_with_its_own_code(
    forecast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forecast.write_text(FORECAST.replace("deadline: 5d", "deadline: 1min"), encoding="utf-8")
    assert main(["buy", str(forecast)]) == 4
    assert "jobs[0]" in capsys.readouterr().out


def test_a_negative_rate_is_one_clear_line(forecast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forecast.write_text(FORECAST.replace("low: 5", "low: -5"), encoding="utf-8")
    assert main(["buy", str(forecast)]) == 2
    assert "jobs[0].per_month" in capsys.readouterr().err


def test_machines_in_the_inventory_work_first(
    forecast: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "electricity_usd_per_kwh: 0.2\nmachines: [{name: rig, accelerator: RTX 4090, count: 2, machines: 4, usd_per_hour: 0}]",
        encoding="utf-8",
    )
    monkeypatch.setenv("GPUPLAN_INVENTORY", str(inventory))
    assert main(["buy", str(forecast), "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)["decision"]
    assert [machine["name"] for machine in decision["use"]] == ["rig"]
    assert decision["use"][0]["busy_share"] > 0
    assert decision["buy"] == []
