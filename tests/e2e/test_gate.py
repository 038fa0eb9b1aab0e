"""`make test` fails with the tests and with the types that are checked beside them, and shows what either says."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
#: Older first: what `make` sets up is there and newer than what it is made from.
SET_UP = (
    ("requirements-build.txt", "requirements.txt", "requirements-dev.txt", "requirements-torch.txt", "pyproject.toml"),
    ("clients/python/pyproject.toml", ".venv/bin/uv"),
    (".venv/.run-stamp", ".venv-torch/.stamp"),
    (".venv/.dev-stamp",),
)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("failing", ["", "ruff", "mypy", "lint-imports", "pytest"])
def test_make_test_fails_with_any_check_and_shows_all_of_them(tmp_path: Path, failing: str) -> None:
    shutil.copy(MAKEFILE, tmp_path)
    for age, names in enumerate(SET_UP):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (age + 1, age + 1))
    for program in ("ruff", "mypy", "lint-imports", "pytest", "python", "chromium"):
        path = tmp_path / ".venv" / "bin" / program
        path.write_text(f"#!/bin/sh\necho {program} has run\nexit {2 if program == failing else 0}\n")
        path.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path / '.venv' / 'bin'}:{os.environ['PATH']}"}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    done = subprocess.run(["make", "test"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (failing == ""), done.stdout + done.stderr
    after_lint = {"pytest", "mypy"} | ({"lint-imports"} if failing != "mypy" else set())
    shown = {"ruff"} if failing == "ruff" else {"ruff", *after_lint}
    assert all(f"{program} has run" in done.stdout for program in shown)
    assert ("make types FAILED" in done.stdout) == (failing in {"mypy", "lint-imports"})
    assert ("the tests FAILED" in done.stdout) == (failing == "pytest")
