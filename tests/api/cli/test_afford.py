"""`gpuplan afford`: sizes that a budget trains, each with a plan that keeps to it."""

import json
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main

WORDS = ["--budget", "40", "--by", "2d", "--data", "20B"]


def test_each_size_is_a_job_whose_plan_keeps_to_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["afford", *WORDS, "nodes=1", "sequence=2048", "start=2026-12-01T00:00Z", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    models = answer["models"]
    assert all(float(model["cost_usd"]) <= 40 and model["tokens"] <= 20e9 for model in models)
    assert any(model["over_trained"] and model["limited_by"] == "data" for model in models)
    best = [model for model in models if model["preferred_by"]]
    assert {law for model in best for law in model["preferred_by"]} == {law["name"] for law in answer["laws"]}
    assert best[0]["job"]["workload"]["sequence_length"] == 2048
    assert best[0]["job"]["constraints"] == {"max_nodes": "1"}
    job = tmp_path / "job.json"
    job.write_text(json.dumps(best[0]["job"]))
    assert main(["plan", str(job), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert float(plan["cost_usd"]["expected"]) <= float(best[0]["cost_usd"])
    assert main(["afford", *WORDS, "nodes=1", "start=2026-12-01T00:00Z"]) == 0
    text = capsys.readouterr().out
    assert "$40.00 in 2 d trains" in text
    assert "This is an extrapolation" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "x"], "budget_usd: 'x' is not a number"),
        (["--budget", "40", "tokens=2B"], "tokens: is what afford answers"),
        (["--budget", "40", "stage=dpo"], "training.stage: dpo trains no model from its start"),
        (["--budget", "40", "lora"], "training.method: lora trains no model from its start"),
        (["--budget", "0.001", "--by", "1d"], ""),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["afford", *words]) == (2 if message else 0)
    printed = capsys.readouterr()
    assert message in printed.err if message else "No model can be trained for $0.00" in printed.out
