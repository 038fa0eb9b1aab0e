"""`gpuplan plan --from`, `gpuplan import`, and a job in words."""

import json
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main
from gpuplan.catalog.parsing.structured_text import read_document
from tests.api.imports.config_texts import LLAMA_FACTORY


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "run.yaml"
    path.write_text(LLAMA_FACTORY)
    return str(path)


def test_a_configuration_is_planned_and_what_was_understood_is_said(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--from", config, "--samples", "10k", "--gpus", "4", "--by", "3d"]) == 0
    printed = capsys.readouterr()
    assert "Cheapest for llama-3-8b" in printed.out
    assert "read run.yaml (LLaMA-Factory)" in printed.err
    assert "the global batch is held" in printed.err


def test_the_job_file_of_an_import_is_the_job_that_is_planned(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", config, "--tokens", "1B", "--gpus", "8"]) == 0
    job = tmp_path / "job.yaml"
    job.write_text(capsys.readouterr().out)
    assert main(["import", config, "--tokens", "1B", "--gpus", "8", "--json"]) == 0
    assert read_document(job.read_text(), name="job.yaml") == json.loads(capsys.readouterr().out)["job"]
    assert main(["plan", str(job)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nothing.yaml"], "is not there"),
        (["--tokens", "2B", "job.yaml"], "belongs to --from"),
        ([], "give a job file"),
        (["llama-3-8b", "tokns=1B"], "did you mean tokens"),
        (["--from", "no-owner/no-model", "--tokens", "1B"], "give --model NAME"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_words_state_a_job_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "llama-3-8b", "tokens=3B", "by=14d"]) == 0
    assert "Cheapest for llama-3-8b" in capsys.readouterr().out


@pytest.mark.parametrize("second", ["tokens=3B", "other.yaml"])
def test_a_job_file_stands_alone(second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.yaml").write_text("workload: {kind: preset, model: llama-3-8b, tokens: 3e9}\n")
    assert main(["plan", str(tmp_path / "job.yaml"), second]) == 2
    error = capsys.readouterr().err
    assert f"takes one job file and no words with it; '{second}' follows" in error
    assert error.count("\n") == 1
