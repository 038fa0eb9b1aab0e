"""The port to the estimator: what it says of a job's work, and of a machine at a node count, is taken on trust.

This is the only module of `planner.verify` that imports `planner.estimate`, `planner.workload` or `planner.own_steps`
(pyproject.toml forbids it to the others). Which machines and node counts are asked about is decided by `enumeration`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from catalog.accelerators import accelerators
from catalog.measured import MeasuredRates, as_measured
from planner.estimate.corrected import estimate_learned
from planner.estimate.learned import NOTHING as NOTHING_LEARNED
from planner.estimate.learned import Learned
from planner.estimate.machines import REASONS, Estimates, Machines
from planner.job import Training
from planner.own_steps import as_timed
from planner.verify.shelves import Machine
from planner.workload import work_of
from planner.workload.work import Work

__all__ = [
    "NOTHING_LEARNED",
    "REASONS",
    "Estimator",
    "Learned",
    "Row",
    "Scaling",
    "Shape",
    "Work",
    "shape_of",
    "work_of",
]

#: Rows that the estimator is asked for at once: its memory grows with them, and asking for more at once saves no time.
MOST_ROWS = 16_384

#: What decides how fast a machine is: two instance types alike in all of it are one machine.
Shape = tuple[str, int, float, float, float, int, float, bool, MeasuredRates | None]


class Row(NamedTuple):
    """One machine on so many nodes: time, spread and memory; `reason` is empty where it can run the job."""

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
    """One machine at several node counts: arrays of equal length. `reason` indexes `REASONS`, 0 where it can run the job;
    `precision` numbers the precision it trains in.
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
        """The node counts that are marked."""
        return Scaling(
            nodes=self.nodes[which],
            reason=self.reason[which],
            hours_with_goodput=self.hours_with_goodput[which],
            log_sigma=self.log_sigma[which],
            precision=self.precision[which],
        )


def shape_of(machine: Machine) -> Shape:
    """The shape of a machine; unknown rates are -1."""
    each = machine.type
    share = min(1.0, float(each.accelerator_count))
    memory = each.accelerator_memory_mib or accelerators()[each.accelerator].device_memory_mib * share
    return (
        each.accelerator,
        each.devices,
        share,
        float(memory),
        -1.0 if each.intranode_gbs is None else each.intranode_gbs,
        each.scaleup_domain,
        -1.0 if each.network_gbps is None else each.network_gbps,
        each.clusters,
        machine.measured,
    )


class Estimator:
    """What is asked for one job."""

    def __init__(self, work: Work, training: Training, goodput: float, learned: Learned) -> None:
        """For this work, trained like this."""
        self._work, self._training, self._goodput, self._learned = work, training, goodput, learned
        self._rows: dict[tuple[Shape, int], Row] = {}
        self._scalings: dict[tuple[Shape, range], Scaling] = {}

    def row(self, machine: Machine, nodes: int) -> Row:
        """One machine at one node count, with its layout."""
        shape = shape_of(machine)
        if (shape, nodes) not in self._rows:
            found = self._estimate([(shape, range(nodes, nodes + 1))])
            self._rows[shape, nodes] = _row(found)
        return self._rows[shape, nodes]

    def scalings(self, wanted: Iterable[tuple[Machine, range]]) -> list[Scaling]:
        """Each machine at all node counts of its range, in the order asked."""
        keys = [(shape_of(machine), counts) for machine, counts in wanted]
        missing = [key for key in dict.fromkeys(keys) if key not in self._scalings]
        for chunk in _chunks([key for key in missing if key[1]]):
            self._estimate_scalings(chunk)
        for key in missing:
            self._scalings.setdefault(key, _NO_COUNTS)
        return [self._scalings[key] for key in keys]

    def _estimate_scalings(self, keys: list[tuple[Shape, range]]) -> None:
        found, begin = self._estimate(keys), 0
        for shape, counts in keys:
            here = slice(begin, begin + len(counts))
            begin += len(counts)
            self._scalings[shape, counts] = Scaling(
                nodes=np.arange(counts.start, counts.stop),
                reason=found.reason[here],
                hours_with_goodput=found.hours_with_goodput[here],
                log_sigma=found.log_sigma[here],
                precision=found.precision[here],
            )

    def _estimate(self, keys: list[tuple[Shape, range]]) -> Estimates:
        """The estimates of every shape at every node count of its range, one after the other."""
        names = {name: number for number, name in enumerate(accelerators())}
        table = list(accelerators().values())
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
            accelerators=tuple(table),
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
        found = estimate_learned(self._work, self._training, machines, goodput=self._goodput, learned=self._learned)
        return as_timed(found, machines, self._work, self._training) if measured else found


_NO_COUNTS = Scaling(
    nodes=np.zeros(0, np.int64),
    reason=np.zeros(0, np.int64),
    hours_with_goodput=np.zeros(0),
    log_sigma=np.zeros(0),
    precision=np.zeros(0, np.int64),
)


def _chunks(keys: list[tuple[Shape, range]]) -> Iterator[list[tuple[Shape, range]]]:
    """So many keys at once that all their rows fit into `MOST_ROWS`, or one."""
    chunk: list[tuple[Shape, range]] = []
    for key in keys:
        if chunk and sum(len(counts) for _, counts in (*chunk, key)) > MOST_ROWS:
            yield chunk
            chunk = []
        chunk.append(key)
    if chunk:
        yield chunk


def _row(found: Estimates) -> Row:
    """The only row of these estimates."""
    reason = int(found.reason[0])
    return Row(
        reason=REASONS[reason],
        precision=found.precisions[int(found.precision[0])],
        substituted=bool(found.substituted[0]),
        training_hours=float(found.hours[0]),
        hours_with_goodput=float(found.hours_with_goodput[0]),
        log_sigma=float(found.log_sigma[0]),
        units_per_second=float(found.units_per_second[0]),
        mfu=float(found.mfu[0]),
        peak_gib=float(found.peak_gib[0]),
        capacity_gib=float(found.capacity_gib[0]),
        layout=() if reason else tuple(found.layout(0).items()),
    )


def _unknown_as_nan(values: tuple[object, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    known = np.array(values, np.float64)
    return np.where(known < 0, np.nan, known)
