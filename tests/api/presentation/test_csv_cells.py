"""CSV that is opened in a spreadsheet computes nothing, whatever a machine is called."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan.api.http.response_caching import to_csv
from gpuplan.api.presentation.csv_cells import plain_rows, write_csv
from gpuplan.api.web.csv_download import _chunks
from tests.api.conftest import Ended


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-2+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "-5x"]
)
def test_a_text_that_would_be_a_formula_is_marked_as_text(text: str) -> None:
    for body in (to_csv(["name"], [{"name": text}]), b"".join(_chunks(["name"], [{"name": text}]))):
        [_, [cell]] = list(csv.reader(body.decode().splitlines(keepends=True)))
        assert cell == f"'{text}"


@pytest.mark.parametrize("cell", ["-1", "+1.50", "-1e-3", "-12.5%", "p5.48xlarge", "a=b", "", None, -3, -0.5, "1,000"])
def test_numbers_and_ordinary_names_stay_as_they_are(cell: object) -> None:
    row = {"name": cell, "count": 1}
    [plain_row] = plain_rows([row])
    assert plain_row is row


def test_what_the_command_line_prints_computes_nothing_either(tmp_path: Path, run: Callable[..., Ended]) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(
        "electricity_usd_per_kwh: 0.3\nmachines: [{name: '=1+1', accelerator: RTX 4090, usd_per_hour: 1}]",
        encoding="utf-8",
    )
    shown = run("offers", "--provider", "local", "--inventory", inventory, "--format", "csv")
    [offer] = list(csv.DictReader(io.StringIO(shown.out)))
    assert offer["instance_type"] == "'=1+1"
    text = io.StringIO()
    write_csv(text, ("instance_type", "usd_per_hour"), [{"instance_type": "@SUM(A1)", "usd_per_hour": "-1"}])
    assert text.getvalue() == "instance_type,usd_per_hour\n'@SUM(A1),-1\n"
