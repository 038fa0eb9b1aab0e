"""`gpuplan verify`: exit codes, what it names, and what it refuses in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """What the first test to plan has printed."""
    return []


@pytest.fixture
def answer(run: Run, job_file: Write, job: dict[str, Any], printed: list[str]) -> dict[str, Any]:
    """A plan as it is printed."""
    if not printed:
        printed.append(run("plan", job_file(job), "--json").out)
    return dict(json.loads(printed[0]))


@pytest.fixture
def plan_file(tmp_path: Path) -> Write:
    """A plan written to a file."""

    def write(document: object, name: str = "plan.json") -> Path:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


@pytest.mark.slow(reason="one long case")
def test_a_plan_is_verified_and_says_what_that_rests_on(run: Run, plan_file: Write, answer: dict[str, Any]) -> None:
    ended = run("verify", plan_file(answer))
    assert (ended.code, ended.err) == (0, "")
    for part in (answer["plan"]["id"], "verified", "independent", "Taken on trust", "dearer than the plan even"):
        assert part in ended.out
    verified = json.loads(run("verify", plan_file(answer), "--json").out)
    assert verified["outcome"] == "verified"
    assert all(check["passed"] for check in verified["verification"]["checks"])
    assert {check["basis"] for check in verified["verification"]["checks"]} == set(verified["verification"]["bases"])


@pytest.mark.slow(reason="one long case")
def test_a_saved_plan_is_verified_by_its_id(run: Run, answer: dict[str, Any]) -> None:
    assert run("verify", answer["plan"]["id"]).code == 0
    assert run("verify", "plan-0123456789abcdef0123").code == 2


@pytest.mark.slow(reason="one long case")
def test_an_answer_that_there_is_no_plan_is_verified(
    run: Run, plan_file: Write, job_file: Write, hopeless: dict[str, Any]
) -> None:
    answer = json.loads(run("plan", job_file(hopeless), "--json").out)
    assert answer["outcome"] == "infeasible"
    ended = run("verify", plan_file(answer))
    assert ended.code == 0
    assert "configurations violate" in ended.out


@pytest.mark.slow(reason="one long case")
def test_a_forged_price_is_named_and_the_code_is_four(run: Run, plan_file: Write, answer: dict[str, Any]) -> None:
    answer["plan"]["phases"][0]["usd_per_node_hour"] = "0.01"
    ended = run("verify", plan_file(answer))
    assert ended.code == 4
    assert "not verified" in ended.out
    verified = json.loads(run("verify", plan_file(answer), "--json").out)
    wrong = {finding["figure"] for finding in verified["verification"]["wrong"]}
    assert {"id", "phases[0].usd_per_node_hour"} <= wrong


def test_a_plan_on_a_snapshot_that_is_gone_is_refused_in_one_line(
    run: Run, plan_file: Write, answer: dict[str, Any]
) -> None:
    answer["plan"]["snapshot_id"] = "f" * 32
    ended = run("verify", plan_file(answer))
    assert ended.code == 2
    assert "plan.snapshot_id: snapshot ffff" in ended.err
    assert "dropped" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.slow(reason="one long case")
def test_another_database_may_be_named(run: Run, plan_file: Write, answer: dict[str, Any], tmp_path: Path) -> None:
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.sqlite3'}"
    assert run("verify", plan_file(answer), "--database", elsewhere).code == 0
    assert run("verify", plan_file(answer), "--database", "nonsense://").code == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"outcome": "decided"}',
        '{"outcome": "planned"}',
        '{"outcome": "planned", "plan": []}',
        '{"outcome": "planned", "plan": {"id": 3}}',
        '{"outcome": NaN}',
        '{"outcome": "planned", "plan": ' + "[" * 40 + "]" * 40 + "}",
        '{"a": ' * 3000,
        "x" * 3_000_000,
        "\x00\x01",
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(run: Run, plan_file: Write, text: str) -> None:
    ended = run("verify", plan_file(text))
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("gpuplan: ")
    assert ended.err.count("\n") == 1


def test_a_file_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    ended = run("verify", tmp_path / "none.json")
    assert ended.code == 2
    assert "plan: cannot read" in ended.err
