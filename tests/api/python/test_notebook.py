"""gpuplan in a real Jupyter kernel."""

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow(reason="needs a Jupyter kernel")

CELLS = (
    "import gpuplan",
    """
job = gpuplan.Job(workload={'kind': 'preset', 'model': 'resnet-50', 'samples': '115M'}, deadline='36h')
plan = gpuplan.plan(job)
plan
""",
    "print(plan)",
    "float(plan.cost_usd.expected) > 0",
    "gpuplan.plan({**job.to_dict(), 'budget_usd': 0.01})",
    "gpuplan.estimate(job, on='A100', gpus=8)",
    "gpuplan.why(job, not_='H100')",
    "gpuplan.offers(accelerator='H100')",
    "gpuplan.offers(accelerator='H100').to_pandas()",
    "gpuplan.plan({'workload': {}})",
)


@pytest.fixture(scope="module")
def outputs(embedded_store: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What each cell gave, in a kernel with a home of its own."""
    home = tmp_path_factory.mktemp("home")
    shutil.copy(embedded_store, home / "own.sqlite3")
    cells = [{"cell_type": "code", "id": f"cell-{at}", "source": source} for at, source in enumerate(CELLS)]
    empty: dict[str, Any] = {"metadata": {}, "outputs": [], "execution_count": None}
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell | empty for cell in cells]}
    notebook: Any = nbformat.from_dict(document)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("IPYTHONDIR", str(home / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(home / "runtime"))
        patch.setenv("GPUPLAN_DATABASE_URL", f"sqlite:///{home / 'own.sqlite3'}")
        client.execute(cwd=str(home))
    return [cell.outputs for cell in notebook.cells]


def test_importing_says_nothing(outputs: list[list[Any]]) -> None:
    assert outputs[0] == []


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        (1, "Cheapest for resnet-50"),
        (4, "No plan meets the requirements of resnet-50"),
        (5, "of steady training on 8 x A100"),
        (6, "resnet-50"),
        (7, "provider "),
    ],
)
def test_an_answer_is_one_card_with_its_text_and_nothing_else_is_printed(
    outputs: list[list[Any]], cell: int, plain: str
) -> None:
    [output] = outputs[cell]
    assert output.output_type == "execute_result"
    assert plain in output.data["text/plain"]
    assert 'class="gpuplan-card' in output.data["text/html"]


def test_the_card_of_a_plan_has_the_chart_of_cost_against_time(outputs: list[list[Any]]) -> None:
    html = outputs[1][0].data["text/html"]
    assert "Expected cost against time" in html
    assert "<svg" in html


def test_print_shows_the_short_text(outputs: list[list[Any]]) -> None:
    [output] = outputs[2]
    assert output.text.rstrip("\n") == outputs[1][0].data["text/plain"]
    assert len(output.text.splitlines()) <= 25
    assert max(map(len, output.text.splitlines())) <= 80


def test_figures_and_frames_are_those_of_python(outputs: list[list[Any]]) -> None:
    assert outputs[3][0].data["text/plain"] == "True"
    assert 'class="dataframe"' in outputs[8][0].data["text/html"]


def test_a_job_that_cannot_be_used_raises_an_error_that_names_the_field(outputs: list[list[Any]]) -> None:
    [output] = outputs[9]
    assert (output.output_type, output.ename) == ("error", "UnusableInput")
    assert output.evalue.startswith("workload.kind: is missing, and required")
