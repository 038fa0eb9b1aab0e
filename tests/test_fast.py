"""Which tests `make test-fast` runs, and which it leaves out."""

import ast
from pathlib import Path

import pytest

from tests.fast import ROOT, affected, main


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["planner/verify/bound.py"], ["tests/planner/verify"]),
        (["planner/model/job.py", "planner/verify/bound.py"], ["tests/planner"]),
        (["catalog/data/regions.csv"], ["tests/catalog"]),
        (["tests/planner/verify/test_imports.py"], ["tests/planner/verify/test_imports.py"]),
        (["tests/planner/verify/test_that_is_gone.py"], ["tests/planner/verify"]),
        (["README.md", "docs/index.md", "pyproject.toml", "tools/fitting/fit.py"], []),
    ],
)
def test_a_changed_package_selects_its_test_folder(changed: list[str], tests: list[str]) -> None:
    assert affected(changed) == tests


def test_an_unknown_layer_is_refused_and_the_layers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel"]) == 2
    assert "give catalog, providers, planner, api" in capsys.readouterr().err


def slow_marks(file: Path) -> list[ast.Attribute | ast.Call]:
    """The `pytest.mark.slow` expressions of a file, with the call around each if there is one."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.slow"
    ]
    marks = [
        node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.slow"
    ]
    called = [call.func for call in calls]
    return [*calls, *(mark for mark in marks if mark not in called)]


def test_every_slow_marker_gives_its_reason() -> None:
    marks = {(file.name, ast.unparse(mark)) for file in ROOT.glob("tests/**/test_*.py") for mark in slow_marks(file)}
    assert len(marks) > 10
    assert not [mark for mark in marks if "slow(reason='" not in mark[1]]
