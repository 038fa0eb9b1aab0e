"""`gpuplan check` in real git work trees: cost before and after, why, and the exit code."""

import json
import subprocess
from pathlib import Path

import pytest

from gpuplan.api.cli.main import main
from gpuplan.api.presentation.cost_check import ComparedJob, markdown

JOB = "workload: {kind: preset, model: llama-3-8b, tokens: 2.0e+8}\ntraining: {method: lora}\n"
SCRIPT = "#!/bin/bash\ntorchrun --nproc_per_node 8 train.py sft.yaml\n"
TRAINER = """model_name_or_path: Qwen/Qwen3-8B
stage: sft
finetuning_type: lora
cutoff_len: 2048
per_device_train_batch_size: 4
max_steps: 1000
bf16: true
packing: true
"""


def git(folder: Path, *arguments: str) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree with three committed files on main."""
    git(tmp_path, "init", "-q", "-b", "main")
    for name, text in (("job.yaml", JOB), ("run.sh", SCRIPT), ("sft.yaml", TRAINER)):
        (tmp_path / name).write_text(text)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_costs_before_and_after_are_those_of_the_files_and_of_what_they_name(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "job.yaml").write_text(JOB.replace("2.0e+8", "4.0e+8"))
    (tree / "sft.yaml").write_text(TRAINER.replace("1000", "500"))
    (tree / "new.yaml").write_text(JOB)
    assert main(["check", "--from", "job.yaml", "run.sh", "new.yaml", "--gpus", "8", "--format", "json"]) == 0
    longer, shorter, new = json.loads(capsys.readouterr().out)["jobs"]
    assert longer["changes"] == [{"field": "workload.tokens", "before": 2e8, "after": 4e8}]
    assert 50 < longer["increase_percent"] < 110
    assert longer["increase_percent"] == pytest.approx(
        100 * (float(longer["after"]["cost_usd"]) / float(longer["before"]["cost_usd"]) - 1)
    )
    assert shorter["increase_percent"] < -30
    assert [change["field"] for change in shorter["changes"]] == ["workload.tokens"]
    assert (new["is_new"], new["before"], new["increase_percent"]) == (True, None, None)


def test_an_increase_beyond_the_limit_and_a_lost_plan_fail(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "job.yaml", "--max-increase", "0%"]) == 0
    assert "| same | - |" in capsys.readouterr().out
    (tree / "job.yaml").write_text(JOB.replace("2.0e+8", "4.0e+8"))
    assert main(["check", "job.yaml", "--max-increase", "10%"]) == 1
    assert main(["check", "job.yaml", "--max-increase", "1000"]) == 0
    capsys.readouterr()
    (tree / "job.yaml").write_text(JOB + "deadline: 1 min\n")
    assert main(["check", "job.yaml", "--max-increase", "1000%"]) == 1
    assert "| no plan | - | in conflict: deadline |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["job.yaml", "--against", "--help"], "against: '--help' is no revision"),
        (["job.yaml", "--against", "gone"], "against: 'gone' is no revision that git knows"),
        (["gone.yaml"], "gone.yaml: is not there"),
        (["job.yaml", "--max-increase", "ten"], "--max-increase: 'ten' is not accepted"),
        ([], "FILE: is missing"),
        (["bad.yaml"], "bad.yaml.workload"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    tree: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "bad.yaml").write_text("workload: {kind: preset}\n")
    assert main(["check", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_markdown_is_never_markup_of_a_file_name() -> None:
    row = ComparedJob(
        file="a|b`<img src=x>[l](u)@all.yaml",
        is_new=True,
        before=None,
        after=None,
        increase_percent=None,
        conflicts=(),
        changes=(),
    )
    line = markdown([row], "main", None).splitlines()[2]
    assert line.count(" | ") == 4
    assert "<img" not in line.replace("\\<", "")
    assert "](" not in line.replace("\\]", "")
    assert "@all" not in line
