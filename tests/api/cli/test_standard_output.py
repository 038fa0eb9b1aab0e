"""What stands on standard output: as wide as COLUMNS says, without padding, and nothing of any library."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.api.observability.version import gpuplan_version
from tests.api.conftest import Ended

Run = Callable[..., Ended]
Write = Callable[..., Path]


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("160", 160), ("", 120), ("wide", 120), ("0", 120)])
def test_piped_tables_are_as_wide_as_columns_says(
    run: Run,
    job_file: Write,
    job: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
    widest: int,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run("plan", job_file(job), "--details").out.splitlines()
    assert widest - 20 < max(map(len, lines)) <= widest


@pytest.mark.parametrize(
    "words", [["accelerators"], ["offers", "--accelerator", "H100"], ["history", "p5.48xlarge"], ["local", "list"]]
)
def test_no_line_ends_in_blanks(run: Run, words: list[str]) -> None:
    shown = run(*words, *(["--inventory", "examples/inventory.yaml"] if words[0] == "local" else []))
    assert shown.code == 0, shown.err
    assert shown.out.strip()
    assert [line for line in shown.out.splitlines() if line != line.rstrip()] == []


def test_no_line_of_a_plan_ends_in_blanks(run: Run, job_file: Write, job: dict[str, Any], hopeless: object) -> None:
    for document in (job, hopeless):
        shown = run("plan", job_file(document)).out
        assert [line for line in shown.splitlines() if line != line.rstrip()] == []


def test_the_version_is_an_option_and_a_command(run: Run) -> None:
    for word in ("--version", "version"):
        assert run(word) == (0, f"gpuplan {gpuplan_version()}\n", "")


def test_what_a_library_prints_while_a_command_runs_is_told_on_standard_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sys.stdout

    def chatty() -> str:
        print("chatter")
        return "1.2.3"

    monkeypatch.setattr("gpuplan.api.observability.version.gpuplan_version", chatty)
    assert run("version") == (0, "gpuplan 1.2.3\n", "chatter\n")
    assert sys.stdout is before
