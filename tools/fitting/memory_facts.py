"""Measured memory against estimates: predicted OOMs and fits, error of the peak: `python -m tools.fitting.memory_facts`.

A fact is a run that fitted or ran out of memory, or a measured peak. A peak also implies that the run does not fit into any
smaller accelerator of the catalogue, and does fit into one that is clearly larger. `--fit` fits the constants again and
leaves each source out once.
"""

import argparse
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from gpuplan.planner.performance import accelerator_memory, estimate
from gpuplan.planner.performance.accelerator_constants import CONTEXT_GIB, DRIVER_GIB
from gpuplan.planner.performance.accelerator_memory import GROUP_BUFFERS_GIB
from gpuplan.planner.performance.estimator_request import Estimates
from gpuplan.planner.performance.memory_headroom import loading_gib
from gpuplan.planner.workload import activations, transformer
from gpuplan.planner.workload.training_methods import software_of
from tools.fitting.memory_rows import Fact, facts, sizes_gib, work_of_fact

_ROOMY_MIB = 1e9
#: How much larger than the measured peak an accelerator must be to count as sufficient: the allocator's reserve is not
#: always measured.
CLEARLY = 1.15
#: Standard normal quantile of a 95 % interval.
_Z95 = 1.96
#: What is fitted, with bounds.
BOUNDS = {"rest_bytes": (0.0, 4.0), "plain_fragmentation": (1.0, 2.0)}
#: A wrong prediction of fit or OOM weighs like a peak that is wrong by this factor (natural logarithm).
_MISCALLED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMemory:
    """One fact with what is predicted for it, GiB per device.

    `predicted` is to be compared with the measured peak; `needed` is all that the device must offer, which
    `measured_need` is by measurement (nan without a peak). `contradicts` marks peaks below the weights, gradients and
    optimizer state that their own row says were held.
    """

    fact: Fact
    called_fits: bool
    predicted: float
    needed: float
    measured_need: float
    contradicts: bool


def seen(fact: Fact) -> ObservedMemory:
    """The estimator's result for `fact`."""
    prediction = _estimate(fact, roomy=True)
    other = CONTEXT_GIB["NVIDIA"] + (GROUP_BUFFERS_GIB if int(fact.machines.devices[0]) > 1 else 0.0)
    peak = float(prediction.peak_gib[0])
    slack = 0.0 if fact.reserved else float(prediction.activations_gib[0]) * (1 - 1 / _fragmentation(fact))
    loading = (loading_gib(fact.work, prediction, 2.0) or 0.0) if fact.loads_whole else 0.0
    if loading:
        # Memory used for loading stays with the allocator, and activations cannot use its fragments.
        loading += float(prediction.activations_gib[0])
    needed = max(peak, loading + other)
    layout_is_stated = fact.request.micro_batch and fact.request.checkpointing
    room = float(prediction.capacity_gib[0]) * (1 - accelerator_memory.MARGIN)
    fits = needed <= room if layout_is_stated else not _estimate(fact, roomy=False).reason[0]
    measured = fact.peak_gib
    return ObservedMemory(
        fact=fact,
        called_fits=bool(fits),
        predicted=needed if fact.whole else max(peak - other - slack, loading),
        needed=needed,
        measured_need=math.nan if measured is None else measured + (0.0 if fact.whole else other),
        contradicts=measured is not None
        and fact.training.method == "full"
        and measured < float(prediction.states_gib[0]),
    )


def _estimate(fact: Fact, *, roomy: bool) -> Estimates:
    """The estimate on the fact's own machine, or on one where everything fits."""
    machines = replace(fact.machines, device_memory_mib=np.array([_ROOMY_MIB])) if roomy else fact.machines
    prediction = estimate(fact.work, fact.training, machines, goodput=1.0, request=fact.request)
    usable_gib = float(fact.machines.device_memory_mib[0]) / 1024 - DRIVER_GIB["NVIDIA"]
    return replace(prediction, capacity_gib=np.array([usable_gib]))


def _fragmentation(fact: Fact) -> float:
    return accelerator_memory.FRAGMENTATION.get(software_of(fact.training), 1.0)


def calls(
    all_seen: list[ObservedMemory], margin: float = accelerator_memory.MARGIN
) -> dict[tuple[str, bool], list[tuple[str, bool]]]:
    """(kind, fits) -> (source, whether it is called): kinds `told`, `derived` (nearest size only) and `every size`.

    A run is called a fit where it needs at most 1 - `margin` of what the device offers.
    """
    result: dict[tuple[str, bool], list[tuple[str, bool]]] = defaultdict(list)
    capacities = sizes_gib() - DRIVER_GIB["NVIDIA"]
    for observed_memory in all_seen:
        if observed_memory.contradicts:
            continue
        source, need = observed_memory.fact.source, observed_memory.needed / (1.0 - margin)
        usable_gib = float(observed_memory.fact.machines.device_memory_mib[0]) / 1024 - DRIVER_GIB["NVIDIA"]
        called = observed_memory.called_fits if margin == accelerator_memory.MARGIN else need <= usable_gib
        result["told", observed_memory.fact.fits].append((source, called == observed_memory.fact.fits))
        if math.isnan(observed_memory.measured_need):
            continue
        below = capacities[capacities < observed_memory.measured_need]
        above = capacities[capacities >= CLEARLY * observed_memory.measured_need]
        result["every size", False] += [(source, bool(need > size)) for size in below]
        result["every size", True] += [(source, bool(need <= size)) for size in above]
        result["derived", False] += [(source, bool(need > size)) for size in below[-1:]]
        result["derived", True] += [(source, bool(need <= size)) for size in above[:1]]
    return result


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    share, square = hits / of, _Z95**2 / of
    middle = (share + square / 2) / (1 + square)
    half = _Z95 * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def memory_report() -> None:
    """Print how many OOMs and fits are called, with their 95 % intervals, and the error of the peaks."""
    known, left = facts()
    all_seen = [seen(fact) for fact in known]
    print(f"{len(known)} memory facts asked about, {len(left)} not: {_counts_by_reason([why for _, why in left])}")
    _print_calls(all_seen)
    _print_margins(all_seen)
    usable = [item for item in all_seen if not item.contradicts]
    print("\npeak, predicted / measured: median, median error, p90 error")
    _print_peaks(usable)
    print("\nthe same with adapters on every projection, as where a job does not tell:")
    untold = [seen(_everywhere(item.fact)) for item in usable if item.fact.training.method != "full"]
    _print_peaks(untold)
    wrong = [item.fact.row["id"] for item in all_seen if item.contradicts]
    print(f"  left out, since less was measured than the states that the row tells of: {', '.join(wrong)}")


def _everywhere(fact: Fact) -> Fact:
    """The fact as a job without the position of its adapters."""
    training = replace(fact.training, adapters_on="all")
    work = work_of_fact(fact.row, training, int(fact.machines.devices[0] * fact.machines.nodes[0]))
    return fact if work is None else replace(fact, training=training, work=work)


def _print_calls(all_seen: list[ObservedMemory]) -> None:
    print("\ncalled right                         fits                          OOMs")
    result = calls(all_seen)
    for kind, what in (
        ("told", "as measured"),
        ("derived", "from peaks, nearest size"),
        ("every size", "from peaks, every size"),
    ):
        cells = [_rate([hit for _, hit in result[kind, fits]]) for fits in (True, False)]
        print(f"  {what:26}{cells[0]:>30}{cells[1]:>30}")
    both = [[hit for kind in ("told", "derived") for _, hit in result[kind, fits]] for fits in (True, False)]
    print(f"  {'measured and nearest size':26}{_rate(both[0]):>30}{_rate(both[1]):>30}")
    missed = [
        observed_memory.fact.row["id"]
        for observed_memory in all_seen
        if observed_memory.called_fits != observed_memory.fact.fits and not observed_memory.contradicts
    ]
    print(f"  miscalled as measured: {', '.join(missed) or 'none'}")


def _print_margins(all_seen: list[ObservedMemory]) -> None:
    print("\nmargin: fits and OOMs called, as measured and nearest size")
    for margin in (0.0, 0.02, 0.04, 0.05, 0.06, 0.08, 0.1):
        result = calls(all_seen, margin)
        rates = [
            np.mean([hit for kind in ("told", "derived") for _, hit in result[kind, fits]]) for fits in (True, False)
        ]
        print(f"  {margin:4.0%}{rates[0]:9.1%}{rates[1]:9.1%}")


def _rate(hits: list[bool]) -> str:
    low, high = wilson(sum(hits), len(hits))
    return f"{np.mean(hits):.1%} of {len(hits)} [{low:.1%}, {high:.1%}]" if hits else "none"


def _print_peaks(all_seen: list[ObservedMemory]) -> None:
    groups: dict[str, list[float]] = defaultdict(list)
    for observed_memory in all_seen:
        if observed_memory.fact.peak_gib is not None:
            kind = "reserved" if observed_memory.fact.reserved else "allocated"
            name = f"{observed_memory.fact.source}, {observed_memory.fact.training.method}, {kind}"
            groups[name].append(observed_memory.predicted / observed_memory.fact.peak_gib)
    everything = [ratio for ratios in groups.values() for ratio in ratios]
    for name, ratios in [*sorted(groups.items()), ("all", everything)]:
        miss = np.abs(np.array(ratios) - 1)
        print(f"  {name:44}{len(ratios):5}{np.median(ratios):8.2f}{np.median(miss):8.1%}{np.quantile(miss, 0.9):8.1%}")


def _counts_by_reason(words: list[str]) -> str:
    return "; ".join(f"{words.count(word)} {word}" for word in sorted(set(words))) or "none"


def fit(left_out: str = "") -> dict[str, float]:
    """The constants that serve the facts best, without those of one source: coordinate descent on a narrowing grid."""
    best = {"rest_bytes": activations.REST_BYTES, "plain_fragmentation": accelerator_memory.FRAGMENTATION["plain"]}
    width = {name: (high - low) / 2 for name, (low, high) in BOUNDS.items()}
    for _ in range(3):
        for name, (low, high) in BOUNDS.items():
            tried = np.clip(best[name] + width[name] * np.linspace(-1, 1, 5), low, high)
            losses = [_loss(best | {name: float(value)}, left_out) for value in tried]
            best[name] = float(tried[int(np.argmin(losses))])
            width[name] /= 2
    return best


def _loss(constants: dict[str, float], left_out: str) -> float:
    """Mean over sources of the mean |ln(predicted / measured)| of peaks, and of wrong predictions of fit."""
    errors: dict[str, list[float]] = defaultdict(list)
    for item in _with(constants):
        if item.fact.source == left_out or item.contradicts:
            continue
        if item.fact.peak_gib is not None:
            errors[item.fact.source].append(abs(math.log(item.predicted / item.fact.peak_gib)))
        else:
            errors[item.fact.source].append(0.0 if item.called_fits == item.fact.fits else _MISCALLED)
    return float(np.mean([np.mean(values) for values in errors.values()]))


def _with(constants: dict[str, float]) -> list[ObservedMemory]:
    """All facts of the fit, estimated with other constants."""
    return _estimated_with(constants["rest_bytes"], constants["plain_fragmentation"])


@cache
def _estimated_with(rest_bytes: float, plain_fragmentation: float) -> list[ObservedMemory]:
    """The same; the model's own constants are restored afterwards, and works that were kept are counted anew."""
    saved_constants = activations.REST_BYTES, accelerator_memory.FRAGMENTATION["plain"]
    activations.REST_BYTES, accelerator_memory.FRAGMENTATION["plain"] = rest_bytes, plain_fragmentation
    transformer.forget()
    try:
        return [seen(fact) for fact in facts()[0] if fact.source not in _ONLY_SMALL]
    finally:
        activations.REST_BYTES, accelerator_memory.FRAGMENTATION["plain"] = saved_constants
        transformer.forget()


#: Sources whose runs are far from any limit and say nothing about the constants.
_ONLY_SMALL = frozenset(("timm-3090",))


def fit_report() -> None:
    """Print the fitted constants, and each source's errors when it is left out of the fit.

    Sources that take no part in any fit are predicted by the present constants.
    """
    print("fitted on all:", _shown(fit()))
    sources = sorted({fact.source for fact in facts()[0]} - _ONLY_SMALL)
    rest = [seen(fact) for fact in facts()[0] if fact.source in _ONLY_SMALL]
    for source in sources:
        constants = fit(source)
        rest += [item for item in _with(constants) if item.fact.source == source]
        print(f"  without {source:24}{_shown(constants)}")
    print("\neach source predicted by the others:")
    _print_calls(rest)
    _print_peaks([item for item in rest if not item.contradicts])


def _shown(constants: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g} in {BOUNDS[name]}" for name, value in constants.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="find the constants anew, leaving each source out once")
    if parser.parse_args().fit:
        fit_report()
    else:
        memory_report()
