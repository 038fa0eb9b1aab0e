"""Collected price tables become facts in our own columns, each with a source and a date, or are refused."""

import shutil
from pathlib import Path

import pytest

from tools.catalogue_build.fact_tables import FACTS, fact_table
from tools.catalogue_build.import_facts import TABLES, main

SAVINGS = "prices/aws_spot_interruption.csv"


@pytest.fixture
def collected(shared_data: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "collected"
    (folder / "prices").mkdir(parents=True)
    for table in TABLES.values():
        (folder / table.given).parent.mkdir(exist_ok=True)
        shutil.copyfile(shared_data / f"{table.given}.csv", folder / f"{table.given}.csv")
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_every_fact_has_a_source_and_a_date(name: str) -> None:
    rows = fact_table(name)
    assert len(rows) > 40
    assert all(row["source"] and row["as_of"] for row in rows)


@pytest.mark.shared_data
def test_an_import_gives_the_facts_of_the_repository_byte_for_byte(collected: Path, tmp_path: Path) -> None:
    assert main([str(collected), "--out", str(tmp_path / "facts")]) == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "facts").iterdir()}
    assert written == {f"{name}.csv.xz": (FACTS / f"{name}.csv.xz").read_bytes() for name in TABLES}


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (SAVINGS, "savings_vs_on_demand_pct", "savings", "column savings_vs_on_demand_pct is missing; it has region"),
        (
            "prices/gcp_components.csv",
            "2026-03-05",
            "2031-01-01",
            "no source is known for unit prices dated '2031-01-01'",
        ),
        ("prices/carbon_pue.csv", ",2019,", ",,", "carbon_pue.csv line 2: a fact needs its as_of"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_written(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, message: str
) -> None:
    text = (collected / file).read_text(encoding="utf-8")
    (collected / file).write_text(text.replace(old, new), encoding="utf-8")
    assert main([str(collected), "--out", str(tmp_path / "facts")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "facts").exists()


def test_a_missing_table_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--out", str(tmp_path / "facts")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "list_prices.csv" in message
