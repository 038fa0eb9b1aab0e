"""`gpuplan profile` from the command line: a job file that `plan` and `estimate` take at once, or one clear line and no file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.profiling.counter_process import INTERPRETER
from gpuplan.catalog.parsing.structured_text import read_document

pytestmark = pytest.mark.slow(reason="needs torch")

Run = Callable[..., Any]
MODELS = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_python: str) -> Path:
    """An empty working directory, in an environment that names the interpreter with torch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(INTERPRETER, torch_python)
    return tmp_path


def module(folder: Path, text: str) -> str:
    (folder / "train.py").write_text("import torch\n" + text, encoding="utf-8")
    return "train.py:make"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "train.py"}


def test_a_counted_module_is_planned_and_estimated_at_once_and_agrees_with_the_preset(run: Run, folder: Path) -> None:
    amounts = ("--samples", "115.3M", "--global-batch", "2048", "--deadline", "36h", "--optimizer", "sgd_momentum")
    target = f"{MODELS / 'models_to_count.py'}:resnet50"
    profiled = run("profile", target, "--input", "16x3x224x224", *amounts)
    assert (profiled.code, profiled.err) == (0, "")
    assert "25,557,032" in profiled.out
    assert files(folder) == {"resnet50.yaml"}
    assert json.loads(run("plan", "resnet50.yaml", "--json").out)["outcome"] == "planned"
    preset = {
        "workload": {"kind": "preset", "model": "resnet-50", "samples": 115.3e6, "global_batch_samples": 2048},
        "training": {"optimizer": "sgd_momentum"},
    }
    (folder / "preset.json").write_text(json.dumps(preset), encoding="utf-8")
    on = ("--on", "A100-40GB-SXM", "--gpus", "8", "--json")
    ours, theirs = (json.loads(run("estimate", job, *on).out) for job in ("resnet50.yaml", "preset.json"))
    assert ours["hours"] == pytest.approx(theirs["hours"], rel=0.25)
    assert ours["memory"]["peak_gib"] == pytest.approx(theirs["memory"]["peak_gib"], rel=0.25)


def test_a_module_that_prints_and_forks_is_counted_all_the_same(run: Run, folder: Path) -> None:
    target = module(
        folder,
        "import os, time\nprint('loading' * 1000)\nif not os.fork(): time.sleep(60)\n"
        "def make():\n    print('making')\n    return torch.nn.Linear(8, 4)\n",
    )
    profiled = run("profile", target, "--input", "4x8", "--json")
    assert (profiled.code, profiled.err) == (0, "")
    answer = json.loads(profiled.out)
    assert answer["job"]["workload"]["flops_per_sample"] == 2 * 2 * 8 * 4
    assert "the module started other processes, which were killed" in answer["job"]["workload"]["notes"]
    assert read_document((folder / "make.yaml").read_bytes(), name="make.yaml") == answer["job"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "import no_such_library\n",
            (),
            "target: importing train.py raised ModuleNotFoundError: No module named 'no_such",
        ),
        ("while True: pass\n", ("--timeout", "1"), "target: took more than 1 s and was stopped"),
        (
            "import sys; sys.exit('usage: train.py')\n",
            (),
            "target: importing train.py raised SystemExit: usage: train.py",
        ),
    ],
)
def test_what_cannot_be_counted_is_one_line_and_no_file(
    run: Run, folder: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    ended = run("profile", module(folder, text), "--input", "4x8", *options)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith(f"gpuplan: {message}")
    assert ended.err.count("\n") == 1
    assert files(folder) == set()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train.py:make", "--input", "4by8"), "input: '4by8' is not a shape"),
        (("train.py:make", "--input", "4x8", "--target", "4:int65"), "target: 'int65' is not a numeric type"),
        (
            ("train.py:make", "--input", "4x8", "--batch-axis", "2"),
            "batch_axis: the first input has no axis 2, only 2 axes",
        ),
        (("train.py:make", "--input", "4x8", "--samples", "many"), "samples: 'many' is not a number"),
        (
            ("train.py:make", "--input", "4x8", "--python", "no-python"),
            "python: no-python is not an executable program",
        ),
        (("train.py:make",), "Missing option '--input'"),
        (("nothing", "--input", "4x8"), "target: 'nothing' is not MODULE:FACTORY"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    run: Run, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    ended = run("profile", *arguments)
    assert ended.code == 2
    assert ended.err.startswith(f"gpuplan: {message}")
    assert files(folder) == set()


def test_a_file_that_is_there_is_not_replaced_unasked(run: Run, folder: Path) -> None:
    (folder / "make.yaml").write_text("mine", encoding="utf-8")
    ended = run("profile", "train.py:make", "--input", "4x8")
    assert ended.code == 2
    assert "output: make.yaml exists; give another --output, or --force" in ended.err
    assert (folder / "make.yaml").read_text(encoding="utf-8") == "mine"


def test_what_the_flags_contradict_is_refused_before_anything_is_counted(run: Run, folder: Path) -> None:
    target = module(folder, "raise ValueError('imported')\n")
    ended = run("profile", target, "--input", "4x8", "--samples", "100", "--global-batch", "200")
    assert ended.code == 2
    assert "global_batch: 200 is more than --samples, 100" in ended.err
    assert files(folder) == set()
    ended = run("profile", target, "--input", "4x8", "--output", "missing/job.yaml")
    assert ended.code == 2
    assert "output: the folder missing does not exist; give a path in an existing folder" in ended.err
