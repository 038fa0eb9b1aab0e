"""CSV that is opened in a spreadsheet computes nothing, whatever a machine is called."""

import csv

import pytest

from api.csv_cells import plain_rows
from api.http.caching import to_csv
from api.web.csv_file import _chunks


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-2+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "-5x"]
)
def test_a_text_that_would_be_a_formula_is_marked_as_text(text: str) -> None:
    for body in (to_csv(["name"], [{"name": text}]), b"".join(_chunks(["name"], [{"name": text}]))):
        [_, [cell]] = list(csv.reader(body.decode().splitlines(keepends=True)))
        assert cell == f"'{text}"


@pytest.mark.parametrize("cell", ["-1", "+1.50", "-1e-3", "-12.5%", "p5.48xlarge", "a=b", "", None, -3, -0.5, "1,000"])
def test_numbers_and_ordinary_names_stay_as_they_are(cell: object) -> None:
    row = {"name": cell, "more": 1}
    [found] = plain_rows([row])
    assert found is row
