"""How many measured runs of each class of work each accelerator has (`python -m tools.fitting.fit` writes the table)."""

import csv
from functools import cache
from importlib.resources import files


def measured_runs(accelerator: str, task: str) -> int:
    """Measured runs of this class of work on this accelerator that the constants were fitted to."""
    return _table().get((accelerator, task), 0)


@cache
def _table() -> dict[tuple[str, str], int]:
    with (files("gpuplan.planner.performance.calibration") / "coverage.csv").open(encoding="utf-8") as file:
        return {(row["accelerator"], row["task"]): int(row["runs"]) for row in csv.DictReader(file)}
