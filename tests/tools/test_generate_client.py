"""The generated half of the HTTP client is what the generator writes."""

import ast

from gpuplan_client.answers import procurement, shared
from tools.generate_client import CLIENT, PARTS, blocking, stale


def test_the_generated_files_of_the_client_are_current() -> None:
    assert stale() == []


def test_the_blocking_client_awaits_nothing_and_has_the_methods_of_the_other() -> None:
    source = (CLIENT / "async_client.py").read_text(encoding="utf-8")
    made = ast.parse(blocking(source))
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert not [node for node in ast.walk(made) if isinstance(node, kinds)]
    renamed = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
    wanted = {
        renamed.get(node.name, node.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {node.name for node in ast.walk(made) if isinstance(node, ast.FunctionDef)} == wanted


def test_a_change_to_the_awaiting_client_makes_the_other_one_stale() -> None:
    source = (CLIENT / "async_client.py").read_text(encoding="utf-8")
    changed = source.replace("async def saved_plan(", "async def stored_plan(")
    assert "def stored_plan(" in blocking(changed)
    assert blocking(changed) != blocking(source)


def test_types_stay_where_users_import_them_when_the_module_of_the_service_is_split() -> None:
    assert {"CapacityLadder", "NextChoice", "ChanceSource", "ChangingMachines"} <= vars(shared).keys()
    assert {"JobRuns", "SpendingRate", "BreakEven"} <= vars(procurement).keys()
    assert not [name for name in PARTS if (CLIENT / "answers" / f"{name}.py").exists()]
