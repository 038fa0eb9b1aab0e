"""`gpuplan estimate`: several configurations in one table, and what an estimate says of its doubts."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.cli.main import main

JOB = "workload: {kind: preset, model: llama-3-8b, tokens: 2B}\n"


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return str(path)


def test_several_configurations_are_lines_of_one_table(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", job, "--on", "H100,T4", "--gpus", "8,16"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " x " in line]
    assert [line.split("  ")[0] for line in lines] == ["8 x H100-80GB-SXM", "16 x H100-80GB-SXM", "8 x T4", "16 x T4"]
    assert "does NOT fit" in lines[2]


def test_each_line_is_the_estimate_of_that_configuration_alone(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", job, "--on", "H100,A100", "--gpus", "8", "--json"]) == 0
    together = json.loads(capsys.readouterr().out)["estimates"]
    for name, answer in zip(("H100", "A100"), together, strict=True):
        assert main(["estimate", job, "--on", name, "--gpus", "8", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == answer


@pytest.mark.parametrize(
    ("on", "gpus", "message"),
    [("H100,H1000", "8", "unknown accelerator 'H1000'"), ("H100", "8,x", "gpus"), ("H100", "0", "gpus")],
)
def test_faulty_lists_are_refused_in_one_line(
    job: str, on: str, gpus: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", job, "--on", on, "--gpus", gpus]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def estimated(path: Path, training: dict[str, str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path.write_text(JOB + f"training: {json.dumps(training)}\n")
    assert main(["estimate", str(path), "--on", "H100", "--gpus", "64", "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_effect_of_a_doubt_is_that_of_the_alternative_and_stating_the_field_removes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Field, what was assumed, the alternative that the doubt names.
    alternatives = {
        "precision": ("bf16", "fp8"),
        "activation_checkpointing": ("none", "full"),
        "software": ("fused", "eager"),
    }
    stated: dict[str, str] = {}
    for name, (chosen, other) in alternatives.items():
        answer = estimated(tmp_path / "job.yaml", stated, capsys)
        doubts = {doubt["state"]: doubt for doubt in answer["doubts"]}
        assert len(answer["doubts"]) <= 3
        ratios = [doubt["effect_high"] / doubt["effect_low"] for doubt in answer["doubts"]]
        assert ratios == sorted(ratios, reverse=True)
        doubt = doubts[f"training.{name}"]
        assert f"assumed {chosen}: {other} would take" in doubt["what"]
        changed = estimated(tmp_path / "job.yaml", stated | {name: other}, capsys)["hours"] / answer["hours"]
        assert changed == pytest.approx(doubt["effect_low" if changed < 1 else "effect_high"])
        stated[name] = chosen
    answer = estimated(tmp_path / "job.yaml", stated, capsys)
    assert not {f"training.{name}" for name in stated} & {doubt["state"] for doubt in answer["doubts"]}
    assert "of class language on H100-80GB-SXM" in answer["doubts"][0]["what"]


@pytest.mark.parametrize("batch", ["", ", global_batch_tokens: 4M"])
def test_a_default_batch_is_among_the_assumed_fields_whichever_way_the_model_is_given(
    batch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dimensions = "layers: 32, hidden_size: 4096, attention_heads: 32, vocabulary_size: 128256, sequence_length: 8192"
    for model in ("kind: preset, model: llama-3-8b", f"kind: transformer, {dimensions}"):
        path = tmp_path / "job.yaml"
        path.write_text(f"workload: {{{model}, tokens: 200B{batch}}}\n")
        assert main(["estimate", str(path), "--on", "H100", "--gpus", "64", "--json"]) == 0
        assumed = [one["field"] for one in json.loads(capsys.readouterr().out)["assumed"]]
        assert ("workload.global_batch_tokens" in assumed) == (batch == "")


def test_a_mig_slice_is_compared_with_its_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cnn.yaml"
    path.write_text("workload: {kind: preset, model: resnet-50, samples: 1e6}\n")
    assert main(["estimate", str(path), "--on", "A100 80GB,A100 80GB:3g.40gb", "--gpus", "1", "--json"]) == 0
    card, part = json.loads(capsys.readouterr().out)["estimates"]
    assert (card["on"]["accelerator"], part["on"]["accelerator"]) == ("A100-80GB-SXM", "A100-80GB-SXM:3g.40gb")
    assert part["hours"] > 2 * card["hours"]
    assert main(["estimate", str(path), "--on", "A100 80GB:9g.40gb", "--gpus", "1"]) == 2
    assert "accepted: A100-80GB-SXM:1g.10gb" in capsys.readouterr().err
