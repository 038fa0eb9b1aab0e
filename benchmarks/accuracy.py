"""How close estimates come to measured runs: `python -m benchmarks.accuracy`; prints tables, asserts nothing.

In sample, with each source left out of the fit of the constants, and with each family of sources left out; beside it
what 6 N D at two fifths of peak would say. Runs whose work is not known (minutes to train, units that
vary) count against the median of the others that did the same work.
"""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import comparisons, offset_by_others
from benchmarks.leave_out import Held, held_out
from benchmarks.measured_runs import Run, rows, runs
from benchmarks.stacked import Sample, sample_of
from planner.estimate import chips
from planner.estimate.bands import Z80, log_sigma
from planner.estimate.machines import Floats

#: What a user would do without an estimator: 6 N D at two fifths of peak.
BASELINE_SHARE = 0.4
#: Precisions of the baseline where a row names none: the first that the chip has.
_USUAL = ("bf16", "fp16", "fp32")


def errors(ratios: Floats) -> tuple[float, float]:
    """Median and p90 of |predicted / measured time - 1|."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return math.nan, math.nan
    miss = np.abs(np.exp(-known) - 1)
    return float(np.median(miss)), float(np.quantile(miss, 0.9))


def baseline(run: Run) -> float:
    """ln(rate at 6 N D / (0.4 peak) / measured rate)."""
    chip = run.machines.accelerators[0]
    named = run.row["precision"]
    peak = next((found for name in (named, *_USUAL) if name and (found := chips.peak_tflops(chip, name))), None)
    flops = 6 * run.work.active_parameters if run.work.shape else run.work.flops_per_unit
    return math.log(peak * 1e12 * BASELINE_SHARE / flops / run.per_accelerator) if peak else math.nan


def table(title: str, names: NDArray[np.str_], held: Held, plain: Floats) -> None:
    """Print one line per group, and the mean over groups."""
    parts = (held.in_sample, held.without_source, held.without_family, plain)
    heads = ("in sample", "source out", "family out", "6ND x 0.4")
    print(f"\n{title:26}{'runs':>6}{'bias':>7}" + "".join(f"{head:>15}" for head in heads) + "   (median, p90)")
    found = []
    for name in np.unique(names):
        here = names == name
        if not np.any(~np.isnan(held.in_sample[here])):
            continue
        found.append([errors(part[here]) for part in parts])
        bias = math.exp(-float(np.nanmedian(held.in_sample[here]))) - 1
        print(f"{name:26}{np.count_nonzero(here):6}{bias:+7.0%}" + _cells(found[-1]))
    print(f"{'mean over groups':39}" + _cells(np.nanmean(np.array(found), axis=0).tolist()))


def _cells(pairs: list[tuple[float, float]]) -> str:
    return "".join(f"{median:8.1%}{p90:7.1%}" for median, p90 in pairs)


def coverage(sample: Sample, answered: Floats) -> None:
    """How many of the usable runs have an answer that could be scored, per task as the sources name it."""
    usable = Counter(row["task"] for row in rows("runs.csv.xz"))
    scored = Counter(run.row["task"] for run, left in zip(sample.runs, answered, strict=True) if not math.isnan(left))
    print(f"{'task':22}{'runs':>6}{'scored':>8}")
    for task, count in sorted(usable.items()):
        print(f"{task:22}{count:6}{scored[task] / count:8.1%}")
    print(f"{'all':22}{usable.total():6}{scored.total() / usable.total():8.1%}")


def band_report(sample: Sample, left: Floats) -> None:
    """How many runs of left-out sources are inside the 80 % band, with all and with the other sources' spread."""
    sigma = np.array([_sigma(run) for run in sample.runs])
    task, group = (np.array(names) for names in zip(*((r.work.task, r.row["group"]) for r in sample.runs), strict=True))
    other = _spread_of_others(left, task, group, sigma)
    known = ~np.isnan(left)
    print(f"\n{'80 % band, source out':26}{'runs':>6}{'sigma':>8}{'inside':>8}{'inside, sigma of other sources':>32}")
    for name in (*np.unique(task[known]), "all"):
        here = known & ((task == name) | (name == "all"))
        inside = [float(np.mean(np.abs(left[here]) <= Z80 * width[here])) for width in (sigma, other)]
        print(f"{name:26}{np.count_nonzero(here):6}{np.median(sigma[here]):8.2f}{inside[0]:8.1%}{inside[1]:32.1%}")


def _sigma(run: Run) -> float:
    unmeasured = not chips.chips_of(run.machines.accelerators).measured[0]
    return float(log_sigma(run.work, np.array([float(unmeasured)]))[0])


def _spread_of_others(left: Floats, task: NDArray[np.str_], group: NDArray[np.str_], sigma: Floats) -> Floats:
    """Sigma of each run from the runs of its class in other sources; the stated one where there are under ten."""
    width, known = sigma.copy(), ~np.isnan(left)
    for name, source in sorted(set(zip(task.tolist(), group.tolist(), strict=True))):
        others = np.abs(left[known & (task == name) & (group != source)])
        if len(others) >= 10:
            width[(task == name) & (group == source)] = np.quantile(others, 0.8) / Z80
    return width


def main() -> None:
    """Print the tables."""
    sample = sample_of(runs())
    held = held_out(sample)
    plain = offset_by_others(np.array([baseline(run) for run in sample.runs]), comparisons(sample))
    coverage(sample, held.in_sample)
    keys: tuple[tuple[str, Callable[[Run], str]], ...] = (
        ("source group", lambda run: run.row["group"]),
        ("family", lambda run: run.row["family"]),
        ("task", lambda run: run.row["task"]),
        ("class of work", lambda run: run.work.task),
        ("accelerator", lambda run: run.row["gpu"]),
        ("precision", lambda run: run.row["precision"] or "not stated"),
        ("software class", lambda run: run.training.software),
    )
    for title, key in keys:
        table(title, np.array([key(run) for run in sample.runs]), held, plain)
    print("\nnoise floor: identical MLPerf configurations differ by 6 % (median) and 35 % (p90) between submissions")
    band_report(sample, held.without_source)


if __name__ == "__main__":
    main()
