"""How close estimates come to measured runs: `python -m benchmarks.accuracy`; prints tables, asserts nothing."""

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.measured_runs import Run, predict, runs
from benchmarks.memory_facts import memory_report
from planner.estimate import ceilings, chips, stacks

#: What a user would do without an estimator: 6 N D at two fifths of peak.
BASELINE_SHARE = 0.4


def log_ratio(run: Run) -> float:
    """ln(measured time / predicted time), nan if the estimator says that it cannot run."""
    found = predict(run)
    if found is None:
        return math.nan
    predicted = float(found.units_per_second[0]) / float(run.row["gpus_total"])
    return math.log(predicted / run.per_accelerator)


def baseline(run: Run) -> float:
    """The same for 6 N D / (0.4 peak)."""
    peak = chips.peak_tflops(run.machines.accelerators[0], run.row["precision"])
    if not peak:
        return math.nan
    flops = 6 * run.work.active_parameters if run.work.shape else run.work.flops_per_unit
    return math.log(peak * 1e12 * BASELINE_SHARE / flops / run.per_accelerator)


def errors(ratios: list[float]) -> tuple[float, float]:
    """Median and p90 of |predicted / measured time - 1|."""
    miss = np.abs(np.exp(-np.array(ratios)) - 1)
    return float(np.median(miss)), float(np.quantile(miss, 0.9))


def table(title: str, found: list[tuple[Run, float]], key: Callable[[Run], str]) -> dict[str, tuple[float, float]]:
    """Print one line per group."""
    groups: dict[str, list[tuple[Run, float]]] = defaultdict(list)
    for run, ratio in found:
        groups[key(run)].append((run, ratio))
    print(f"\n{title:34}{'runs':>6}{'median':>9}{'p90':>8}{'bias':>8}{'6ND':>9}{'p90':>8}")
    score = {}
    for name, part in sorted(groups.items()):
        ratios = [ratio for _, ratio in part]
        median, p90 = score[name] = errors(ratios)
        plain = [value for value in (baseline(run) for run, _ in part) if not math.isnan(value)]
        usual = errors(plain) if plain else (math.nan, math.nan)
        bias = math.exp(-float(np.median(ratios))) - 1
        print(f"{name:34}{len(part):6}{median:9.1%}{p90:8.1%}{bias:+8.1%}{usual[0]:9.1%}{usual[1]:8.1%}")
    return score


def family(run: Run) -> str:
    """Source groups that share a stack are one family: Megatron and NeMo, all of JAX on TPU."""
    return {"megatron-bridge": "nemo", "nemo-docs": "nemo", "megatron-lm": "nemo", "tpu-recipes": "maxtext"}.get(
        run.row["source_group"], run.row["source_group"]
    )


def report(found: list[tuple[Run, float]]) -> None:
    """All tables."""
    score = table("source group", found, lambda run: run.row["source_group"])
    median, p90 = (float(np.mean([pair[k] for pair in score.values()])) for k in (0, 1))
    print(f"{'mean over groups':34}{'':6}{median:9.1%}{p90:8.1%}")
    print("noise floor: identical MLPerf configurations differ by 6 % (median) and 35 % (p90) between submissions")
    table("class of work", found, lambda run: run.work.task)
    table("accelerator", found, lambda run: run.row["gpu"])
    table("precision", found, lambda run: run.row["precision"])
    table("class, chip generation", found, lambda run: f"{run.work.task} {run.machines.accelerators[0].architecture}")
    print("\nsigma of ln(actual / predicted) by class (80 % of |residual| / 1.28)")
    for task in sorted({run.work.task for run, _ in found}):
        part = np.array([ratio for run, ratio in found if run.work.task == task])
        print(f"  {task:24}{np.quantile(np.abs(part), 0.8) / 1.2816:6.2f}")


Constant = tuple[str, Callable[[], float], Callable[[float], None], float, float]


def _attribute(name: str, low: float, high: float) -> Constant:
    return name, lambda: float(getattr(stacks, name)), lambda value: setattr(stacks, name, value), low, high


def _entry(label: str, table_of: dict[str, float], key: str, low: float, high: float) -> Constant:
    return f"{label} {key}", lambda: table_of[key], lambda value: table_of.__setitem__(key, value), low, high


def _share(task: str, part: str, low: float, high: float) -> Constant:
    def put(value: float) -> None:
        stacks.SHARES[task] = replace(stacks.SHARES[task], **{part: value})

    return f"{task} {part}", lambda: float(getattr(stacks.SHARES[task], part)), put, low, high


def constants() -> list[Constant]:
    """What the search may move, within bounds that its cause allows."""
    shares = [
        _entry("stack", ceilings.STACK_BY_ARCHITECTURE, key, 0.4, 1.0)
        for key in ("Volta", "Ampere", "Hopper", "Blackwell", "Blackwell Ultra")
    ]
    tpus = [_entry("stack", ceilings.STACK_BY_NAME, key, 0.4, 1.0) for key in ceilings.STACK_BY_NAME]
    bounds = {
        "ATTENTION_SHARE": (0.2, 0.8),
        "HALF_SIZE": (50.0, 800.0),
        "HALF_TOKENS": (40.0, 600.0),
        "ROOFLINE_NORM": (1.0, 3.0),
        "OVERLAP": (0.2, 0.95),
        "HIDDEN_TAX": (0.01, 0.4),
        "TENSOR_EXPOSED": (0.2, 1.0),
        "EXPERT_EXPOSED": (0.3, 2.0),
        "STRAGGLER": (0.002, 0.03),
    }
    classes = [
        _share(task, part, 0.25, 1.1)
        for task in ("mixture-of-experts", "encoder", "vision-transformer", "convolutional")
        for part in ("matmul", "bandwidth")
    ]
    return [*shares, *tpus, *classes, *(_attribute(name, *pair) for name, pair in bounds.items())]


def loss(sample: list[Run]) -> float:
    """Mean over source groups of the mean |ln ratio|, each capped so that one bad source does not rule."""
    groups: dict[str, list[float]] = defaultdict(list)
    for run in sample:
        ratio = log_ratio(run)
        groups[run.row["source_group"]].append(1.0 if math.isnan(ratio) else min(1.0, abs(ratio)))
    return float(np.mean([np.mean(values) for values in groups.values()]))


def neutral() -> None:
    """Every constant to the geometric middle of its bounds, so that a fit owes nothing to the runs left out."""
    for _, _, put, low, high in constants():
        put(math.sqrt(low * high))
    chips.forget()


def fit(sample: list[Run], passes: int) -> None:
    """Coordinate search: each constant in turn a step up or down, steps shrinking with every pass."""
    best = loss(sample)
    print(f"fit: start {best:.4f} on {len(sample)} runs")
    for turn, (name, get, put, low, high) in itertools.product(range(passes), constants()):
        step = 0.3 / 2**turn
        for factor in (1 + step, 1 / (1 + step)):
            before = get()
            put(min(high, max(low, before * factor)))
            chips.forget()
            now = loss(sample)
            if now < best - 1e-5:
                best = now
                break
            put(before)
            chips.forget()
        print(f"  {turn} {name:28}{get():10.4g}  {best:.4f}", flush=True)


def main() -> None:
    """Print the tables; with --fit, search the constants first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", type=int, default=0, metavar="PASSES")
    parser.add_argument("--tasks", default="", help="classes of work, comma-separated; empty is all")
    parser.add_argument("--without", default="", metavar="FAMILY", help="fit on the others, report this family alone")
    asked = parser.parse_args()
    wanted = {task for task in asked.tasks.split(",") if task}
    sample = [run for run in runs() if not wanted or run.work.task in wanted]
    if asked.without:
        neutral()
        fit([run for run in sample if family(run) != asked.without], asked.fit or 3)
        sample = [run for run in sample if family(run) == asked.without]
    elif asked.fit:
        fit(sample, asked.fit)
    found = [(run, log_ratio(run)) for run in sample]
    failed = [run for run, ratio in found if math.isnan(ratio)]
    print(f"{len(found)} runs with known work, of which {len(failed)} cannot be run by the estimator")
    memory_report()
    report([(run, ratio) for run, ratio in found if not math.isnan(ratio)])


if __name__ == "__main__":
    main()
