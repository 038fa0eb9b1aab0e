"""The only access of the verification to the estimator, whose results are taken on trust.

This is the only module of `gpuplan.planner.verify` that imports `gpuplan.planner.performance` or
`gpuplan.planner.workload`; a contract in pyproject.toml forbids it to the others. `configuration_enumeration` chooses
the machines and node counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.measured_rates import MeasuredRates, as_measured
from gpuplan.planner.model.job import Training
from gpuplan.planner.model.learned import NOTHING as NOTHING_LEARNED
from gpuplan.planner.model.learned import LearnedCorrections
from gpuplan.planner.performance.corrected_estimates import estimate_learned
from gpuplan.planner.performance.estimator_request import REASONS, Estimates, Machines
from gpuplan.planner.performance.measured_steps import as_timed
from gpuplan.planner.verify.offer_groups import Machine, Shape
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work

__all__ = [
    "NOTHING_LEARNED",
    "REASONS",
    "Estimator",
    "LearnedCorrections",
    "Row",
    "Scaling",
    "Work",
    "work_of",
]

#: Rows per call of the estimator: its memory grows with them, and larger calls are no faster.
MOST_ROWS = 16_384


class Row(NamedTuple):
    """Estimate of one machine on a number of nodes: time, spread and memory; `reason` is empty where it can run the
    job.
    """

    reason: str
    precision: str
    substituted: bool
    training_hours: float
    hours_with_goodput: float
    log_sigma: float
    units_per_second: float
    mfu: float
    peak_gib: float
    capacity_gib: float
    layout: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaling:
    """One machine at several node counts: arrays of equal length.

    `reason` indexes `REASONS`, 0 where the machine can run the job; `precision` numbers the training precision.
    """

    nodes: NDArray[np.int64]
    reason: NDArray[np.int64]
    hours_with_goodput: NDArray[np.float64]
    log_sigma: NDArray[np.float64]
    precision: NDArray[np.int64]

    def that_run(self) -> "Scaling":
        """The node counts that can run the job."""
        return self.take(self.reason == 0)

    def take(self, which: NDArray[np.bool_]) -> "Scaling":
        """The marked node counts."""
        return Scaling(
            nodes=self.nodes[which],
            reason=self.reason[which],
            hours_with_goodput=self.hours_with_goodput[which],
            log_sigma=self.log_sigma[which],
            precision=self.precision[which],
        )


class Estimator:
    """The estimates for one job, each computed once."""

    def __init__(self, work: Work, training: Training, goodput: float | None, learned: LearnedCorrections) -> None:
        """Estimates for this work under this training method."""
        self._work, self._training, self._goodput, self._learned = work, training, goodput, learned
        # One tuple for all questions: the estimator works out the constants of a table once.
        self._table = tuple(accelerators().values())
        self._rows: dict[tuple[Shape, int], Row] = {}
        self._scalings: dict[tuple[Shape, range], Scaling] = {}

    def row(self, machine: Machine, nodes: int) -> Row:
        """The estimate of one machine at one node count, with its layout."""
        shape = machine.shape
        if (shape, nodes) not in self._rows:
            estimates = self._estimate([(shape, range(nodes, nodes + 1))])
            self._rows[shape, nodes] = _row(estimates)
        return self._rows[shape, nodes]

    def scalings(self, wanted: Iterable[tuple[Machine, range]]) -> list[Scaling]:
        """The estimates of each machine at all node counts of its range, in the given order."""
        keys = [(machine.shape, counts) for machine, counts in wanted]
        missing = [key for key in dict.fromkeys(keys) if key not in self._scalings]
        for chunk in _chunks([key for key in missing if key[1]]):
            self._estimate_scalings(chunk)
        for key in missing:
            self._scalings.setdefault(key, _NO_COUNTS)
        return [self._scalings[key] for key in keys]

    def _estimate_scalings(self, keys: list[tuple[Shape, range]]) -> None:
        estimates, begin = self._estimate(keys), 0
        for shape, counts in keys:
            rows = slice(begin, begin + len(counts))
            begin += len(counts)
            self._scalings[shape, counts] = Scaling(
                nodes=np.arange(counts.start, counts.stop),
                reason=estimates.reason[rows],
                hours_with_goodput=estimates.hours_with_goodput[rows],
                log_sigma=estimates.log_sigma[rows],
                precision=estimates.precision[rows],
            )

    def _estimate(self, keys: list[tuple[Shape, range]]) -> Estimates:
        """The estimates of every shape at every node count of its range, concatenated."""
        names = {name: number for number, name in enumerate(accelerators())}
        table = list(self._table)
        measured: dict[tuple[str, MeasuredRates], int] = {}
        chips = []
        for (name, *_, rates), _counts in keys:
            if rates is None:
                chips.append(names[name])
                continue
            if (name, rates) not in measured:
                measured[name, rates] = len(table)
                table.append(as_measured(table[names[name]], rates))
            chips.append(measured[name, rates])
        column, times = list(zip(*(shape for shape, _ in keys), strict=True)), [len(counts) for _, counts in keys]
        machines = Machines(
            accelerators=tuple(table) if measured else self._table,
            accelerator=np.repeat(np.array(chips, np.int64), times),
            devices=np.repeat(np.array(column[1], np.int64), times),
            fraction=np.repeat(np.array(column[2], np.float64), times),
            device_memory_mib=np.repeat(np.array(column[3], np.float64), times),
            intranode_gbs=np.repeat(_unknown_as_nan(column[4]), times),
            scaleup_domain=np.repeat(np.array(column[5], np.int64), times),
            internode_gbps=np.repeat(_unknown_as_nan(column[6]), times),
            clusters=np.repeat(np.array(column[7], np.bool_), times),
            nodes=np.concatenate([np.arange(counts.start, counts.stop) for _, counts in keys]),
        )
        estimates = estimate_learned(self._work, self._training, machines, goodput=self._goodput, learned=self._learned)
        return as_timed(estimates, machines, self._work, self._training) if measured else estimates


_NO_COUNTS = Scaling(
    nodes=np.zeros(0, np.int64),
    reason=np.zeros(0, np.int64),
    hours_with_goodput=np.zeros(0),
    log_sigma=np.zeros(0),
    precision=np.zeros(0, np.int64),
)


def _chunks(keys: list[tuple[Shape, range]]) -> Iterator[list[tuple[Shape, range]]]:
    """Groups of keys whose rows together fit into `MOST_ROWS`; at least one key each."""
    chunk: list[tuple[Shape, range]] = []
    for key in keys:
        if chunk and sum(len(counts) for _, counts in (*chunk, key)) > MOST_ROWS:
            yield chunk
            chunk = []
        chunk.append(key)
    if chunk:
        yield chunk


def _row(estimates: Estimates) -> Row:
    """The only row of these estimates."""
    reason = int(estimates.reason[0])
    return Row(
        reason=REASONS[reason],
        precision=estimates.precisions[int(estimates.precision[0])],
        substituted=bool(estimates.substituted[0]),
        training_hours=float(estimates.hours[0]),
        hours_with_goodput=float(estimates.hours_with_goodput[0]),
        log_sigma=float(estimates.log_sigma[0]),
        units_per_second=float(estimates.units_per_second[0]),
        mfu=float(estimates.mfu[0]),
        peak_gib=float(estimates.peak_gib[0]),
        capacity_gib=float(estimates.capacity_gib[0]),
        layout=() if reason else tuple(estimates.layout(0).items()),
    )


def _unknown_as_nan(values: tuple[object, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    known = np.array(values, np.float64)
    return np.where(known < 0, np.nan, known)
