"""What the verification may import of the planner is written down in full, so that a new module is shared by no accident."""

import pkgutil
import tomllib
from pathlib import Path

import planner

ROOT = Path(planner.__file__).parents[1]
#: Classes that a job and its settings are read into, and the estimator with the work it counts, behind its port.
SHARED = {"estimate", "job", "own_steps", "past_runs", "settings", "workload"}


def test_every_module_of_the_planner_is_either_shared_or_forbidden_to_the_verification() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    of_verify = [each for each in contracts if each.get("source_modules") == ["planner.verify"]]
    whole = next(each for each in of_verify if not each.get("allow_indirect_imports"))
    forbidden = {name.removeprefix("planner.") for name in whole["forbidden_modules"]}
    every = {each.name for each in pkgutil.iter_modules(planner.__path__)}
    assert forbidden | SHARED | {"verify"} == every
    assert not forbidden & SHARED


def test_the_estimator_is_asked_by_one_module_alone() -> None:
    """The same as the contract of the port, read from the sources: strings that the linter is told to ignore are few."""
    asked = ("planner.estimate", "planner.own_steps", "planner.past_runs", "planner.workload")
    importers = {
        file.name
        for file in (ROOT / "planner" / "verify").glob("*.py")
        if any(f"from {name}" in file.read_text() or f"import {name}" in file.read_text() for name in asked)
    }
    assert importers == {"estimates.py"}
