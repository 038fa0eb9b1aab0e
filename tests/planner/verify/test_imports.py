"""The verification must not repeat a fault of the planner: what both import is listed here in full."""

import ast
import importlib
import inspect

import grimp
import pytest

VERIFY = "gpuplan.planner.verify"
PORT = f"{VERIFY}.estimator_port"
#: Classes that a job and its settings are read into.
SHARED = {
    "gpuplan.planner.model.job",
    "gpuplan.planner.model.job_constraints",
    "gpuplan.planner.model.job_field",
    "gpuplan.planner.model.learned",
    "gpuplan.planner.model.quota",
    "gpuplan.planner.model.settings",
    "gpuplan.planner.model.training",
    "gpuplan.planner.model.workloads",
}
#: Declarations of answers. They say which fields are prose, and have no code that could be at fault.
DECLARATIONS = {
    "gpuplan.planner.model.capacity_ladder",
    "gpuplan.planner.model.live_capacity",
    "gpuplan.planner.model.plan",
    "gpuplan.planner.model.shared",
    "gpuplan.planner.model.verification",
}
#: The estimator and the work that it counts, which verification takes on trust.
ESTIMATOR = ("gpuplan.planner.performance", "gpuplan.planner.workload")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("gpuplan", cache_dir=None)


def is_planner(module: str) -> bool:
    return module.startswith("gpuplan.planner.") and not (module == VERIFY or module.startswith(f"{VERIFY}."))


def is_estimator(module: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in ESTIMATOR)


def test_verification_shares_the_job_the_settings_and_the_estimator_with_the_planner(graph: grimp.ImportGraph) -> None:
    modules = graph.find_descendants(VERIFY)
    upstream = {upstream for module in modules for upstream in graph.find_upstream_modules(module)}
    assert {module for module in upstream if is_planner(module) and not is_estimator(module)} == SHARED | DECLARATIONS


@pytest.mark.parametrize("module", sorted(DECLARATIONS))
def test_declarations_of_answers_have_no_code(module: str) -> None:
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    # Accessors that state fields in words or under one name, and decide nothing.
    assert functions <= {"wire_name", "is_standby", "body", "misses", "one_by_one", "parts"}


def test_one_module_of_the_verification_imports_the_estimator(graph: grimp.ImportGraph) -> None:
    importers = {
        module
        for module in graph.find_descendants(VERIFY)
        if any(is_estimator(imported) for imported in graph.find_modules_directly_imported_by(module))
    }
    assert importers == {PORT}
