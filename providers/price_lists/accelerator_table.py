"""A provider's own names of accelerators: a table beside its package, from that name to gpuplan's."""

import csv
import io
from functools import cache
from importlib.resources import files


@cache
def accelerator_names(package: str) -> dict[str, str]:
    """gpuplan's name by the provider's, from `gpus.csv` of the package: its first column is the provider's name."""
    text = (files(package) / "gpus.csv").read_text(encoding="utf-8")
    rows = csv.reader(io.StringIO(text))
    next(rows)
    return {row[0]: row[1] for row in rows}
