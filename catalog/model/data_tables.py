"""Read the tables in `data/`."""

import csv
import io
from importlib.resources import files


def data_table(name: str) -> list[dict[str, str]]:
    """The rows of `catalog/data/NAME`, as text. Raises `OSError` if the file is missing."""
    text = (files("gpuplan.catalog") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))
