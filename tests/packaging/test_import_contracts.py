"""The import contracts are held against every module: one that the linter does not see may import what it likes."""

import tomllib
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS: list[dict[str, Any]] = LINTER["contracts"]


def modules() -> set[str]:
    """Every module in the folders, by its name."""
    result = {"gpuplan", "gpuplan_client"}
    places = [(ROOT / item, f"gpuplan.{item}") for item in ("catalog", "providers", "planner", "api")]
    for folder, package in [*places, (ROOT / "clients/python/src/gpuplan_client", "gpuplan_client")]:
        for path in folder.rglob("*.py"):
            inside = path.relative_to(folder).with_suffix("").parts
            if all(part.isidentifier() for part in inside):
                result.add(".".join([package, *(part for part in inside if part != "__init__")]))
    return result


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*LINTER["root_packages"], cache_dir=None)


def test_the_linter_sees_every_module(graph: grimp.ImportGraph) -> None:
    """Also those behind the links below src/gpuplan."""
    assert modules() - graph.modules == set()


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda item: item["name"][:50])
def test_each_module_that_a_contract_names_is_there(contract: dict[str, Any], graph: grimp.ImportGraph) -> None:
    layers = {name.strip() for layer in contract.get("layers", ()) for name in layer.split("|")}
    ignored = {end for item in contract.get("ignore_imports", ()) for end in item.split(" -> ")}
    listed = contract.get("modules", ())
    listed = (*listed, *contract.get("ancestors", ()))
    named = {*layers, *listed, *contract.get("source_modules", ()), *contract.get("forbidden_modules", ())}
    assert named
    assert named - graph.modules == set()
    assert [name for name in ignored if not matching(graph.modules, name)] == []


def test_the_layers_hold_every_module_of_gpuplan(graph: grimp.ImportGraph) -> None:
    [contract] = [item for item in CONTRACTS if item["type"] == "layers" and "gpuplan.catalog" in item["layers"]]
    layers = tuple(name.strip() for layer in contract["layers"] for name in layer.split("|"))
    without = {
        name
        for name in graph.modules
        if name.startswith("gpuplan.") and not any(name == layer or name.startswith(f"{layer}.") for layer in layers)
    }
    assert without == set()
