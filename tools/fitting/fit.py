"""Fit the time model's constants to the measured runs and write them down: `python -m tools.fitting.fit`.

Starts from the priors, not from the last fit, and draws nothing by chance: the same runs give the same constants. The
layouts of runs that do not tell theirs depend on the constants, so they are found twice. Bands
come from runs whose source was left out.
"""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from gpuplan.planner.performance import accelerator_constants
from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.fitted_constants import FITTED, Key, table, trying
from gpuplan.planner.performance.prediction_bands import Z80
from tools.fitting.least_squares_fit import (
    comparisons,
    fit,
    identified_by,
    linearised,
    offset_by_others,
    priors,
    without_source,
)
from tools.fitting.measured_runs import Run, runs
from tools.fitting.run_pairs import pairs_of
from tools.fitting.stacked_runs import Sample, sample_of

CALIBRATION = Path(__file__).resolve().parents[2] / "planner" / "performance" / "calibration"
CONSTANTS, COVERAGE = CALIBRATION / "constants.csv", CALIBRATION / "coverage.csv"
ROUNDS = 4
#: Runs of a class below which its band stays as set, and runs of known work below which they do not tell its level.
ENOUGH_RUNS = 20
SIGMA, RATIO = "band_sigma", "ratio_sigma"
#: Runs with partners below which the ratios of a class have the band of its hours.
ENOUGH_PAIRED = 9


def fitted() -> tuple[Sample, dict[Key, float]]:
    """The sample with the layouts that the fitted constants choose, and those constants."""
    measured, values = runs(), priors()
    for _ in range(2):
        sample = _sampled(measured, values)
        values = fit(sample, np.ones(len(sample.runs), dtype=bool), values, rounds=ROUNDS)
    return _sampled(measured, values), values


def _sampled(runs: list[Run], values: Mapping[Key, float]) -> Sample:
    with trying(values):
        accelerator_constants.forget()
        return sample_of(runs)


def sigmas(sample: Sample, left: Floats) -> dict[Key, tuple[float, int]]:
    """Per class: the sigma whose 80 % band holds 80 % of the runs of known work that were left out, and how many they are.

    Ratios between runs of one unknown work say nothing of its level, so where a class has few others, the spread is
    added to that of ratios that its matmul rate had before any run. A class with few runs of any kind stays as set.
    """
    task = np.array([run.work.task for run in sample.runs])
    absolute = np.array([run.row["scored"] == "absolute" for run in sample.runs])
    known, by_task = ~np.isnan(left), {}
    for name in np.unique(task[known]):
        of_task, added = known & (task == name), 0.0
        if np.count_nonzero(of_task & absolute) >= ENOUGH_RUNS:
            of_task &= absolute
        elif np.count_nonzero(of_task) >= ENOUGH_RUNS:
            added = table()["class_matmul", str(name)].spread or 0.0
        else:
            continue
        sigma = math.hypot(float(np.quantile(np.abs(left[of_task]), 0.8)) / Z80, added)
        by_task[SIGMA, str(name)] = sigma, int(np.count_nonzero(of_task))
    return by_task


def ratio_sigmas(sample: Sample, left: Floats) -> dict[Key, tuple[float, int]]:
    """Per class: the sigma whose 80 % band holds 80 % of the ratios between two runs, and how many runs have a partner."""
    pairs = pairs_of(sample, left)
    by_task = {str(name): pairs.of(str(name)) for name in np.unique(pairs.task)}
    return {(RATIO, name): (of.sigma(), of.runs) for name, of in by_task.items() if of.runs >= ENOUGH_PAIRED}


def write(values: Mapping[Key, float], counts: Mapping[Key, int]) -> None:
    """The table again, with new values where there are any. Raises KeyError for a value without a row."""
    with CONSTANTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if unlisted := set(values) - {(row["name"], row["key"]) for row in rows}:
        raise KeyError(f"{CONSTANTS.name} has no row for {sorted(unlisted)}: add it with a prior, bounds and a meaning")
    for row in rows:
        key = row["name"], row["key"]
        if key in values:
            row["value"], row["runs"] = f"{values[key]:.4g}", str(counts[key])
    with CONSTANTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_coverage(runs: Iterable[Run]) -> None:
    """The number of runs by accelerator and class of work."""
    counts = Counter((run.row["gpu"], run.work.task) for run in runs)
    with COVERAGE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("accelerator", "task", "runs"))
        writer.writerows((*key, count) for key, count in sorted(counts.items()))


def main() -> None:
    """Fit, write, and print what moved."""
    sample, values = fitted()
    write_coverage(sample.runs)
    rounded = {key: float(f"{value:.4g}") for key, value in values.items()}
    counts = identified_by(linearised(sample, rounded))
    with trying(rounded):
        left = without_source(sample, rounded)
        bands = sigmas(sample, offset_by_others(left, comparisons(sample))) | ratio_sigmas(sample, left)
    write(rounded | {key: sigma for key, (sigma, _) in bands.items()}, counts | {k: n for k, (_, n) in bands.items()})
    print(f"{len(sample.runs)} runs\n{'constant':54}{'prior':>10}{'before':>10}{'now':>10}{'runs':>6}")
    for key, now in rounded.items():
        row = table()[key]
        print(f"{' '.join(key):54}{row.prior:10.4g}{row.value:10.4g}{now:10.4g}{counts[key]:6}")
    for key, (sigma, count) in bands.items():
        print(f"{' '.join(key):54}{table()[key].prior:10.4g}{table()[key].value:10.4g}{sigma:10.4g}{count:6}")
    fixed = sum(row.source != FITTED for row in table().values())
    print(f"{fixed} constants are fixed from literature, each with its source in {CONSTANTS.name}")


if __name__ == "__main__":
    main()
