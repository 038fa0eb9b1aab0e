"""Read the tables of the build: collected tables, the repository's facts, and small mapping tables."""

import csv
import io
import lzma
from importlib.resources import files
from pathlib import Path

Row = dict[str, str]
#: The facts behind the embedded catalogue, in the repository but not in the wheel.
FACTS = Path(__file__).parents[2] / "catalog" / "data" / "facts"


def read_table(path: Path) -> list[Row]:
    """The rows of one CSV file with a heading, as text. Raises `OSError` if it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fact_table(name: str, facts: Path = FACTS) -> list[Row]:
    """The rows of the fact table `NAME.csv.xz` in `facts`. Raises `OSError` if it cannot be read."""
    with lzma.open(facts / f"{name}.csv.xz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mapping_table(name: str) -> list[Row]:
    """The rows of `catalog/data/facts/NAME.csv`."""
    text = (files("gpuplan.catalog") / "data" / "facts" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
