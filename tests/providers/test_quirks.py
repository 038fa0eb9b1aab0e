"""docs/quirks.md tells the truth: the tests that it names exist and can fail, and no known quirk is missing from it."""

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "quirks.md"
NOT_APPLICABLE = "not applicable: "
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
FAULTS = (
    *("throttling", "5xx for ever", "dead region", "expired page", "reset in the middle", "truncated json"),
    *("changes its type", "clock off by a day", "disk full at commit", "kill -9"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a table: all cells but the last, and the tests that the last one names as (file, function)."""

    cells: tuple[str, ...]
    tested_by: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        return NAMED_TEST.findall(self.tested_by)

    @property
    def is_applicable(self) -> bool:
        return not self.tested_by.startswith(NOT_APPLICABLE)


def table(heading: str) -> list[Line]:
    """The lines of the table below a heading, its head left out."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in splitline.strip("|").split("|")]
        for splitline in section.splitlines()
        if splitline[:1] == "|"
    ]
    return [Line(cells=tuple(cell[:-1]), tested_by=cell[-1]) for cell in cells[2:]]


def key_of(cloud: str, call: str) -> tuple[str, str]:
    """A call or field by its letters and digits alone."""
    return cloud.lower(), "".join(letter for letter in call.lower() if letter.isalnum())


@cache
def functions(file: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file by name."""
    return {item.name: item for item in ast.walk(_tree(file)) if isinstance(item, ast.FunctionDef)}


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def can_fail(test: ast.FunctionDef) -> bool:
    """Whether it asserts something, or that something is raised."""
    return any(
        isinstance(item, ast.Assert) or (isinstance(item, ast.Attribute) and item.attr == "raises")
        for item in ast.walk(test)
    )


def needs_shared_data(file: str, name: str) -> bool:
    marks = [ast.unparse(function) for function in functions(file)[name].decorator_list]
    marks += [
        ast.unparse(item.value)
        for item in _tree(file).body
        if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "pytestmark"
    ]
    return any("shared_data" in mark for mark in marks)


def named() -> Iterator[tuple[str, str]]:
    for line in (*table("Quirks"), *table("Faults")):
        yield from line.tests


def test_every_test_that_the_document_names_exists() -> None:
    missing = [
        f"{file}::{name}" for file, name in named() if not (ROOT / file).is_file() or name not in functions(file)
    ]
    assert missing == []


def test_every_test_that_the_document_names_can_fail() -> None:
    idle = [f"{file}::{name}" for file, name in named() if not can_fail(functions(file)[name])]
    assert idle == []


def test_every_quirk_has_a_test_or_a_reason() -> None:
    for line in table("Quirks"):
        assert len(line.cells) == 3, line
        assert all(line.cells), line
        assert line.tests if line.is_applicable else len(line.tested_by) > len(NOT_APPLICABLE) + 20, line


def test_every_quirk_is_held_by_a_test_that_needs_no_files_of_others() -> None:
    for line in table("Quirks"):
        if line.is_applicable:
            assert not all(needs_shared_data(*test) for test in line.tests), line


def test_no_quirk_stands_twice() -> None:
    keys = [key_of(*line.cells[:2]) for line in table("Quirks")]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_on_the_way_is_tried(fault: str) -> None:
    (line,) = [cell for cell in table("Faults") if fault in cell.cells[0].lower()]
    assert len(line.tests) >= 2


@pytest.mark.shared_data
def test_no_known_quirk_is_missing_and_none_is_made_up(shared_data: Path) -> None:
    with (shared_data / "wire" / "quirks.csv").open(encoding="utf-8", newline="") as file:
        known = {key_of(row["provider"], row["field/call"]) for row in csv.DictReader(file)}
    assert {key_of(*line.cells[:2]) for line in table("Quirks")} == known


@pytest.mark.shared_data
def test_no_sentence_of_the_known_quirks_is_copied(shared_data: Path) -> None:
    with (shared_data / "wire" / "quirks.csv").open(encoding="utf-8", newline="") as file:
        sentences = " ".join(row["quirk"].lower() for row in csv.DictReader(file))
    for line in table("Quirks"):
        assert line.cells[2].lower() not in sentences, line
