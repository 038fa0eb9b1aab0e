"""Ratios between two runs of the same work on different machines: what a run that was measured elsewhere leaves open."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpuplan.planner.performance.estimator_request import Floats
from gpuplan.planner.performance.prediction_bands import Z80
from tools.fitting.measured_runs import Run
from tools.fitting.stacked_runs import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """ln(predicted ratio / measured ratio) of every pair, its class, and its weight; the pairs of a run weigh 1 together."""

    log_errors: Floats
    task: np.ndarray[tuple[int], np.dtype[np.str_]]
    weight: Floats

    def of(self, task: str) -> "Pairs":
        """The pairs of one class."""
        chosen = self.task == task
        return Pairs(log_errors=self.log_errors[chosen], task=self.task[chosen], weight=self.weight[chosen])

    @property
    def runs(self) -> int:
        """The number of runs that have a partner."""
        return round(float(self.weight.sum()))

    def inside(self, sigma: float) -> float:
        """The share of pairs inside the 80 % band of `sigma`."""
        return float(self.weight[np.abs(self.log_errors) <= Z80 * sigma].sum() / self.weight.sum())

    def sigma(self) -> float:
        """The sigma whose 80 % band holds 80 % of the pairs."""
        order = np.argsort(np.abs(self.log_errors))
        share = np.cumsum(self.weight[order]) / self.weight.sum()
        return float(np.abs(self.log_errors)[order][int(np.searchsorted(share, 0.8))]) / Z80


def pairs_of(sample: Sample, left: Floats) -> Pairs:
    """Every pair of runs of one source and the same work on different machines; `left` are the residuals of all runs,
    of which those that did the same work may share an unknown offset."""
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, run in enumerate(sample.runs):
        if not np.isnan(left[index]):
            alike[_work(run)].append(index)
    log_errors, tasks, weights = [], [], []
    for places in alike.values():
        for index in places:
            run = sample.runs[index]
            others = [other for other in places if _machines(sample.runs[other]) != _machines(run)]
            if not others:
                continue
            log_errors += [left[index] - left[other] for other in others]
            tasks += [run.work.task] * len(others)
            weights += [1 / len(others)] * len(others)
    return Pairs(log_errors=np.array(log_errors), task=np.array(tasks), weight=np.array(weights))


def _work(run: Run) -> tuple[str, ...]:
    """What runs share that do the same work with the same code, as far as their rows tell."""
    row = run.row
    return row["group"], row["compared_within"], row["model"], row["seq_len"], row["image_size"], run.training.method


def _machines(run: Run) -> tuple[str, str]:
    return run.row["gpu"], run.row["gpus_total"]
