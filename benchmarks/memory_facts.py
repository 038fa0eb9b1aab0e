"""Measured memory facts against estimates: OOMs called, fits called, error of the peak."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from benchmarks.measured_runs import machine, request_of, rows, training_of, work_of_row
from catalog.accelerators import accelerators
from catalog.errors import UnusableInput
from planner.estimate import estimate
from planner.estimate.clusters import DOES_NOT_FIT
from planner.estimate.machines import Estimates
from planner.estimate.memory import FRAGMENTATION

GIB_PER_GB = 1e9 / (1 << 30)
#: What a measured peak holds of the parts of an estimate: (activations share, context counted).
_KINDS: dict[str, tuple[float, bool]] = {
    "max_memory_allocated": (1 / FRAGMENTATION, False),
    "max_memory_reserved": (1.0, False),
    "GPU peak": (1.0, True),
    "GPU peak (README table)": (1.0, True),
}


def memory_report() -> None:
    """Print how many OOMs and fits are called and the error of the peaks."""
    called: dict[tuple[str, bool], list[bool]] = defaultdict(list)
    peaks: dict[str, list[float]] = defaultdict(list)
    for row in rows("memory_calibration.csv"):
        found = _estimated(row)
        if found is None:
            continue
        fits = row["fits"] == "1"
        called[row["source_group"], fits].append((int(found.reason[0]) != DOES_NOT_FIT) == fits)
        if row["peak_gb"]:
            measured = float(row["peak_gb"]) * GIB_PER_GB
            peaks[f"{row['source_group']} {row['method']} {row['peak_kind']}"].append(_peak(found, row) / measured)
    for name, fits in (("fits", True), ("OOMs", False)):
        parts = {group: values for (group, kind), values in called.items() if kind == fits}
        total = [value for values in parts.values() for value in values]
        print(f"\n{name} called: {np.mean(total):.1%} of {len(total)}")
        _lines(parts, lambda values: f"{np.mean(values):8.1%}")
    print("\npeak, predicted / measured: median, median error, p90 error")
    _lines(peaks, lambda values: _spread(np.array(values)))
    everything = np.array([value for values in peaks.values() for value in values])
    print(f"  {'all':52}{len(everything):5}{_spread(everything)}")


def _lines[T](parts: dict[str, list[T]], text: Callable[[list[T]], str]) -> None:
    for name, values in sorted(parts.items()):
        print(f"  {name:52}{len(values):5}{text(values)}")


def _spread(ratios: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    miss = np.abs(ratios - 1)
    return f"{np.median(ratios):8.2f}{np.median(miss):8.1%}{np.quantile(miss, 0.9):8.1%}"


def _estimated(row: dict[str, str]) -> Estimates | None:
    chip = accelerators().get(row["gpu"])
    if chip is None or not row["gpus_total"]:
        return None
    gpus = int(row["gpus_total"])
    training = training_of(row)
    try:
        work = work_of_row(row, training, gpus)
    except UnusableInput:
        return None
    if work is None:
        return None
    found = estimate(work, training, machine(chip, gpus, 0, ""), goodput=1.0, request=request_of(row, gpus))
    return found if found.reason[0] in {0, DOES_NOT_FIT} else None


def _peak(found: Estimates, row: dict[str, str]) -> float:
    share, context = _KINDS.get(row["peak_kind"], (1.0, True))
    other = found.other_gib[0] if context else max(0.0, found.other_gib[0] - 0.6)
    return float(found.states_gib[0] + found.activations_gib[0] * share + other)
