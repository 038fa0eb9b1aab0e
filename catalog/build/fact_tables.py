"""Reading the fact tables: those given to the build, and the small mapping tables that lie beside it."""

import csv
import io
from importlib.resources import files
from pathlib import Path

Row = dict[str, str]


def read_table(path: Path) -> list[Row]:
    """The rows of one CSV file with a heading, as text. Raises `OSError` if it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mapping_table(name: str) -> list[Row]:
    """The rows of `catalog/build/facts/NAME.csv`."""
    text = (files("catalog.build") / "facts" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
