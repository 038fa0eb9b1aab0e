"""Accuracy of estimates against measured runs: `python -m tools.fitting.accuracy`; prints tables, asserts nothing.

Every figure is of runs whose source was left out of the fit, all MLPerf rounds together as one source; in-sample errors and
6 N D at two fifths of peak stand beside them. Runs with an unknown amount of work (minutes to train, varying units) count
against the median of the others that did the same work. Means are over sources with at least nine runs.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.model.job import Preset, Training
from gpuplan.planner.performance import accelerator_constants, estimate
from gpuplan.planner.performance.estimator_request import Floats, LayoutRequest
from gpuplan.planner.performance.fitted_constants import trying
from gpuplan.planner.performance.prediction_bands import Z80, log_sigma, ratio_sigma_of
from gpuplan.planner.workload import work_of
from tools.fitting.least_squares_fit import comparisons, current, linearised, offset_by_others, scored, solved, under
from tools.fitting.measured_runs import Run, machine, rows, runs, why_unanswered
from tools.fitting.run_pairs import pairs_of
from tools.fitting.stacked_runs import Sample, sample_of

#: The usual estimate without an estimator: 6 N D at two fifths of peak.
BASELINE_SHARE = 0.4
#: Precisions of the baseline for a row without one: the first that the chip has.
_USUAL = ("bf16", "fp16", "fp32")
#: Sources with fewer runs are shown and left out of means.
LEAST_RUNS = 9
#: Draws of a bootstrap over sources, and of halves of the published runs.
_DRAWS = 400
_HALVES = 20
#: TFLOP/s per H100 in training Llama 3 405B (Llama Team 2024, table 4): accelerators, sequence length, context
#: parallel ways, data-parallel replicas, sequences per replica, measured. Tensor parallelism 8, 16 stages, bf16.
_LLAMA_3 = (
    (8_192, 8_192, 1, 64, 32, 430.0),
    (16_384, 8_192, 1, 128, 16, 400.0),
    (16_384, 131_072, 16, 8, 16, 380.0),
)


def errors(ratios: Floats) -> tuple[float, float]:
    """Median and p90 of |predicted / measured time - 1|."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return math.nan, math.nan
    miss = np.abs(np.exp(-known) - 1)
    return float(np.median(miss)), float(np.quantile(miss, 0.9))


def source_of(run: Run) -> str:
    """The source group; all MLPerf rounds are one."""
    group = run.row["group"]
    return "mlperf" if group.startswith("mlperf") else group


def source_out(sample: Sample) -> Floats:
    """Residuals of each source under the constants that the others give; in unknown units they have an unknown offset."""
    now, left = current(), np.full(len(sample.runs), np.nan)
    linear, names = linearised(sample, now), np.array([source_of(run) for run in sample.runs])
    for name in np.unique(names):
        out = names == name
        left[out] = under(sample, solved(sample, linear, ~out))[out]
    return left


def published_half_out(sample: Sample) -> tuple[float, float, int]:
    """Median and p90 error of published long runs under constants fitted without a random half of them; and their number."""
    published = np.array([bool(run.row["total_flops"]) for run in sample.runs])
    linear, rng, left = linearised(sample, current()), np.random.default_rng(0), []
    for _ in range(_HALVES):
        out = published & (rng.random(len(published)) < 0.5)
        left.append(scored(sample, solved(sample, linear, ~out))[out])
    return *errors(np.concatenate(left)), int(published.sum())


def baseline(run: Run) -> float:
    """ln(rate at 6 N D / (0.4 peak) / measured rate)."""
    chip = run.machines.accelerators[0]
    named = "" if run.training.precision == "auto" else run.training.precision
    peak = next(
        (result for name in (named, *_USUAL) if name and (result := accelerator_constants.peak_tflops(chip, name))),
        None,
    )
    flops = 6 * run.work.active_parameters if run.work.shape else run.work.flops_per_unit
    return math.log(peak * 1e12 * BASELINE_SHARE / flops / run.per_accelerator) if peak else math.nan


def table(title: str, names: NDArray[np.str_], parts: dict[str, Floats]) -> None:
    """Print one line per group, and the means over groups with enough runs and a 95 % interval over groups."""
    first = next(iter(parts.values()))
    print(f"\n{title:26}{'runs':>6}{'bias':>7}" + "".join(f"{head:>16}" for head in parts) + "   (median, p90)")
    group_errors = []
    for name in np.unique(names):
        left = first[names == name]
        count = int(np.count_nonzero(~np.isnan(left)))
        if not count:
            continue
        pairs = [errors(part[names == name]) for part in parts.values()]
        if count >= LEAST_RUNS:
            group_errors.append(pairs)
        few = "" if count >= LEAST_RUNS else "  (few)"
        print(f"{name:26}{count:6}{math.exp(-float(np.nanmedian(left))) - 1:+7.0%}{_cells(pairs)}{few}")
    means = np.array(group_errors)
    print(f"{'mean over groups':39}{_cells(np.nanmean(means, axis=0).tolist())}")
    drawn = np.random.default_rng(0).integers(0, len(means), (_DRAWS, len(means)))
    low, high = np.quantile(np.nanmean(means[drawn], axis=1), (0.025, 0.975), axis=0)
    print(f"{'95 % interval, from':39}{_cells(low.tolist())}\n{'to':39}{_cells(high.tolist())}")


def _cells(pairs: list[tuple[float, float]]) -> str:
    return "".join(f"{median:9.1%}{p90:7.1%}" for median, p90 in pairs)


def coverage(sample: Sample, answered: Floats) -> None:
    """How many of the runs with a throughput have a scorable answer, per task as the sources name it, and why others have none."""
    reasons = Counter(why_unanswered(row) for row in rows("runs.csv.xz"))
    usable = Counter(row["task"] for row in rows("runs.csv.xz") if row["throughput"] and row["gpus_total"])
    scored_runs = Counter(
        run.row["task"] for run, left in zip(sample.runs, answered, strict=True) if not math.isnan(left)
    )
    print(f"{'task':22}{'runs':>6}{'scored':>8}")
    for task, count in sorted(usable.items()):
        print(f"{task:22}{count:6}{scored_runs[task] / count:8.1%}")
    print(f"{'all':22}{usable.total():6}{scored_runs.total() / usable.total():8.1%}")
    del reasons[""]
    for reason, count in reasons.most_common():
        print(f"  without an answer: {count:3} {reason}")


def band_report(sample: Sample, left: Floats) -> None:
    """How many runs of left-out sources are inside the 80 % band, per class.

    Runs of known work test the whole band. Runs of unknown work test ratios alone, as those between two runs of the same work on
    different machines, against the band of a ratio, which jobs of `kind: measured` have.
    """
    sigma, task = np.array([_sigma(run) for run in sample.runs]), np.array([run.work.task for run in sample.runs])
    known = np.array([run.row["scored"] == "absolute" for run in sample.runs]) & ~np.isnan(left)
    pairs = pairs_of(sample, left)
    print(
        f"\n{'80 % band, source out':26}{'known work':>11}{'sigma':>8}{'inside':>8}{'ratios':>11}{'sigma':>8}{'inside':>8}"
    )
    for name in np.unique(task):
        whole, ratios = known & (task == name), pairs.of(str(name))
        inside = float(np.mean(np.abs(left[whole]) <= Z80 * sigma[whole])) if whole.any() else math.nan
        middle = float(np.median(sigma[whole])) if whole.any() else math.nan
        shown = f"{name:26}{np.count_nonzero(whole):11}{middle:8.2f}{inside:8.1%}{ratios.runs:11}"
        ratio = ratio_sigma_of(str(name))
        print(f"{shown}{ratio:8.2f}{ratios.inside(ratio):8.1%}" if ratios.runs else shown)
    print(f"{'all':26}{np.count_nonzero(known):11}{np.mean(np.abs(left[known]) <= Z80 * sigma[known]):16.1%}")


def _sigma(run: Run) -> float:
    unmeasured = not accelerator_constants.chips_of(run.machines.accelerators).measured[0]
    return float(log_sigma(run.work, np.array([float(unmeasured)]))[0])


def noise_floor(sample: Sample) -> None:
    """Errors of predicting a run by the median of the others with the same configuration, where there are others."""
    alike: dict[tuple[str, ...], list[float]] = defaultdict(list)
    columns = ("group", "task", "model", "gpu", "gpus_total", "precision", "global_batch", "micro_batch", "parallelism")
    for run in sample.runs:
        if run.row["throughput_unit"] == "minutes_to_train":
            alike[tuple(run.row[name] for name in columns)].append(math.log(run.per_accelerator))
    left = [
        value - float(np.median(np.delete(values, index)))
        for values in map(np.array, alike.values())
        if len(values) > 1
        for index, value in enumerate(values)
    ]
    median, p90 = errors(np.array(left))
    print(f"\nnoise floor, {len(left)} MLPerf runs of equal configuration: {median:.1%} median, {p90:.1%} p90")


def llama_3() -> None:
    """Print predicted against published TFLOP/s; PaLM's definition of MFU, which the paper uses, counts 12 L h s."""
    print("\nLlama 3 405B, tensor 8, 16 stages, H100          measured  predicted  error  by PaLM's count  error")
    chip, training = accelerators()["H100-80GB-SXM"], Training(precision="bf16")
    for gpus, length, context, replicas, sequences, measured in _LLAMA_3:
        batch = float(length * replicas * sequences)
        workload = Preset(model="llama-3.1-405b", tokens=1e12, sequence_length=length, global_batch_tokens=batch)
        work = work_of(workload, training)
        request = LayoutRequest(tensor=8, pipeline=16, context=context)
        predicted = estimate(work, training, machine(chip, gpus, 8), goodput=1.0, request=request)
        tflops = float(predicted.tflops_per_accelerator[0])
        whole = tflops * _palm_flops(work.active_parameters, length) / _causal_flops(work.active_parameters, length)
        fits = "" if not predicted.reason[0] else "  does not fit"
        print(
            f"  {gpus:6} accelerators, {length:7} tokens{measured:17.0f}{tflops:11.0f}{tflops / measured - 1:+7.1%}"
            f"{whole:17.0f}{whole / measured - 1:+7.1%}{fits}"
        )


def _causal_flops(parameters: float, length: int) -> float:
    return 6 * parameters + 6 * 126 * 16_384 * length


def _palm_flops(parameters: float, length: int) -> float:
    return 6 * parameters + 12 * 126 * 16_384 * length


def adapter_pairs(sample: Sample, left: Floats) -> None:
    """Print how much slower QLoRA is than LoRA, measured and predicted, for runs that differ in nothing else."""
    by_pair: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for run, residual in zip(sample.runs, left, strict=True):
        if run.row["group"] == "litgpt" and run.training.method != "full":
            key = run.row["model"].split(" (")[0], run.row["micro_batch"]
            seconds = -math.log(run.per_accelerator)
            by_pair[key][run.training.method].append((seconds, seconds - residual))
    print("\nQLoRA / LoRA                 measured  predicted  error")
    for (model, size), methods in sorted(by_pair.items()):
        if len(methods) == 2:
            means = {method: np.mean(values, axis=0) for method, values in methods.items()}
            measured, predicted = np.exp(means["qlora"] - means["lora"])
            print(f"  {model:18} batch {size:3}{measured:9.2f}{predicted:11.2f}{predicted / measured - 1:+7.1%}")


def main() -> None:
    """Print the tables."""
    sample = sample_of(runs())
    with trying(current()):
        within = scored(sample, current())
    unscored = source_out(sample)
    out = offset_by_others(unscored, comparisons(sample))
    plain = offset_by_others(np.array([baseline(run) for run in sample.runs]), comparisons(sample))
    coverage(sample, within)
    absolute = np.array([run.row["scored"] == "absolute" for run in sample.runs])
    parts = {"source out": out, "in sample": within, "6ND x 0.4": plain}
    keys: tuple[tuple[str, Callable[[Run], str]], ...] = (
        ("source", source_of),
        ("class of work", lambda run: run.work.task),
        ("year", lambda run: run.row["year"] or "not stated"),
        ("accelerator", lambda run: run.row["gpu"]),
        ("precision", lambda run: run.row["precision"] or "not stated"),
        ("software class", lambda run: run.training.software),
    )
    for title, key in keys:
        table(title, np.array([key(run) for run in sample.runs]), parts)
    known_units = {name: np.where(absolute, part, np.nan) for name, part in parts.items()}
    table("source, absolute units", np.array([source_of(run) for run in sample.runs]), known_units)
    weighted = {name: errors(part) for name, part in parts.items()}
    print(f"\n{'every run weighs the same':39}{_cells(list(weighted.values()))}")
    median, p90, count = published_half_out(sample)
    print(f"published long runs, a half of {count} left out: {median:.1%} median, {p90:.1%} p90")
    noise_floor(sample)
    band_report(sample, unscored)
    llama_3()
    adapter_pairs(sample, within)


if __name__ == "__main__":
    main()
